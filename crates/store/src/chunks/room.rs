//! In which extent a run of free pages is long enough.
//!
//! A tournament: each extent's longest free run, and above each pair the longer one of the two. The lowest extent with room
//! for a run is found, and a change is told, in as many steps as the number of extents has bits: 14 for 16 GiB. It costs 4 to 8
//! bytes for each extent.

/// The longest free run of each extent.
#[derive(Debug)]
pub(super) struct Room {
    /// As in a heap: above 2i and 2i + 1 stands i, on top 1. The second half are the extents.
    longest: Vec<u16>,
}

impl Room {
    pub(super) fn new() -> Self {
        Self { longest: vec![0; 2] }
    }

    /// Says that the longest free run of `extent` has `pages`.
    pub(super) fn set(&mut self, extent: u32, pages: u32) {
        while extent as usize >= self.extents() {
            self.double();
        }
        let mut at = self.extents() + extent as usize;
        self.longest[at] = pages as u16;
        while at > 1 {
            at /= 2;
            self.longest[at] = self.longest[2 * at].max(self.longest[2 * at + 1]);
        }
    }

    /// The lowest extent with a free run of `pages`, which are not 0.
    pub(super) fn lowest(&self, pages: u32) -> Option<u32> {
        if self.max() < pages {
            return None;
        }
        let mut at = 1;
        while at < self.extents() {
            at *= 2;
            at += usize::from(u32::from(self.longest[at]) < pages);
        }
        Some((at - self.extents()) as u32)
    }

    /// Pages in the longest free run of all.
    pub(super) fn max(&self) -> u32 {
        self.longest[1].into()
    }

    /// How many there is a place for.
    fn extents(&self) -> usize {
        self.longest.len() / 2
    }

    fn double(&mut self) {
        let extents = self.longest.split_off(self.extents());
        *self = Self { longest: vec![0; 4 * extents.len()] };
        for (extent, pages) in (0..).zip(extents) {
            self.set(extent, pages.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lowest_extent_with_room_is_found() {
        let mut room = Room::new();
        assert_eq!((room.lowest(1), room.max()), (None, 0));
        for (extent, pages) in [(0, 3), (1, 8), (5, 1024), (6, 8)] {
            room.set(extent, pages);
        }
        let found = [1, 3, 4, 8, 9, 1024].map(|pages| room.lowest(pages));
        assert_eq!(found, [Some(0), Some(0), Some(1), Some(1), Some(5), Some(5)]);
        room.set(5, 0);
        assert_eq!((room.max(), room.lowest(9), room.lowest(8)), (8, None, Some(1)));
        room.set(1, 7);
        assert_eq!(room.lowest(8), Some(6));
    }
}
