//! At rest: everything has ended, is whole, and agrees.

use types::op::Outcome;
use types::{DataRole, EXTENT_BYTES, GroupView, HostId, NodeId, NodeInfo, PAGE_BYTES, RoleIndex, RoleStatus};

use super::look::first_difference;
use super::{chunks, quotas};
use crate::clients::Clients;
use crate::cluster::Cluster;
use crate::cluster::inspect::Members;
use crate::cluster::process::Life;
use crate::options::Options;
use crate::stage::book::{Book, Suspect};
use crate::stage::brief::Brief;

/// A cluster that should be at rest.
pub(crate) struct AtRest<'a> {
    pub options: &'a Options,
    pub cluster: &'a Cluster,
    pub clients: &'a Clients,
}

impl AtRest<'_> {
    /// Whether nothing is left to do: no call runs, every role is full or lost, and everything is committed.
    pub(crate) fn is_whole(&self) -> bool {
        let Some(map) = self.cluster.map() else { return false };
        self.clients.are_idle() && self.is_at_rest() && map.groups.iter().all(|view| self.is_protected(view))
    }

    /// Whether every role is full or lost, and everything is committed.
    pub(crate) fn is_at_rest(&self) -> bool {
        self.cluster.map().is_some_and(|map| {
            let all_whole = map.groups.iter().all(|view| self.is_group_whole(view));
            all_whole && self.stirring().is_none()
        })
    }

    /// What is not at rest of values in chunks, or of quotas.
    fn stirring(&self) -> Option<String> {
        let (map, nodes) = (self.cluster.map()?, &self.cluster.nodes);
        let takes_chunks = map.groups.iter().any(GroupView::takes_chunks);
        let is_starved =
            map.groups.iter().any(|view| view.data.iter().any(|role| self.is_starved(view, role)));
        let unrest = takes_chunks.then(|| chunks::unrest(map, nodes, is_starved)).flatten();
        unrest.or_else(|| quotas::unrest(map, nodes))
    }

    /// Whether the chunks of every role that has a member with room are where that is.
    fn are_chunks_held(&self, view: &GroupView) -> bool {
        let has_room = |host: HostId| {
            self.cluster.nodes[usize::from(host.node.0)].budget.room_for_chunks() >= EXTENT_BYTES as u64
        };
        view.all_holders().all(|(role, holder)| {
            let is_filling = view.holders_of(role).filling == Some(holder);
            !is_filling || !has_room(holder.host)
        })
    }

    /// Whether every parity is in sync that could be, and no node has two roles that needs not: as long as a living node
    /// without a role in the group has the memory, another member can be built there.
    fn is_protected(&self, view: &GroupView) -> bool {
        let protection = self.options.protection();
        let is_missing = |(row, host): (usize, &Option<HostId>)| {
            host.is_none() && protection.has_teachers(view, RoleIndex((view.k() + row) as u8))
        };
        let missing = view.parity.iter().enumerate().any(is_missing);
        let shares = |host: HostId| view.roles_on(host.node) > 1;
        let crowded = view.data.iter().filter_map(|role| role.primary).any(shares);
        // Nothing is built in a group that recovers, so nothing can be asked of it yet.
        if !view.is_steady() || !missing && !crowded && view.learners.is_empty() {
            return true;
        }
        let is_learning = view.learners.iter().any(|learner| self.has_room(learner.host.node));
        !is_learning && !self.is_place_free(view)
    }

    /// Whether a living node without a role in the group has the memory for any of its roles.
    fn is_place_free(&self, view: &GroupView) -> bool {
        let is_free = |node: &NodeInfo| {
            node.alive && view.roles_on(node.host.node) == 0 && self.has_room(node.host.node)
        };
        self.cluster.map().is_some_and(|map| map.nodes.iter().any(is_free))
    }

    fn has_room(&self, node: NodeId) -> bool {
        let needed = (self.options.memory.area_extents + 1) as usize * EXTENT_BYTES;
        self.cluster.nodes[usize::from(node.0)].budget.has_room_for_extent(needed)
    }

    fn is_group_whole(&self, view: &GroupView) -> bool {
        if !self.are_chunks_held(view) {
            return false;
        }
        let protection = self.options.protection();
        let members = Members::of(&self.cluster.nodes, view);
        (0..view.k()).all(|role| {
            let data = &view.data[role];
            // Where nobody lives nobody can begin anew.
            let nowhere = || self.cluster.nodes.iter().all(|node| node.state == Life::Down);
            let has_ended =
                data.status == RoleStatus::Lost || data.status == RoleStatus::Accepted && nowhere();
            if has_ended || self.is_starved(view, data) {
                return true;
            }
            if data.status != RoleStatus::Full {
                return false;
            }
            let Some(primary) = &members.data[role] else { return false };
            let committed = primary.info.committed;
            committed == primary.info.last
                && primary.store.absent_count() == 0
                // A parity whose process is gone is still named by the view, but is no
                // member that can be looked into.
                && members.parities.len() == view.in_sync().count()
                && members.parities_of(&protection, role).all(|parity| {
                    parity.stream(role).applied == committed && parity.stream(role).received == committed
                })
        })
    }

    /// Whether a stand-in cannot be rebuilt because its node has no memory left, and none has that it could make way for: nothing
    /// will change that here.
    fn is_starved(&self, view: &GroupView, role: &DataRole) -> bool {
        let budget = |host: HostId| &self.cluster.nodes[usize::from(host.node.0)].budget;
        matches!(role.status, RoleStatus::Rebuilding { .. })
            && role.primary.is_some_and(|host| !budget(host).has_room_for_extent(EXTENT_BYTES))
            && !self.is_place_free(view)
    }

    /// Where something is missing.
    pub(crate) fn missing_suspect(&self) -> Option<Suspect> {
        let map = self.cluster.map()?;
        map.groups
            .iter()
            .find(|view| !self.is_group_whole(view) || !self.is_protected(view))
            .map(|view| Suspect::Group(view.group))
    }

    pub(crate) fn what_is_missing(&self) -> String {
        let Some(map) = self.cluster.map() else { return "no map".to_owned() };
        let running = self.clients.running_count();
        let mut what = format!("not at rest: {running} calls run");
        if let Some(stirring) = self.stirring() {
            what.push_str(&format!("; {stirring}"));
        }
        for view in map.groups.iter().filter(|view| !self.is_group_whole(view) || !self.is_protected(view)) {
            what.push_str(&format!("; {}", Brief(view)));
            let members = Members::of(&self.cluster.nodes, view);
            for (role, primary) in members.data.iter().enumerate() {
                match primary {
                    None => what.push_str(&format!("; role-{role} is not served")),
                    Some(p) => what.push_str(&format!(
                        "; role-{role} committed {} of {}, {} pages absent, {} waiting",
                        p.info.committed,
                        p.info.last,
                        p.store.absent_count(),
                        p.info.waiting
                    )),
                }
            }
        }
        what
    }

    /// At rest: the parities are what encoding the primaries' own memory gives, and nothing is lost without reason.
    pub(crate) fn check_agreement(&self, book: &mut Book) {
        let Some(map) = self.cluster.map() else { return };
        for view in &map.groups {
            let lost = view.data.iter().filter(|role| role.status.is_lost()).count() as u64;
            book.stats.lost_roles += lost;
            if lost > 0 && self.options.faults.beyond == 0 {
                let what =
                    format!("{lost} roles of {} are lost, though never more than m members were", view.group);
                book.fail("margin", Some(Suspect::Group(view.group)), what);
            }
            let absent = view.parity.iter().filter(|host| host.is_none()).count();
            book.stats.evictions += absent as u64;
            if let Err(what) = self.encoded(view) {
                book.fail("algebra", Some(Suspect::Group(view.group)), what);
            }
        }
        book.stats.keys_given_up = self.clients.keys_given_up();
    }

    fn encoded(&self, view: &GroupView) -> Result<(), String> {
        if !view.is_steady() {
            return Ok(());
        }
        let protection = self.options.protection();
        let code = protection.code();
        let members = Members::of(&self.cluster.nodes, view);
        let mut pages: Vec<u32> =
            members.data.iter().flatten().flat_map(|p| p.store.replica().touched().iter()).collect();
        pages.sort_unstable();
        pages.dedup();
        let (mut sum, mut page_bytes) = ([0; PAGE_BYTES], [0; PAGE_BYTES]);
        for parity in &members.parities {
            for page in &pages {
                sum.fill(0);
                let living = |(role, _): &(usize, _)| !view.data[*role].status.is_lost();
                for (role, primary) in members.data.iter().enumerate().filter(living) {
                    let present = primary.as_ref().and_then(|primary| primary.page(*page, &mut page_bytes));
                    present.ok_or_else(|| format!("page {page} of role-{role} is absent at rest"))?;
                    codec::mul_add(&mut sum, code.coefficient(parity.row, role), &page_bytes)
                        .expect("slices of one length");
                }
                parity.page(*page, &mut page_bytes);
                if sum != page_bytes {
                    let difference = first_difference(&page_bytes, &sum);
                    return Err(format!(
                        "{}: at rest page {page} of parity {} is wrong{difference}",
                        view.group, parity.row
                    ));
                }
            }
        }
        Ok(())
    }

    /// A key that is not lost can be read in the end.
    pub(crate) fn check_last_read(&self, book: &mut Book, key: usize, call: u32) {
        let member = self.clients.keys()[key].member;
        let view = self.cluster.map().and_then(|map| map.group(member.group));
        let role = view.and_then(|view| view.data_role(member.role)).copied();
        if view.zip(role).is_some_and(|(view, role)| self.is_starved(view, &role)) {
            return;
        }
        let status = role.map(|role| role.status);
        let refused = matches!(self.clients.answer(call), Some(Outcome::Failed(_)));
        let lost = status == Some(RoleStatus::Lost);
        // Both ways: a refusal without a loss, and an answer for what is lost.
        if refused != lost {
            let what = format!(
                "the last read of key {key} of {member} ({status:?}) ends with {:?}",
                self.clients.answer(call)
            );
            book.fail("liveness", Some(Suspect::Key(key)), what);
        }
    }
}
