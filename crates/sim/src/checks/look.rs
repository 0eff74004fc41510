//! One group, looked at: order, index and algebra.

use cluster::Protection;
use proto::host::inspect::ParityInfo;
use rng::Rng;
use types::{ClusterMap, GroupView, MemberId, PAGE_BYTES, RoleIndex, Seq, UnixSeconds};

use crate::clients::Clients;
use crate::cluster::inspect::{Members, Parity};
use crate::cluster::nodes::Nodes;
use crate::shadow::Shadow;
use crate::shadow::stream::{Page, Stream};
use crate::stage::book::Broken;
use crate::stage::report::Stats;

/// Pages that one check compares at each member.
const PAGES_PER_CHECK: usize = 4;

/// How much of a group is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    /// A few random pages and keys, one random loss.
    Sample,
    /// Every page that was ever touched, and all keys.
    Whole,
}

/// What the checks of one group share.
pub(crate) struct Look<'a> {
    pub clients: &'a Clients,
    pub shadow: &'a Shadow,
    /// The most that any clock of the wall has ever shown.
    pub unix: UnixSeconds,
    pub view: &'a GroupView,
    pub map: &'a ClusterMap,
    pub nodes: &'a Nodes,
    pub members: Members<'a>,
    pub protection: Protection,
    /// Whether a key may be at another role than the one where it was at first.
    pub keys_move: bool,
    pub extent: Extent,
    pub rng: Rng,
    pub stats: Stats,
}

