//! The inside of the members of one group, as the present view names them: the one place that knows how to look.

use cluster::Protection;
use proto::host::inspect::{ParityInfo, PrimaryInfo, StreamInfo};
use store::DataStore;
use types::{GroupView, HostId, PAGE_BYTES, PageRange, Seq};

use super::nodes::Nodes;
use crate::shadow::stream::{Page, xor_page};

/// A serving primary: named by the view, of its term, and with its index.
pub(crate) struct Primary<'a> {
    pub host: HostId,
    pub info: PrimaryInfo<'a>,
    pub store: &'a DataStore,
}

/// An in-sync parity whose process has not ended.
pub(crate) struct Parity<'a> {
    /// `0..m`.
    pub row: usize,
    pub host: HostId,
    pub info: ParityInfo<'a>,
}

/// The members of a group that are there.
pub(crate) struct Members<'a> {
    /// By data role; none where nobody serves.
    pub data: Vec<Option<Primary<'a>>>,
    /// In-sync parities, by row.
    pub parities: Vec<Parity<'a>>,
    /// Those that learn to be parities.
    pub learners: Vec<ParityInfo<'a>>,
}

impl<'a> Members<'a> {
    /// Looks into the members of `view`.
    pub(crate) fn of(nodes: &'a Nodes, view: &GroupView) -> Self {
        let k = view.k();
        let data = view.data_roles().map(|(role, data)| {
            let host = data.primary?;
            let machine = nodes.host_by_id(host, view.group)?;
            let info = machine.primaries().find(|p| p.member.group == view.group && p.member.role == role)?;
            let store = info.store?;
            // A former primary that has not heard of its successor is none: nothing that it says counts.
            (info.term == data.term && !data.status.is_lost()).then_some(Primary { host, info, store })
        });
        let data = data.collect();
        let parities = view.in_sync().filter_map(|(role, host)| {
            let machine = nodes.host_by_id(host, view.group)?;
            let info = machine.parities().find(|p| p.member.group == view.group && p.member.role == role)?;
            Some(Parity { row: usize::from(role.0) - k, host, info })
        });
        let learners = view.learners.iter().filter(|learner| usize::from(learner.role.0) >= k);
        let learners = learners.filter_map(|learner| {
            let machine = nodes.host_by_id(learner.host, view.group)?;
            machine.parities().find(|p| p.member.group == view.group && p.member.role == learner.role)
        });
        Self { data, parities: parities.collect(), learners: learners.collect() }
    }
}

impl<'a> Members<'a> {
    /// The parities that have data role `role` in their sums.
    pub(crate) fn parities_of<'b>(
        &'b self,
        protection: &'b Protection,
        role: usize,
    ) -> impl Iterator<Item = &'b Parity<'a>> {
        let covers = move |parity: &&Parity<'_>| protection.code().coefficient(parity.row, role) != 0;
        self.parities.iter().filter(covers)
    }

    /// The newest record of each role that any member has taken into its area.
    pub(crate) fn reached(&self) -> Vec<Seq> {
        let committed = |role: usize| self.data[role].as_ref().map(|primary| primary.info.committed);
        let applied = |role: usize| self.parities.iter().map(move |parity| parity.stream(role).applied).max();
        (0..self.data.len()).map(|role| committed(role).max(applied(role)).unwrap_or(Seq(0))).collect()
    }
}

impl Primary<'_> {
    /// A page of its area as of its committed record; none if it is absent.
    pub(crate) fn page(&self, page: u32, out: &mut Page) -> Option<()> {
        let pages = PageRange { first: page, count: 1 };
        if !self.store.pages_present(pages) {
            return None;
        }
        out.copy_from_slice(self.store.page_bytes(pages));
        Some(())
    }
}

impl Parity<'_> {
    /// A page of its area; zeros where nothing was ever written.
    pub(crate) fn page(&self, page: u32, out: &mut Page) {
        let start = page as usize * PAGE_BYTES;
        let area = self.info.area;
        if area.covers(start, PAGE_BYTES) {
            out.copy_from_slice(area.bytes(start, PAGE_BYTES))
        } else {
            out.fill(0)
        }
    }

    /// What it has of data role `role`.
    pub(crate) fn stream(&self, role: usize) -> &StreamInfo<'_> {
        &self.info.streams[role]
    }

    /// Whether it knows anything of that role: a stream for every data role.
    pub(crate) fn has_stream(&self, role: usize) -> bool {
        role < self.info.streams.len()
    }
}

/// `out ^=` the deltas of the kept records up to `upto`, where they touch `page`.
pub(crate) fn add_kept(stream: &StreamInfo<'_>, upto: Seq, page: u32, out: &mut Page) {
    for record in stream.kept.iter().take_while(|record| record.seq <= upto) {
        for write in &record.writes {
            xor_page(out, page, write.addr.byte(), &write.delta);
        }
    }
}
