//! Coordinators without a store that follow each other, and each hear another part of the nodes.
//!
//! The first one hears fewer than half: it may decide what it likes, nothing is in force. The second one hears the others, and
//! goes on with them. The third one hears those whom the first one heard: it must not go on from what only these know.

/// Such a fault, under way.
#[derive(Debug)]
pub(super) struct Halves {
    /// Whom the first and the third one hear.
    few: Vec<usize>,
    /// Who reaches no coordinator now.
    cut_off: Vec<usize>,
    /// What counts as at risk meanwhile: its number.
    pub fault: usize,
}

/// Who is heard from now on.
#[derive(Debug, Default)]
pub(crate) struct HalvesTurn {
    /// They reach a coordinator again.
    pub heard: Vec<usize>,
    /// Another coordinator is to follow.
    pub leader_ends: bool,
    /// They reach none any more.
    pub silenced: Vec<usize>,
    /// The fault that is over, if it is.
    pub over: Option<usize>,
}

impl Halves {
    /// Nobody is cut off yet.
    pub(super) fn new(few: Vec<usize>, fault: usize) -> Self {
        Self { few, cut_off: Vec::new(), fault }
    }

    /// The next part of `nodes` nodes is heard; every part but the first by another coordinator. After the third part all are.
    pub(super) fn turn(&mut self, step: u8, nodes: usize) -> HalvesTurn {
        let heard = std::mem::take(&mut self.cut_off);
        let hears_few = match step {
            0 | 2 => true,
            1 => false,
            _ => {
                return HalvesTurn {
                    heard,
                    leader_ends: true,
                    over: Some(self.fault),
                    ..HalvesTurn::default()
                };
            }
        };
        self.cut_off = (0..nodes).filter(|node| self.few.contains(node) != hears_few).collect();
        HalvesTurn { heard, leader_ends: step > 0, silenced: self.cut_off.clone(), over: None }
    }

    /// Who reaches no coordinator now.
    pub(super) fn into_cut_off(self) -> Vec<usize> {
        self.cut_off
    }
}
