//! Data that is lost for good, and operators who accept it.

use types::AdminCommand;

use super::Story;

impl Story {
    /// An operator accepts whatever is lost.
    pub fn accept_losses(&mut self) {
        self.world.reign().accept_losses();
        self.look();
    }

    /// Waits until `count` parities are in sync.
    pub fn until_protected(&mut self, count: usize) {
        self.run_until("the parities are in sync", |story| story.in_sync().len() == count);
    }

    /// An operator gives everything up.
    pub fn reset_cluster(&mut self) {
        self.world.reign().operate(AdminCommand::Reset);
        self.look();
    }
}
