//! The one place where a worker's state machine is asked what to do, and where it is done.
//!
//! It runs after every task that was ready at the same time, so whatever came in together goes out together: one Frame a parity,
//! one write a link, one write a connection.

use std::cell::RefMut;
use std::future::{Future as _, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};

use proto::{Action, Host, Now, Token};
use tokio::time::Sleep;
use types::op::Outcome;
use types::{NodeId, Time};
use wire::message::PeerMessage;

use crate::workers::asker::{Asker, Awaits};
use crate::workers::streams::News;
use crate::workers::worker::Worker;

/// Finest distance of two timers, in microseconds: the runtime's own.
const TIMER_GRAIN_US: u64 = 1_000;

/// Pumps whenever something has changed or a timer is due, for ever.
pub(crate) async fn run(worker: Rc<Worker>) {
    let mut timer = pin!(tokio::time::sleep(std::time::Duration::ZERO));
    let mut armed = Time(0);
    // The host's next deadline as of the last cycle. What has come in since may have brought it forward; this cycle finds out.
    let mut deadline = Time(0);
    poll_fn(|cx| {
        worker.pump.register(cx);
        let now = worker.clock.now();
        // Here and not in a task of its own: a worker whose cycle stands still must not seem to live.
        worker.face().pulse.store(now.time.0, Ordering::Relaxed);
        // The timer stands still while the machine is suspended, the clock of the leases does not: both are asked.
        let due = timer.is_elapsed() || armed <= now.time;
        if worker.pump.take() | due {
            // A cycle that runs anyway also does what is due by now: the timer may be a little late.
            cycle(&worker, now, due || deadline <= now.time);
            if due {
                // It has to be set anew even if the clock says that it was early: an elapsed timer wakes nobody again.
                armed = Time(0);
            }
            deadline = worker.host.borrow().next_deadline();
            arm(&worker, now.time, deadline, &mut armed, timer.as_mut(), cx);
        }
        Poll::<()>::Pending
    })
    .await;
}

/// Asks the host for everything that is to be done, and does it.
fn cycle(worker: &Worker, now: Now, due: bool) {
    worker.counters.pumps.inc();
    ask(worker, now, due, |to, message| worker.links.push(&worker.gate, &worker.counters, to, message));
    worker.links.write(&worker.gate, &worker.counters);
    worker.crossings.flush();
    worker.deliver();
}

/// Asks the host for everything that is to be done, and does it but for writing; messages to peers go to `send`.
pub(crate) fn ask(worker: &Worker, now: Now, due: bool, mut send: impl FnMut(NodeId, PeerMessage)) {
    let mut host = worker.host.borrow_mut();
    if due {
        host.tick(now);
    }
    host.flush(now);
    while let Some((token, outcome)) = host.actions().next_answer() {
        let asker = Asker::from(token);
        match asker.awaits {
            Awaits::Answer => worker.reply(now, asker, outcome),
            _ => reply_to_others(worker, &mut host, now, token, outcome),
        }
    }
    while let Some((to, message)) = host.actions().next_message() {
        send(to, message);
    }
    if host.actions().are_any() {
        ask_on(worker, host, now, &mut send);
    }
}

/// What is seldom to be done.
#[cold]
fn ask_on(worker: &Worker, mut host: RefMut<'_, Host>, now: Now, send: &mut dyn FnMut(NodeId, PeerMessage)) {
    let mut later = Vec::new();
    while let Some(action) = host.poll_action() {
        match action {
            Action::Send { to, message } => send(to, message),
            Action::Reply { token, outcome } => reply_to_others(worker, &mut host, now, token, outcome),
            Action::Ask { .. } | Action::Write { .. } => later.push(action),
            action => carry_out(worker, &mut host, now, action),
        }
    }
    drop(host);
    later.into_iter().for_each(|action| ask_host(worker, now, action));
}

/// An answer, as a rule for somebody who is no client with a request.
#[cold]
fn reply_to_others(worker: &Worker, host: &mut Host, now: Now, token: Token, outcome: Outcome) {
    let asker = Asker::from(token);
    match asker.awaits {
        Awaits::HostAnswer if asker.shard == worker.shard => {
            worker.pump.request();
            host.following(now).hear(asker.slot, outcome);
        }
        Awaits::Answer => worker.reply(now, asker, outcome),
        Awaits::HostAnswer => worker.reply_elsewhere(now, asker, outcome),
        Awaits::News | Awaits::HostNews => {
            worker.streams.end(token);
            worker.tell_from(host, now, asker, News::Ended(outcome));
        }
    }
}

/// Does what is seldom to be done.
#[cold]
fn carry_out(worker: &Worker, host: &mut Host, now: Now, action: Action) {
    match action {
        Action::Close { peer, .. } => worker.links.close(peer),
        Action::Room { token } => {
            if let Some(news) = worker.streams.room(host, now, token) {
                worker.tell_from(host, now, token.into(), news);
            }
        }
        Action::Part { token, bytes } => worker.tell(token.into(), News::Part(bytes)),
        Action::Whole { token } => worker.end_stream(token, News::Whole),
        // A full queue is like a lost connection: the protocol asks again.
        Action::Coordinator(message) => drop(worker.shared.to_coordinator.try_send(*message)),
        Action::Send { .. } | Action::Reply { .. } | Action::Ask { .. } | Action::Write { .. } => {
            unreachable!("they are often, or come later")
        }
    }
}

/// Has this node's hosts asked for something, or something written by one of them, for the host.
fn ask_host(worker: &Worker, now: Now, action: Action) {
    match action {
        Action::Ask { number, place, request } => worker.ask_onward(now, number, place, request),
        Action::Write { number, shard, step } => worker.write(now, number, shard, step),
        _ => {}
    }
}

/// Sets the timer to `deadline`, the host's next one, and to the worker's next sign of life.
fn arm(
    worker: &Worker,
    now: Time,
    deadline: Time,
    armed: &mut Time,
    mut timer: Pin<&mut Sleep>,
    cx: &mut Context<'_>,
) {
    let pulse = now + worker.shared.config.timing.heartbeat_us / 2;
    // Never at once, or a deadline that is over already would make this loop spin.
    let next = deadline.min(pulse).max(now + TIMER_GRAIN_US);
    if *armed > now && *armed <= next {
        // An early tick does no harm, and is cheaper than to move the timer every time.
        return;
    }
    *armed = next;
    if let Some(instant) = worker.clock.instant(next) {
        timer.as_mut().reset(instant);
        // A timer wakes only who has polled it. One that is over by then wakes nobody, so that is done here.
        if timer.poll(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
    }
}
