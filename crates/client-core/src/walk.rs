//! A scan of all data roles of a namespace: which of them is asked next, and from where on.
//!
//! Roles are walked side by side, at most so many at once. A role's cursor is all that is kept of it, so a step that fails may be asked
//! again, anywhere, with what came of the steps before left as it is.

use std::collections::VecDeque;

use types::ScanBound;

/// See the module.
#[derive(Debug)]
pub struct Walk {
    /// Roles that are to be asked next.
    waiting: VecDeque<Step>,
    /// How many are asked.
    asked: usize,
    at_once: usize,
    /// Data roles that there are, once somebody has answered.
    roles: Option<u32>,
}

/// A page of keys that is to be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The data role: its place in the map's list.
    pub role: u32,
    /// From where on.
    pub from: ScanBound,
}

impl Walk {
    /// From the beginning, with at most so many roles side by side.
    #[must_use]
    pub fn new(at_once: usize) -> Self {
        let first = Step { role: 0, from: ScanBound::BEGIN };
        Self { waiting: [first].into(), asked: 0, at_once: at_once.max(1), roles: None }
    }

    /// What is to be asked now, if anything; it counts as asked.
    pub fn ask(&mut self) -> Option<Step> {
        let step = if self.asked < self.at_once { self.waiting.pop_front()? } else { return None };
        self.asked += 1;
        Some(step)
    }

    /// A page of `role` has come, where there are so many data roles in all; it goes on from `next`, if it does.
    pub fn come(&mut self, role: u32, next: Option<ScanBound>, roles: u32) {
        self.asked = self.asked.saturating_sub(1);
        if self.roles.is_some_and(|known| known != roles) {
            // The namespace has moved to another pool, where other keys lie together: all is asked for again.
            (self.roles, self.waiting) = (Some(roles), VecDeque::new());
            self.waiting.extend((0..roles).map(|role| Step { role, from: ScanBound::BEGIN }));
            return;
        }
        if self.roles.replace(roles).is_none() {
            let others = (0..roles).filter(|other| *other != role);
            self.waiting.extend(others.map(|role| Step { role, from: ScanBound::BEGIN }));
        }
        // First: so few roles are begun at any time.
        if let Some(from) = next {
            self.waiting.push_front(Step { role, from });
        }
    }

    /// Whether all keys have come.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.asked == 0 && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_walk_begins_anew_when_there_are_other_roles() {
        let mut walk = Walk::new(1);
        assert_eq!(walk.ask().map(|step| step.role), Some(0));
        walk.come(0, None, 3);
        assert_eq!(walk.ask().map(|step| step.role), Some(1));
        walk.come(1, ScanBound::new(7), 2);
        let rest: Vec<Step> = std::iter::from_fn(|| {
            let step = walk.ask()?;
            walk.come(step.role, None, 2);
            Some(step)
        })
        .collect();
        let from = ScanBound::BEGIN;
        assert_eq!(rest, [Step { role: 0, from }, Step { role: 1, from }]);
        assert!(walk.is_over());
    }

    #[test]
    fn each_role_is_walked_to_its_end_and_few_at_once() {
        let mut walk = Walk::new(2);
        let (mut asked, mut ended) = (VecDeque::new(), Vec::new());
        while !walk.is_over() {
            asked.extend(std::iter::from_fn(|| walk.ask()));
            assert!((1..=2).contains(&asked.len()));
            let Step { role, from } = asked.pop_front().expect("there is one");
            let next = ScanBound::new(from.number() + 1).filter(|next| next.number() < 3);
            walk.come(role, next, 5);
            if next.is_none() {
                ended.push(role);
            }
        }
        ended.sort_unstable();
        assert_eq!(ended, [0, 1, 2, 3, 4]);
    }
}
