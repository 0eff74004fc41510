//! A queue that keeps to the front of its memory.
//!
//! A ring goes through all of its memory, however few wait in it: each that comes touches lines that nobody has touched for long. The
//! queues of members are empty again and again; one that is begins at its front, where the lines are that were used last.

use std::collections::VecDeque;
use std::ops::{Deref, DerefMut};

/// See the module. All but [`Self::push_back`] is that of the ring.
#[derive(Debug)]
pub(crate) struct Queue<T>(VecDeque<T>);

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self(VecDeque::new())
    }
}

impl<T> Queue<T> {
    #[inline]
    pub(crate) fn push_back(&mut self, next: T) {
        if self.0.is_empty() {
            // This is what makes a ring begin at the front of its memory.
            self.0.clear();
        }
        self.0.push_back(next);
    }
}

impl<T> Deref for Queue<T> {
    type Target = VecDeque<T>;

    fn deref(&self) -> &VecDeque<T> {
        &self.0
    }
}

impl<T> DerefMut for Queue<T> {
    fn deref_mut(&mut self) -> &mut VecDeque<T> {
        &mut self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_was_empty_begins_where_it_began() {
        let mut queue = Queue::default();
        queue.push_back(0);
        let front = queue.as_slices().0.as_ptr();
        for next in 1..100 {
            assert_eq!(queue.pop_front(), Some(next - 1));
            queue.push_back(next);
            assert_eq!(queue.as_slices().0.as_ptr(), front);
        }
        assert_eq!(
            (queue.pop_front_if(|last| *last < 99), queue.pop_front_if(|last| *last == 99)),
            (None, Some(99))
        );
        queue.push_back(100);
        assert_eq!(queue.as_slices().0.as_ptr(), front);
    }
}
