//! Places for the connections of a listener. Everybody gets one: when all are taken, a newcomer takes the place of the connection that
//! has been silent for longest, where silent is who has not asked for anything, or whose request has been answered. So a crowd that only
//! sits there keeps nobody out, however large it is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// See the module.
#[derive(Debug)]
pub(crate) struct Places {
    max: usize,
    seats: Mutex<Seats>,
    freed: Notify,
}

#[derive(Debug, Default)]
struct Seats {
    taken: BTreeMap<u64, Seat>,
    /// Whose place may be taken, by when they fell silent.
    silent: BTreeMap<u64, u64>,
    /// The last number that was given, to a seat or to a silence.
    last: u64,
    displaced: u64,
}

#[derive(Debug)]
struct Seat {
    /// Its number among the silent.
    silence: Option<u64>,
    lost: Arc<Notify>,
}

/// The place of one connection, for as long as it lives or until a newcomer takes it.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    number: u64,
    lost: Arc<Notify>,
}

/// Whether a connection has its place still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    Yes,
    /// A newcomer has it: the connection is to end.
    No,
}

impl Places {
    pub(crate) fn new(max: usize) -> Arc<Self> {
        Arc::new(Self { max, seats: Mutex::default(), freed: Notify::new() })
    }

    /// A place; none if all are taken and nobody is silent.
    pub(crate) fn take(self: &Arc<Self>) -> Option<Place> {
        let mut seats = self.seats();
        if seats.taken.len() >= self.max {
            seats.displace_oldest()?;
        }
        let lost = Arc::new(Notify::new());
        let number = seats.next_number();
        seats.taken.insert(number, Seat { silence: None, lost: Arc::clone(&lost) });
        seats.falls_silent(number);
        drop(seats);
        Some(Place { places: Arc::clone(self), number, lost })
    }

    /// A place as soon as there is one.
    pub(crate) async fn take_soon(self: &Arc<Self>) -> Place {
        loop {
            if let Some(place) = self.take() {
                return place;
            }
            // A place that is freed before this waits is not missed: the notice of it stays.
            self.freed.notified().await;
        }
    }

    /// How many are taken.
    pub(crate) fn taken(&self) -> usize {
        self.seats().taken.len()
    }

    /// How many connections have lost theirs.
    pub(crate) fn displaced(&self) -> u64 {
        self.seats().displaced
    }

    fn seats(&self) -> MutexGuard<'_, Seats> {
        self.seats.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seats {
    fn next_number(&mut self) -> u64 {
        self.last += 1;
        self.last
    }

    fn displace_oldest(&mut self) -> Option<()> {
        let (_, number) = self.silent.pop_first()?;
        self.taken.remove(&number)?.lost.notify_one();
        self.displaced += 1;
        Some(())
    }

    fn falls_silent(&mut self, number: u64) {
        let silence = self.next_number();
        if let Some(seat) = self.taken.get_mut(&number)
            && seat.silence.is_none()
        {
            seat.silence = Some(silence);
            self.silent.insert(silence, number);
        }
    }

    fn speaks(&mut self, number: u64) -> Kept {
        let Some(seat) = self.taken.get_mut(&number) else { return Kept::No };
        if let Some(silence) = seat.silence.take() {
            self.silent.remove(&silence);
        }
        Kept::Yes
    }
}

impl Place {
    /// The connection has asked for something: nobody takes its place from now on.
    pub(crate) fn keep(&self) -> Kept {
        self.places.seats().speaks(self.number)
    }

    /// The connection has been answered: its place may be taken again.
    pub(crate) fn lend(&self) {
        self.places.seats().falls_silent(self.number);
        self.places.freed.notify_one();
    }

    /// Returns when a newcomer has taken the place.
    pub(crate) async fn lost(&self) {
        self.lost.notified().await;
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut seats = self.places.seats();
        // Off the line too, or a newcomer would displace who is not there, and get no place.
        seats.speaks(self.number);
        seats.taken.remove(&self.number);
        drop(seats);
        self.places.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn is_lost(place: &Place) -> bool {
        pin!(place.lost()).as_mut().poll(&mut Context::from_waker(Waker::noop())) == Poll::Ready(())
    }

    #[test]
    fn a_newcomer_takes_the_place_of_who_has_been_silent_for_longest() {
        let places = Places::new(3);
        let [first, second, third] = [(); 3].map(|()| places.take().unwrap());
        assert_eq!(first.keep(), Kept::Yes);
        let fourth = places.take().unwrap();
        assert_eq!([&first, &second, &third, &fourth].map(is_lost), [false, true, false, false]);
        assert_eq!(second.keep(), Kept::No);
        first.lend();
        let _more = [places.take().unwrap(), places.take().unwrap()];
        assert_eq!([&first, &third, &fourth].map(is_lost), [false, true, true], "the first one spoke last");
        assert_eq!((places.taken(), places.displaced()), (3, 3));
    }

    #[test]
    fn where_all_speak_a_newcomer_waits_until_one_has_been_answered_or_is_gone() {
        let places = Places::new(2);
        let (first, second) = (places.take().unwrap(), places.take().unwrap());
        assert_eq!((first.keep(), second.keep()), (Kept::Yes, Kept::Yes));
        assert!(places.take().is_none());
        let mut waits = pin!(places.take_soon());
        let cx = &mut Context::from_waker(Waker::noop());
        assert!(waits.as_mut().poll(cx).is_pending());
        first.lend();
        assert!(waits.as_mut().poll(cx).is_ready() && is_lost(&first));
        drop((first, second));
        assert_eq!(places.taken(), 0);
    }

    #[test]
    fn who_has_lost_his_place_gives_back_none() {
        let places = Places::new(1);
        let first = places.take().unwrap();
        let second = places.take().unwrap();
        drop(first);
        assert_eq!(places.taken(), 1);
        drop(second);
        assert_eq!(places.taken(), 0);
    }
}
