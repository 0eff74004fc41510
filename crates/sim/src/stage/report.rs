//! What came of a run.

use std::fmt;

use super::brief::Digest;
use crate::options::Focus;

/// A rule that was broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Virtual time in microseconds.
    pub at: u64,
    /// Which event.
    pub event: u64,
    /// The rule, in a word or two: tests tell failures apart by it.
    pub rule: &'static str,
    /// What was seen.
    pub what: String,
}

/// What happened in a run, counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Events of any kind.
    pub events: u64,
    /// Messages that processes were given: of each other, and of and to coordinators.
    pub messages: u64,
    /// Calls that were answered.
    pub answered: u64,
    /// Calls whose outcome nobody knows.
    pub unknown: u64,
    /// Calls that were refused without effect.
    pub refused: u64,
    /// Times that calls were made again under their names.
    pub asked_again: u64,
    /// Of all calls, those of native clients.
    pub native_calls: u64,
    /// Connections of native clients that broke.
    pub native_cuts: u64,
    /// Parts of lost chunks that native clients have asked nodes to have made.
    pub asked_parts: u64,
    /// Bytes that were received in the buffers of native clients.
    pub landed_bytes: u64,
    /// Scans of native clients that came to their end.
    pub scans: u64,
    /// Roles that began to move because somebody wanted them to.
    pub moves: u64,
    /// Exchanges of a data role and a parity whose second step began.
    pub exchanges: u64,
    /// Nodes that crashed.
    pub crashes: u64,
    /// Faults of all kinds.
    pub faults: u64,
    /// Changes of views.
    pub views: u64,
    /// Takeovers: new terms.
    pub takeovers: u64,
    /// Parities that left the views.
    pub evictions: u64,
    /// Parities that came back with what they had applied.
    pub resumed: u64,
    /// Repair sessions that ended with a residual.
    pub residuals: u64,
    /// Bytes of pages that were sent to repair others: to parities, and what was left there to the stand-ins.
    pub repair_bytes: u64,
    /// Expensive checks.
    pub checks: u64,
    /// Pages compared with the shadow, at parities.
    pub parity_pages: u64,
    /// Pages compared with the shadow, at primaries.
    pub data_pages: u64,
    /// Pages of hypothetically lost roles decoded from the survivors.
    pub decoded_pages: u64,
    /// Items found in decoded areas and held against the oracle.
    pub decoded_items: u64,
    /// Index replicas compared.
    pub replicas: u64,
    /// Keys whose history was not checked to the end.
    pub keys_given_up: u64,
    /// Coordinators that followed another one.
    pub successions: u64,
    /// Coordinators that resigned.
    pub resignations: u64,
    /// Roles that were lost because the seed went beyond `m`.
    pub lost_roles: u64,
    /// Roles that were lost and began anew.
    pub begun_anew: u64,
    /// Extents that primaries have given back, of those that live at the end of the run.
    pub released_extents: u64,
    /// Pages that scrubs have compared, at the end of the run.
    pub scrubbed_pages: u64,
    /// Stripes that went to another group than the one that they were to go to, by the writers that live at the end of the run.
    pub moved_stripes: u64,
    /// Times that an upload began anew under another id.
    pub renamed_uploads: u64,
    /// Values that were written anew for another pool.
    pub rewritten_values: u64,
    /// Chunks of parities that holders have made of products for those writers.
    pub summed_chunks: u64,
    /// Those of them that were put after all.
    pub unsummed_chunks: u64,
    /// Parts of lost chunks that graphs have made for readers.
    pub made_parts: u64,
    /// Those that a graph has not made that was begun.
    pub left_parts: u64,
    /// Links that were measured on purpose by the last probe of each host that lives at the end of the run.
    pub probed_links: u64,
    /// Slow links that those hosts know of, most of them from others.
    pub slow_links: u64,
}

/// The end of a run.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed.
    pub seed: u64,
    /// What it looked at.
    pub focus: Focus,
    /// Digest of everything that happened.
    pub digest: Digest,
    /// Counts.
    pub stats: Stats,
    /// Virtual time at the end, in microseconds.
    pub ended_at: u64,
    /// The first broken rule.
    pub failure: Option<Failure>,
    /// Who was concerned: histories of the key, views, the last lines of the trace.
    pub context: Vec<String>,
}