impl Look<'_> {
    /// All that can be said of the group.
    pub(super) fn all(&mut self) -> Result<(), Broken> {
        self.stats.checks += 1;
        self.memory();
        // What comes first is what the rest builds on: of a log with a gap the sums can only be
        // wrong, and would say less about why.
        self.order()?;
        self.replicas()?;
        self.algebra()?;
        self.data()?;
        self.durability()
    }

    /// Data roles that have something: all but those that are lost.
    pub(super) fn living_roles(&self) -> impl Iterator<Item = usize> + use<> {
        let lost: Vec<bool> = self.view.data.iter().map(|role| role.status.is_lost()).collect();
        (0..lost.len()).filter(move |role| !lost[*role])
    }

    /// Whether a parity has a role in its sum.
    pub(super) fn covers(&self, parity: &Parity<'_>, role: usize) -> bool {
        self.protection.code().coefficient(parity.row, role) != 0
    }

    /// The parities that have a role in their sums.
    pub(super) fn parities_of(&self, role: usize) -> impl Iterator<Item = &Parity<'_>> {
        self.members.parities_of(&self.protection, role)
    }

    /// What a parity has applied of a role. One that has not heard yet that the role began anew has nothing of it.
    fn applied(&self, parity: &Parity<'_>, role: usize) -> Seq {
        let stream = parity.stream(role);
        let is_blank = stream.replica.touched().count() == 0;
        if is_blank { stream.applied.max(self.shadow(role).first()) } else { stream.applied }
    }

    /// As [`Self::applied`], what it has received.
    pub(super) fn received(&self, parity: &Parity<'_>, role: usize) -> Seq {
        parity.stream(role).received.max(self.applied(parity, role))
    }

    pub(super) fn shadow(&self, role: usize) -> &Stream {
        self.shadow.stream(MemberId { group: self.view.group, role: RoleIndex(role as u8) })
    }

    /// Up to where every in-sync parity has applied each role's stream, and the primary has committed it. Those that learn count
    /// too: one may be in sync at the next look, and a little behind the others.
    pub(super) fn applied_everywhere(&self) -> Vec<Seq> {
        let learned = |role: usize| {
            let index = RoleIndex(role as u8);
            let covering =
                move |learner: &&ParityInfo<'_>| self.protection.covers(learner.member.role, index);
            let learners = self.members.learners.iter().filter(covering);
            learners.filter_map(move |learner| Some(learner.streams.get(role)?.applied))
        };
        let in_sync = |role: usize| self.parities_of(role).map(move |parity| self.applied(parity, role));
        let applied = |role: usize| in_sync(role).chain(learned(role)).min();
        let committed = |role: usize| self.members.data[role].as_ref().map(|primary| primary.info.committed);
        // Pages are compared as of both, so the shadow must still know the older of the two.
        let both = |role: usize| match (applied(role), committed(role)) {
            (Some(applied), Some(committed)) => applied.min(committed),
            (Some(applied), None) => applied,
            _ => Seq(0),
        };
        (0..self.view.k()).map(both).collect()
    }

    /// That the memory of members is in order by their own rules. In a sample that of one: it is a walk over everything there.
    fn memory(&mut self) {
        let (data, parities) = (&self.members.data, &self.members.parities);
        let count = data.len() + parities.len();
        let sampled = (self.extent == Extent::Sample).then(|| self.rng.index(count));
        for at in sampled.map_or(0..count, |at| at..at + 1) {
            match data.get(at) {
                Some(primary) => primary.iter().for_each(|primary| primary.store.check_invariants()),
                None => parities[at - data.len()].info.check_memory(),
            }
        }
    }

    /// I1 and I2.
    fn order(&self) -> Result<(), Broken> {
        for parity in &self.members.parities {
            for role in 0..self.view.k() {
                if !parity.has_stream(role) {
                    return Err(("order", format!("parity {} has no stream for role-{role}", parity.row)));
                }
                self.contiguous(parity, role)?;
                // Nobody waits for a parity that does not have the role in its sum.
                if self.covers(parity, role) {
                    self.committed_is_received(parity, role)?;
                }
            }
        }
        Ok(())
    }

    fn contiguous(&self, parity: &Parity<'_>, role: usize) -> Result<(), Broken> {
        let stream = parity.stream(role);
        let expected = (stream.applied.0 + 1..=stream.received.0).map(Seq);
        let kept = stream.kept.iter().map(|record| record.seq);
        if stream.applied > stream.received || !kept.eq(expected) {
            let kept: Vec<u64> = stream.kept.iter().map(|record| record.seq.0).collect();
            let what = format!(
                "parity {} has applied {} and received {} of role-{role}, and keeps {kept:?}",
                parity.row, stream.applied, stream.received
            );
            return Err(("order", what));
        }
        Ok(())
    }

    fn committed_is_received(&self, parity: &Parity<'_>, role: usize) -> Result<(), Broken> {
        let Some(primary) = &self.members.data[role] else { return Ok(()) };
        let (committed, stream) = (primary.info.committed, parity.stream(role));
        if committed > self.received(parity, role) {
            let what = format!(
                "{} of {} has committed {committed} of role-{role}; parity {} at {}, in sync, has received {}",
                primary.host, primary.info.term, parity.row, parity.host, stream.received
            );
            return Err(("order", what));
        }
        if stream.applied > committed {
            let what = format!(
                "parity {} has applied {} of role-{role}, but no more than {committed} is committed",
                parity.row, stream.applied
            );
            return Err(("order", what));
        }
        Ok(())
    }

    /// Equal records, equal index.
    fn replicas(&mut self) -> Result<(), Broken> {
        for role in self.living_roles() {
            let mut seen: Vec<(Seq, u64, String)> = Vec::new();
            if let Some(primary) = &self.members.data[role] {
                let digest = primary.store.replica().digest();
                seen.push((primary.info.committed, digest, format!("the primary {}", primary.host)));
            }
            for parity in self.parities_of(role) {
                let stream = parity.stream(role);
                seen.push((stream.applied, stream.replica.digest(), format!("parity {}", parity.row)));
            }
            self.stats.replicas += seen.len() as u64;
            for (at, (seq, digest, who)) in seen.iter().enumerate() {
                if let Some((_, _, other)) = seen[..at].iter().find(|(s, d, _)| s == seq && d != digest) {
                    let what =
                        format!("index of role-{role} at record {seq} differs between {other} and {who}");
                    return Err(("index", what));
                }
            }
        }
        Ok(())
    }

    pub(super) fn pages(&mut self, touched: Vec<u32>) -> Vec<u32> {
        if self.extent == Extent::Whole || touched.len() <= PAGES_PER_CHECK {
            return touched;
        }
        (0..PAGES_PER_CHECK).map(|_| self.rng.pick(&touched)).collect()
    }

    fn touched(&self) -> Vec<u32> {
        let mut pages: Vec<u32> = self.living_roles().flat_map(|role| self.shadow(role).touched()).collect();
        pages.sort_unstable();
        pages.dedup();
        pages
    }

    /// I3, against the shadow.
    fn algebra(&mut self) -> Result<(), Broken> {
        // One part that is not known makes the whole sum unknown.
        if self.living_roles().any(|role| self.shadow(role).is_dark()) {
            return Ok(());
        }
        let pages = self.pages(self.touched());
        let (mut expected, mut actual, mut data) = ([0; PAGE_BYTES], [0; PAGE_BYTES], [0; PAGE_BYTES]);
        for parity in &self.members.parities {
            for page in &pages {
                expected.fill(0);
                for role in self.living_roles().filter(|role| self.covers(parity, *role)) {
                    let applied = self.applied(parity, role);
                    if applied < self.shadow(role).base() {
                        let what = format!("parity {} has gone back to {applied} of role-{role}", parity.row);
                        return Err(("algebra", what));
                    }
                    self.shadow(role).page_at(*page, applied, &mut data);
                    codec::mul_add(
                        &mut expected,
                        self.protection.code().coefficient(parity.row, role),
                        &data,
                    )
                    .expect("slices of one length");
                }
                parity.page(*page, &mut actual);
                if actual != expected {
                    let applied: Vec<u64> =
                        (0..self.view.k()).map(|role| parity.stream(role).applied.0).collect();
                    let what = format!(
                        "page {page} of parity {} at {} is not the sum of the data at {applied:?}{}",
                        parity.row,
                        parity.host,
                        first_difference(&actual, &expected)
                    );
                    return Err(("algebra", what));
                }
            }
            self.stats.parity_pages += pages.len() as u64;
        }
        Ok(())
    }

    /// Primaries hold what their streams say, where they have pages at all.
    fn data(&mut self) -> Result<(), Broken> {
        let (mut expected, mut actual) = ([0; PAGE_BYTES], [0; PAGE_BYTES]);
        for role in self.living_roles() {
            if self.shadow(role).is_dark() {
                continue;
            }
            let pages = self.pages(self.shadow(role).touched());
            let Some(primary) = &self.members.data[role] else { continue };
            let committed = primary.info.committed;
            // States that the shadow does not know: before it was taught anew, or with records that it has not seen.
            if committed < self.shadow(role).base() || committed > self.shadow(role).last() {
                continue;
            }
            let mut compared = 0;
            for page in pages {
                if primary.page(page, &mut actual).is_none() {
                    continue;
                }
                self.shadow(role).page_at(page, committed, &mut expected);
                compared += 1;
                if actual != expected {
                    let what = format!(
                        "page {page} of role-{role} at {} is not what its records up to {committed} make{}",
                        primary.host,
                        first_difference(&actual, &expected)
                    );
                    return Err(("data", what));
                }
            }
            self.stats.data_pages += compared;
        }
        Ok(())
    }
}

/// Where two pages begin to differ, and how much of them does.
pub(crate) fn first_difference(actual: &Page, expected: &Page) -> String {
    let different = actual.iter().zip(expected).filter(|(a, b)| a != b).count();
    match actual.iter().zip(expected).position(|(a, b)| a != b) {
        Some(at) => format!(" (first at byte {at}: {} for {}; {different} bytes)", actual[at], expected[at]),
        None => String::new(),
    }
}
