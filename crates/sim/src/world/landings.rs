//! What comes to native clients, in whatever steps they read it, and what of it is received in buffers that they have lent to their reads.

use bytes::{Buf, BufMut, Bytes};
use client_core::{Done, Error, Intake, Next as Goes, RequestId};
use rng::Rng;

use super::natives::Natively;
use crate::natives::{Caller, Next, Process};
use crate::stage::book::Broken;
use crate::world::World;

/// One read of so many lends no buffer.
const WITHOUT: u64 = 3;
/// How long buffers are: of short values and of all that go into a frame, and for all that there are.
const LENGTHS: [usize; 3] = [5_000, 66_000, 320_000];

impl Natively<'_> {
    /// Some reads have buffers in which their values may be received.
    pub(super) fn lend(&mut self, process: usize, id: RequestId) {
        let World { stage, natives, .. } = self.world();
        let rng = &mut stage.rng.landings;
        if rng.once_in(WITHOUT) {
            return;
        }
        let Process { core, buffers, .. } = &mut natives.processes[process];
        match buffers.lend(id, rng.pick(&LENGTHS)) {
            Ok(true) => core.receiving().has_room(id, buffers.room(id).unwrap_or(0)),
            Ok(false) => {}
            Err((rule, what)) => stage.book.fail(rule, None, what),
        }
    }

    /// A request is over: what it has come to is what lies in its buffer, if it has lent one.
    pub(super) fn take_back(
        &mut self,
        process: usize,
        id: RequestId,
        mut caller: Caller,
        result: &Result<Done, Error>,
    ) -> Caller {
        let World { stage, natives, .. } = self.world();
        let told = matches!(result, Ok(Done::Value)).then_some(&caller.value[..]);
        match natives.processes[process].buffers.take_back(id, told) {
            Ok(Some(value)) => caller.value = value,
            Ok(None) => {}
            Err((rule, what)) => stage.book.fail(rule, None, what),
        }
        caller
    }

    /// A part of a value has come: the next one is asked for. What comes of the call if that was the last.
    pub(super) fn reads_on(
        &mut self,
        process: usize,
        mut caller: Caller,
        result: Result<Done, Error>,
    ) -> Option<(Caller, Result<Done, Error>)> {
        let World { stage, natives, .. } = self.world();
        let owner = &mut natives.processes[process];
        let now = owner.now(stage);
        let (Some(parts), Some(meta), Ok(Done::Value)) = (&mut caller.parts, caller.found, &result) else {
            return Some((caller, result));
        };
        let next = match parts.next(now, &meta, caller.value.len() as u64) {
            Next::Over => return Some((caller, result)),
            Next::Late => return Some((caller, Err(Error::TimedOut))),
            Next::More(next) => next,
            Next::Anew(next) => {
                caller.value.clear();
                next
            }
        };
        match owner.core.submit(now, next) {
            Ok(id) => drop(owner.callers.insert(id, caller)),
            Err(error) => return Some((caller, Err(error))),
        }
        None
    }

    /// Whether nobody has written to what a process has back.
    pub(crate) fn check_buffers(&mut self, process: usize) {
        let World { stage, natives, .. } = self.world();
        if let Err((rule, what)) = natives.processes[process].buffers.are_its_own() {
            stage.book.fail(rule, None, what);
        }
    }

    /// Bytes come to a client, also on a connection that it has closed: they had been read before.
    pub(super) fn arrives_down(&mut self, link: u32) {
        let World { stage, natives, .. } = self.world();
        let Some(bytes) = natives.link(link).down.pop(stage.now()) else { return };
        stage.book.mix(stage.now() ^ u64::from(link) << 32);
        let (conn, mut rest) = (natives.link(link).conn, bytes.clone());
        while !rest.is_empty() {
            let Some((process, _)) = self.world().natives.owner(link) else { return };
            self.reads(link, process, &mut rest);
            self.stir(process);
        }
        if let Some((_, owner)) = self.world().natives.owner(link) {
            owner.promises.heard(conn, &bytes);
        }
    }

    /// A client reads once of what has come.
    fn reads(&mut self, link: u32, process: usize, rest: &mut Bytes) {
        let World { stage, natives, .. } = self.world();
        let conn = natives.link(link).conn;
        let mut intake = std::mem::replace(&mut natives.link(link).intake, Intake::of(conn));
        let owner = &mut natives.processes[process];
        let is_careful = intake.lands() || owner.core.receiving().awaits_values(conn);
        let most = if is_careful { step(&mut stage.rng.landings, rest.len()) } else { rest.len() };
        let now = owner.now(stage);
        match receive(owner, &mut intake, now, &rest[..most]) {
            Ok((came, landed)) => {
                rest.advance(came);
                stage.book.stats.landed_bytes += landed;
            }
            Err((rule, what)) => {
                rest.clear();
                stage.book.fail(rule, None, what);
            }
        }
        natives.link(link).intake = intake;
    }
}

/// How many of so many bytes one read takes.
fn step(rng: &mut Rng, len: usize) -> usize {
    let most = rng.pick(&[600, 20_000, usize::MAX]).min(len);
    1 + rng.index(most)
}

/// How many of the bytes were taken, and how many of these are in buffers now.
fn receive(
    owner: &mut Process,
    intake: &mut Intake,
    now: types::Time,
    bytes: &[u8],
) -> Result<(usize, u64), Broken> {
    let Process { core, buffers, .. } = owner;
    if !intake.lands() {
        intake.input().extend_from_slice(bytes);
        intake.hear(now, core, buffers);
        return Ok((bytes.len(), buffers.settle()?));
    }
    let came = match intake.next(core, buffers) {
        Goes::Place(place) => {
            let came = place.remaining_mut().min(bytes.len());
            place.put_slice(&bytes[..came]);
            came
        }
        Goes::Scrap(left) => left.min(bytes.len()),
    };
    let landed = buffers.settle()?;
    intake.came(came);
    intake.hear_landed(now, core, buffers);
    Ok((came, landed))
}
