//! The primaries of a host, and which of them have something to do.
//!
//! A cycle of the driver concerns few of them: those that a message, a request or a timer has reached. Only these are asked what they
//! have to send and what they wait for next.

use types::{MemberId, Time};

use super::roster::Roster;
use super::surroundings::Surroundings;
use crate::Now;
use crate::outbox::Context;
use crate::primary::{Primary, Touched};

/// See the module.
#[derive(Default)]
pub(super) struct Primaries {
    all: Roster<Primary>,
    /// The places of those to which something has happened since they were armed; a place may come twice.
    awake: Vec<u32>,
    /// When each has something to do, as of when it was armed, by its place: so that those that wait are not even looked at.
    due_of: Vec<Time>,
    /// The first of them, or sooner: who was the first may have been armed anew.
    due: Time,
}

impl Primaries {
    /// All of them.
    pub(super) fn all(&self) -> &Roster<Primary> {
        &self.all
    }

    pub(super) fn serve(&self, id: MemberId) -> bool {
        self.all.contains(id)
    }

    /// For a read, which leaves nothing to do.
    pub(super) fn get_mut(&mut self, id: MemberId) -> Option<&mut Primary> {
        self.all.get_mut(id)
    }

    pub(super) fn insert(&mut self, id: MemberId, primary: Primary) {
        self.all.insert(id, primary);
        self.wake_all();
    }

    pub(super) fn remove(&mut self, id: MemberId) -> Option<Primary> {
        let primary = self.all.remove(id);
        self.wake_all();
        primary
    }

    /// Their places are others now, or something concerns them all.
    fn wake_all(&mut self) {
        self.awake.clear();
        self.awake.extend(0..self.all.len());
        self.due_of.clear();
        self.due_of.resize(self.awake.len(), Time(0));
        self.due = Time(0);
    }

    /// Something happens that concerns every primary.
    pub(super) fn touch_all(&mut self) {
        self.all.values_mut().for_each(|primary| primary.touch(Touched::ByEvents));
        self.wake_all();
    }

    /// Runs `act` on a primary; none if it is not here.
    pub(super) fn with<T>(
        &mut self,
        around: &mut Surroundings,
        now: Now,
        id: MemberId,
        act: impl FnOnce(&mut Primary, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let place = self.all.place(id)?;
        let primary = self.all.at_mut(place)?;
        let result = act(primary, &mut around.context(now)?);
        if cfg!(debug_assertions) {
            primary.check_invariants();
        }
        if self.awake.last() != Some(&place) {
            self.awake.push(place);
        }
        Some(result)
    }

    pub(super) fn for_each(
        &mut self,
        around: &mut Surroundings,
        now: Now,
        mut act: impl FnMut(&mut Primary, &mut Context<'_>),
    ) {
        let Some(mut context) = around.context(now) else { return };
        for primary in self.all.values_mut() {
            act(primary, &mut context);
            if cfg!(debug_assertions) {
                primary.check_invariants();
            }
        }
        self.wake_all();
    }

    /// Whether all know by what they have here what namespaces with a quota take.
    pub(super) fn all_heed_catalog(&mut self, around: &mut Surroundings, now: Now) -> bool {
        let Some(context) = around.context(now) else { return false };
        self.all.values_mut().all(|primary| primary.heed_catalog(&context))
    }

    /// Runs the timers that are due.
    pub(super) fn tick(&mut self, around: &mut Surroundings, now: Now) {
        let Some(mut context) = around.context(now).filter(|_| self.due <= now.time) else { return };
        for (place, _) in (0..).zip(&self.due_of).filter(|(_, due)| **due <= now.time) {
            let Some(primary) = self.all.at_mut(place) else { continue };
            primary.tick(&mut context);
            if cfg!(debug_assertions) {
                primary.check_invariants();
            }
            self.awake.push(place);
        }
        // Those that were due are awake, and known when they are armed.
        self.due = self.due_of.iter().copied().filter(|due| *due > now.time).min().unwrap_or(Time::NEVER);
    }

    /// Sends what is due.
    pub(super) fn flush(&mut self, around: &mut Surroundings, now: Now) {
        let Some(mut context) = around.context(now) else { return };
        for place in &self.awake {
            let Some(primary) = self.all.at_mut(*place) else { continue };
            primary.flush(&mut context);
            if cfg!(debug_assertions) {
                primary.check_invariants();
            }
        }
    }

    /// Sets the timers of those that are awake. They sleep then.
    pub(super) fn arm(&mut self, around: &mut Surroundings, now: Now) {
        let Some(context) = around.context(now) else { return };
        for place in self.awake.drain(..) {
            let due_of = self.due_of.get_mut(place as usize);
            let (Some(primary), Some(due_of)) = (self.all.at_mut(place), due_of) else { continue };
            *due_of = primary.arm(&context);
            self.due = self.due.min(*due_of);
        }
        if cfg!(debug_assertions) {
            self.check_timers(&context);
        }
    }

    /// When one has something to do, as of when they were armed, or sooner.
    pub(super) fn due(&self) -> Time {
        if self.all.is_empty() { Time::NEVER } else { self.due }
    }

    fn check_timers(&self, context: &Context<'_>) {
        for (primary, due) in self.all.values().zip(&self.due_of) {
            assert!(self.due <= *due, "the first primary is due before anybody looks");
            primary.check_timers(context, *due);
        }
    }
}
