//! Rules of a client that a test can leave out, one at a time, to see what each prevents.
//!
//! The core asks for a rule by its name. Where the feature `planted-bugs` is off there is nothing to leave out, and every answer is a
//! constant.

use crate::event::ConnId;

macro_rules! bugs {
    ($($(#[$doc:meta])* $name:ident;)*) => {
        /// What a client does that leaves one rule out.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub enum Bug {
            $($(#[$doc])* $name,)*
        }

        impl Bug {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$name),*];
        }
    };
}

bugs! {
    /// A write without a name is asked again though it may have been done.
    AskedAgainUnnamed;
    /// A write that comes again under its name says that it is new.
    AgainNotSaid;
    /// A session's floor is told that is above writes that are still waited for.
    FloorTooEarly;
    /// A connection goes by the number of the one before it to the same address.
    ConnectionNamedAgain;
    /// Nobody looks at deadlines as long as there is no map.
    DeadlineWaitsForMap;
    /// The first map is kept, whatever is heard of later ones.
    MapNotRefreshed;
    /// The rest of another value is taken for that of the one whose beginning has come.
    TornRead;
    /// A value is committed though a holder has not acknowledged its chunk.
    AcknowledgementMissing;
    /// A cell is taken whatever its checksum says.
    CellUnchecked;
    /// Cells are taken for those of the rows that are given out next.
    CellsOfOtherRows;
    /// What was made of another value is taken for that of the one that is read.
    MadeOfAnotherValue;
    /// A data role of which a page has to be asked for again counts as scanned.
    ScanSkipsWhatMoved;
    /// A value goes on to be put though its owner has said that its id is gone.
    GoneIdUnheeded;
    /// What comes of a value goes on to where its request wanted it when that is over.
    LandsAfterEnd;
    /// The same when the request has been sent again elsewhere.
    LandsOfFormerTry;
    /// Each piece of a value is received where its first one belongs.
    LandsAtStart;
}

/// See the module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rules {
    #[cfg(feature = "planted-bugs")]
    broken: Option<Bug>,
}

#[cfg(not(feature = "planted-bugs"))]
const _: () = assert!(size_of::<Rules>() == 0, "whoever keeps all rules pays for none");

impl Default for Rules {
    fn default() -> Self {
        Self::all()
    }
}

#[cfg(feature = "planted-bugs")]
impl Rules {
    /// All of them.
    #[must_use]
    pub const fn all() -> Self {
        Self { broken: None }
    }

    /// All but the one that prevents `bug`.
    #[must_use]
    pub const fn without(bug: Bug) -> Self {
        Self { broken: Some(bug) }
    }

    fn prevent(self, bug: Bug) -> bool {
        self.broken != Some(bug)
    }
}

#[cfg(not(feature = "planted-bugs"))]
impl Rules {
    /// All of them.
    #[must_use]
    pub const fn all() -> Self {
        Self {}
    }

    #[inline(always)]
    const fn prevent(self, _: Bug) -> bool {
        true
    }
}

impl Rules {
    /// Only under its name is a write asked again that may have been done.
    pub(crate) fn asks_again_what_may_be_done(self, is_named: bool) -> bool {
        is_named || !self.prevent(Bug::AskedAgainUnnamed)
    }

    /// Whoever asks again says so.
    pub(crate) fn says_that_it_comes_again(self, was_sent: bool) -> bool {
        was_sent && self.prevent(Bug::AgainNotSaid)
    }

    /// A session's floor is the first of its writes that is still waited for.
    pub(crate) fn floor(self, first_waited_for: u32, sequence: u32) -> u32 {
        if self.prevent(Bug::FloorTooEarly) { first_waited_for } else { sequence }
    }

    /// No two connections go by one number: what still comes of the first is not taken for the second's.
    pub(crate) fn connection(self, next: ConnId, port: u16) -> ConnId {
        if self.prevent(Bug::ConnectionNamedAgain) { next } else { ConnId(port.into()) }
    }

    /// A deadline holds, whatever its request waits for.
    pub(crate) fn deadlines_hold(self, has_map: bool) -> bool {
        has_map || self.prevent(Bug::DeadlineWaitsForMap)
    }

    /// Only of the same version is a value read on.
    pub(crate) fn reads_on(self, is_same_version: bool) -> bool {
        is_same_version || !self.prevent(Bug::TornRead)
    }

    /// A stripe is done when so many acknowledgements are missing.
    pub(crate) fn missing_acknowledgements(self) -> usize {
        if self.prevent(Bug::AcknowledgementMissing) { 0 } else { 1 }
    }

    /// Whoever gets a cell looks whether it is what its holder has.
    pub(crate) fn checks_cells(self) -> bool {
        self.prevent(Bug::CellUnchecked)
    }

    /// Cells are of the batch that they were asked for.
    pub(crate) fn batch(self, asked: u64, front: u64) -> u64 {
        if self.prevent(Bug::CellsOfOtherRows) { asked } else { front }
    }

    /// What a node has had made is taken if it is of the value that is read.
    pub(crate) fn reads_made(self, is_same: bool) -> bool {
        is_same || !self.prevent(Bug::MadeOfAnotherValue)
    }

    /// A page that has not come is asked for again, from the same cursor.
    pub(crate) fn scans_go_on_from_their_cursor(self) -> bool {
        self.prevent(Bug::ScanSkipsWhatMoved)
    }

    /// What is put under an id that is gone is put in vain.
    pub(crate) fn heeds_that_an_id_is_gone(self) -> bool {
        self.prevent(Bug::GoneIdUnheeded)
    }

    /// A value is received where its request wants it for as long as that waits for it from there.
    pub(crate) fn still_lands(self, is_same: bool, is_waited_for: bool) -> bool {
        is_same || !self.prevent(Bug::LandsAfterEnd) || is_waited_for && !self.prevent(Bug::LandsOfFormerTry)
    }

    /// A piece belongs behind what has come.
    pub(crate) fn lands_behind(self, come: u64) -> u64 {
        if self.prevent(Bug::LandsAtStart) { come } else { 0 }
    }

    /// What is heard of the map is news, also where there is one.
    pub(crate) fn hears_of_maps(self, has_map: bool) -> bool {
        !has_map || self.prevent(Bug::MapNotRefreshed)
    }
}
