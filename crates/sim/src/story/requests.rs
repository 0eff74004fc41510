//! Requests, and what becomes of them.

use types::op::{Delete, Failure, Get, ItemView, Op, Outcome};

use super::operations::set;
use super::told::Story;
use crate::clients::calls::Ask;

/// How often a story tries to set a key.
const MAX_TRIES: usize = 20;

/// A request under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked(u32);

impl Story {
    /// The `n`-th key of data role `role`.
    ///
    /// # Panics
    /// If there are not so many.
    #[must_use]
    pub fn key(&self, role: usize, n: usize) -> usize {
        let keys = self.world.clients.keys();
        let mut mine = (0..keys.len()).filter(|key| usize::from(keys[*key].member.role.0) == role);
        mine.nth(n).expect("a story has many keys")
    }

    /// Sends an operation on a key to `node`.
    pub fn ask(&mut self, node: usize, key: usize, op: Op) -> Asked {
        let asked = Asked(self.world.call(Ask::plain(node, key, op)));
        self.look();
        asked
    }

    /// Sends a set to the primary of the key.
    pub fn begin_set(&mut self, key: usize, value: &str) -> Asked {
        // While nobody serves the role, any node takes the request.
        let role = usize::from(self.world.clients.keys()[key].member.role.0);
        let node = self.view().data[role]
            .primary
            .map_or_else(|| self.primary((role + 1) % self.view().k()), |host| usize::from(host.node.0));
        self.ask(node, key, set(value.as_bytes()))
    }

    /// What became of a request; none while it runs.
    #[must_use]
    pub fn answer(&self, asked: Asked) -> Option<&Outcome> {
        self.world.clients.answer(asked.0)
    }

    /// Whether a request was answered with success.
    #[must_use]
    pub fn stored(&self, asked: Asked) -> bool {
        matches!(self.answer(asked), Some(Outcome::Stored(_)))
    }

    /// Waits for the answer.
    ///
    /// # Panics
    /// If it does not come.
    pub fn wait_for(&mut self, asked: Asked) -> Outcome {
        self.run_until("an answer comes", |story| story.answer(asked).is_some());
        self.answer(asked).cloned().expect("just waited for")
    }

    /// Sets a key through any node.
    ///
    /// # Panics
    /// If that fails.
    pub fn set(&mut self, key: usize, value: &str) {
        self.set_bytes(key, value.as_bytes());
    }

    /// Sets a key through any node; again if nobody knows whether it was done.
    ///
    /// # Panics
    /// If that fails.
    pub fn set_bytes(&mut self, key: usize, value: &[u8]) {
        for _ in 0..MAX_TRIES {
            let node = self.any_node();
            let asked = self.ask(node, key, set(value));
            match self.wait_for(asked) {
                Outcome::Stored(_) => return,
                Outcome::Failed(Failure::Unknown | Failure::Unavailable) => {}
                outcome => panic!("set of key {key}: {outcome:?}{}", self.told()),
            }
        }
        panic!("key {key} cannot be set{}", self.told());
    }

    /// Deletes a key through any node.
    pub fn delete(&mut self, key: usize) -> Outcome {
        let node = self.any_node();
        let asked = self.ask(node, key, Op::Delete(Delete::default()));
        self.wait_for(asked)
    }

    /// Reads a key through any node: its value, or none if it is missing.
    ///
    /// # Panics
    /// If that fails.
    pub fn get(&mut self, key: usize) -> Option<String> {
        match self.read(key) {
            Outcome::Hit(ItemView { value, .. }) => Some(String::from_utf8_lossy(&value).into_owned()),
            Outcome::Miss => None,
            other => panic!("get of key {key}: {other:?}{}", self.told()),
        }
    }

    /// Reads a key through any node.
    pub fn read(&mut self, key: usize) -> Outcome {
        let node = self.any_node();
        let asked = self.ask(node, key, Op::Get(Get::default()));
        self.wait_for(asked)
    }

    /// Gives every data role `count` keys with values that name them.
    pub fn fill(&mut self, count: usize) {
        for role in 0..self.view().k() {
            for n in 0..count {
                let key = self.key(role, n);
                self.set(key, &value_of(role, n));
            }
        }
    }

    /// Whether every key of [`Story::fill`] has the value that it was given.
    ///
    /// # Panics
    /// If one has not.
    pub fn is_filled(&mut self, count: usize) {
        for role in 0..self.view().k() {
            for n in 0..count {
                let key = self.key(role, n);
                assert_eq!(self.get(key), Some(value_of(role, n)), "key {n} of role {role}{}", self.told());
            }
        }
    }

    fn any_node(&mut self) -> usize {
        let up = self.world.cluster.nodes.up();
        self.world.stage.rng.clients.pick(&up)
    }
}

fn value_of(role: usize, n: usize) -> String {
    format!("value {n} of role {role}")
}
