//! Scrubs: nothing may ever be found, but what a story has damaged.

use proto::ScrubFinding;
use types::{AdminCommand, AdminRequest, OnFinding, ScrubProgress};

use super::book::Suspect;
use super::process::{Life, now_at};
use super::queue::Event;
use super::run::wait;
use super::story::Story;
use super::world::World;

impl World {
    pub(crate) fn scrub_later(&mut self) {
        if self.stage.options.scrub_every_us > 0 && !self.clients_stop {
            self.stage.after(self.stage.options.scrub_every_us, Event::Scrub);
        }
    }

    pub(crate) fn scrub_due(&mut self) {
        self.start_scrub(OnFinding::Report);
        self.scrub_later();
    }

    /// Asks the elected coordinator, if there is one that listens.
    pub(crate) fn start_scrub(&mut self, finding: OnFinding) {
        let command = AdminCommand::StartScrub { finding, bytes_per_second: 0 };
        let request = AdminRequest { expect: None, command };
        let at = self.stage.now();
        let Some(number) = self.leader else { return };
        let Some(process) = self.coordinators.iter_mut().find(|process| process.number == number) else {
            return;
        };
        if !process.paused {
            let now = now_at(&self.stage.options, &process.clock, at);
            // Before the cluster has formed it is refused.
            let _ = process.coordinator.administer(now, &request);
            self.after_coordinator(number);
        }
    }

    /// A scrub finds nothing.
    pub(crate) fn check_scrub(&mut self, host: usize) {
        if self.damaged {
            return;
        }
        let machine = self.shards[host].host.as_ref();
        let found = machine.and_then(|machine| machine.scrub_findings().next()).cloned();
        if let Some(found) = found {
            let what = format!(
                "{}: a scrub finds damage: {found:?}",
                self.nodes[host / self.stage.options.shards].id
            );
            self.stage.book.fail("scrub", Some(Suspect::Group(found.parity.group)), what);
        }
    }

    /// At rest: one more scrub, which must come to its end where nothing is lost.
    pub(crate) fn last_scrub(&mut self) -> bool {
        if self.stage.options.scrub_every_us == 0 {
            return true;
        }
        self.start_scrub(OnFinding::Report);
        let pages = self.pages_to_scrub();
        let deadline = self.stage.now()
            + 20 * self.stage.options.timing.node_lease_us
            + pages * self.stage.options.timing.retry_us;
        let can_end = self.may_end_scrub();
        let ended = !can_end || wait(self, deadline, World::is_scrubbed);
        if !ended && !self.stage.book.has_failed() {
            self.stage.book.fail("liveness", None, "the last scrub does not end".to_owned());
        }
        for host in 0..self.shards.len() {
            self.check_scrub(host);
            let stats = self.shards[host].host.as_ref().map(proto::Host::stats);
            self.stage.book.stats.released_extents += stats.map_or(0, |stats| stats.released_extents);
            self.stage.book.stats.scrubbed_pages += stats.map_or(0, |stats| stats.scrubbed_pages);
        }
        !self.stage.book.has_failed()
    }

    /// Whether all groups are as they should be, and all nodes have memory for a session.
    fn may_end_scrub(&self) -> bool {
        let full = self
            .map()
            .is_some_and(|map| map.groups.iter().all(|view| view.is_full() && view.learners.is_empty()));
        let has_room = |node: &super::process::Node| node.budget.has_room_for_extent(types::EXTENT_BYTES);
        full && self.nodes.iter().all(has_room)
    }

    fn pages_to_scrub(&self) -> u64 {
        let hosts = self.shards.iter().filter_map(|shard| shard.host.as_ref());
        hosts.map(|host| host.scrub_progress().left_pages / 16).sum()
    }

    /// Whether every living process has ended the newest scrub.
    pub(crate) fn is_scrubbed(&self) -> bool {
        let Some(newest) = self.map().map(|map| map.layout.scrub.generation) else { return false };
        let up = |host: &usize| self.nodes[host / self.stage.options.shards].state == Life::Up;
        let hosts = (0..self.shards.len()).filter(up).filter_map(|host| self.shards[host].host.as_ref());
        hosts
            .map(proto::Host::scrub_progress)
            .all(|known| known.generation == newest && known.left_pages == 0)
    }
}

impl Story {
    /// Everything is to be compared with its parities.
    pub fn start_scrub(&mut self, finding: OnFinding) {
        self.world.start_scrub(finding);
        self.look();
    }

    /// Whether that has been done.
    #[must_use]
    pub fn is_scrubbed(&self) -> bool {
        self.world.is_scrubbed()
    }

    /// Waits until that has been done.
    pub fn until_scrubbed(&mut self) {
        self.run_until("everything is compared", Self::is_scrubbed);
    }

    /// How far all nodes together have come.
    #[must_use]
    pub fn scrub_progress(&self) -> ScrubProgress {
        let hosts = self.world.shards.iter().filter_map(|shard| shard.host.as_ref());
        hosts.map(proto::Host::scrub_progress).reduce(ScrubProgress::plus).unwrap_or_default()
    }

    /// What was found.
    #[must_use]
    pub fn scrub_findings(&self) -> Vec<ScrubFinding> {
        let hosts = self.world.shards.iter().filter_map(|shard| shard.host.as_ref());
        hosts.flat_map(proto::Host::scrub_findings).cloned().collect()
    }
}

#[cfg(feature = "planted-bugs")]
mod damage {
    use store::Found;
    use types::{Addr, GroupId, KeyHash, MemberId, RoleIndex};

    use super::Story;

    /// Memory goes bad.
    impl Story {
        /// Flips the bits of `mask` in a byte of what `node` holds for `role`.
        pub fn damage(&mut self, node: usize, role: usize, byte: usize, mask: u8) {
            self.world.damaged = true;
            let member = MemberId { group: GroupId(0), role: RoleIndex(role as u8) };
            if let Some(host) = &mut self.world.shards[node * self.world.stage.options.shards].host {
                host.damage(member, byte, mask);
            }
        }

        /// What was damaged is right again: from now on everything is looked at as before.
        pub fn is_sound_again(&mut self) {
            self.world.damaged = false;
        }

        /// Where the item of `key` lies.
        ///
        /// # Panics
        /// If it is not there.
        #[must_use]
        pub fn slot_of(&self, key: usize) -> Addr {
            let key = &self.world.keys[key];
            let members = self.world.members(self.view());
            let primary = members.data[usize::from(key.member.role.0)].as_ref().expect("the role is served");
            let cluster = self.world.map().expect("the cluster has formed").cluster;
            match primary.store.find(KeyHash::of(cluster, &key.bytes), &key.bytes) {
                Found::Hit(addr, _) => addr,
                other => panic!("the item is not there: {other:?}"),
            }
        }
    }
}