impl Stats {
    /// Adds what graphs have made for readers of a host.
    pub(crate) fn count_parts(&mut self, reads: &proto::ReadStats) {
        self.made_parts += reads.made;
        self.left_parts += reads.left;
    }

    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Self) {
        for (sum, more) in [
            (&mut self.events, other.events),
            (&mut self.messages, other.messages),
            (&mut self.answered, other.answered),
            (&mut self.unknown, other.unknown),
            (&mut self.asked_again, other.asked_again),
            (&mut self.native_calls, other.native_calls),
            (&mut self.native_cuts, other.native_cuts),
            (&mut self.landed_bytes, other.landed_bytes),
            (&mut self.scans, other.scans),
            (&mut self.refused, other.refused),
            (&mut self.crashes, other.crashes),
            (&mut self.faults, other.faults),
            (&mut self.views, other.views),
            (&mut self.moves, other.moves),
            (&mut self.exchanges, other.exchanges),
            (&mut self.takeovers, other.takeovers),
            (&mut self.evictions, other.evictions),
            (&mut self.begun_anew, other.begun_anew),
            (&mut self.resumed, other.resumed),
            (&mut self.residuals, other.residuals),
            (&mut self.repair_bytes, other.repair_bytes),
            (&mut self.checks, other.checks),
            (&mut self.parity_pages, other.parity_pages),
            (&mut self.data_pages, other.data_pages),
            (&mut self.decoded_pages, other.decoded_pages),
            (&mut self.decoded_items, other.decoded_items),
            (&mut self.replicas, other.replicas),
            (&mut self.keys_given_up, other.keys_given_up),
            (&mut self.successions, other.successions),
            (&mut self.resignations, other.resignations),
            (&mut self.lost_roles, other.lost_roles),
            (&mut self.scrubbed_pages, other.scrubbed_pages),
            (&mut self.moved_stripes, other.moved_stripes),
            (&mut self.renamed_uploads, other.renamed_uploads),
            (&mut self.rewritten_values, other.rewritten_values),
            (&mut self.summed_chunks, other.summed_chunks),
            (&mut self.unsummed_chunks, other.unsummed_chunks),
            (&mut self.made_parts, other.made_parts),
            (&mut self.left_parts, other.left_parts),
            (&mut self.asked_parts, other.asked_parts),
            (&mut self.probed_links, other.probed_links),
            (&mut self.slow_links, other.slow_links),
            (&mut self.released_extents, other.released_extents),
        ] {
            *sum += more;
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} (event {}, {} us)", self.rule, self.what, self.event, self.at)
    }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            events,
            messages,
            answered,
            unknown,
            asked_again,
            native_calls,
            native_cuts,
            landed_bytes,
            scans,
            refused,
            crashes,
            faults,
            views,
            takeovers,
            moves,
            exchanges,
            evictions,
            resumed,
            ..
        } = self;
        writeln!(
            f,
            "{events} events, {messages} messages delivered; calls: {answered} answered, {unknown} unknown, {refused} refused, {asked_again} made again; {native_calls} by native clients, with {native_cuts} broken connections, {landed_bytes} bytes in their buffers and {scans} scans"
        )?;
        writeln!(
            f,
            "{faults} faults ({crashes} crashes), {views} views, {takeovers} takeovers, {moves} moves, {exchanges} exchanges, {evictions} parities removed, {resumed} resumed, {} residuals, {} pages scrubbed, {} stripes elsewhere, {} uploads renamed, {} values written anew for another pool, {} parities summed and {} put after all, {} parts of lost chunks made for readers and {} not ({} asked for by native clients), {} links probed and {} known to be slow, {} extents released, {} roles lost, {} began anew, {} coordinators after the first, {} resigned",
            self.residuals,
            self.scrubbed_pages,
            self.moved_stripes,
            self.renamed_uploads,
            self.rewritten_values,
            self.summed_chunks,
            self.unsummed_chunks,
            self.made_parts,
            self.left_parts,
            self.asked_parts,
            self.probed_links,
            self.slow_links,
            self.released_extents,
            self.lost_roles,
            self.begun_anew,
            self.successions,
            self.resignations
        )?;
        write!(
            f,
            "{} checks: {} parity pages, {} data pages, {} decoded pages, {} decoded items, {} replicas; {} keys given up",
            self.checks,
            self.parity_pages,
            self.data_pages,
            self.decoded_pages,
            self.decoded_items,
            self.replicas,
            self.keys_given_up
        )
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.failure {
            None => write!(f, "seed {} passed: {}\ndigest {}", self.seed, self.stats, self.digest),
            Some(failure) => {
                writeln!(f, "seed {} FAILED. {failure}", self.seed)?;
                for line in &self.context {
                    writeln!(f, "  {line}")?;
                }
                write!(f, "replay: cargo run -p sim --release -- --seed {} --focus {}", self.seed, self.focus)
            }
        }
    }
}
