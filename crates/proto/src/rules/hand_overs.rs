//! The rules of roles that are handed over to mirrors (docs/protocol.md).

use super::{Bug, Rules};

/// See the module.
#[derive(Clone, Copy)]
pub(crate) struct HandOverRules(Rules);

impl Rules {
    /// Those of hand-overs.
    pub(crate) fn hand_overs(self) -> HandOverRules {
        HandOverRules(self)
    }
}

impl HandOverRules {
    /// The whole mirror stays of a primary that has a parity beside it.
    pub(crate) fn crowded_mirrors_stay(self) -> bool {
        self.0.prevent(Bug::CrowdedMirrorDropped)
    }

    /// A mirror is not handed the role while its node has another role of the group.
    pub(crate) fn need_lone_mirror(self, is_alone: bool) -> bool {
        is_alone || !self.0.prevent(Bug::HandedOverToCrowded)
    }

    /// A role is handed over when no other lesson of the group is under way.
    pub(crate) fn need_ended_lessons(self, have_ended: bool) -> bool {
        have_ended || !self.0.prevent(Bug::LessonOutlivesTeacher)
    }

    /// Other lessons of the group end with a hand-over: the next primary knows nothing of them.
    pub(crate) fn lessons_end_with_their_teacher(self) -> bool {
        self.0.prevent(Bug::LessonOutlivesTeacher)
    }
}
