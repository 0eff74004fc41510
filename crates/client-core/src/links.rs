//! The connections of a client, by their numbers and by whom they go to, and what is to be done with them.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::ops::Range;

use native::FromClient;
use types::Time;

use crate::connection::{Connection, Stage};
use crate::event::{Action, ConnId, RequestId};
use crate::rules::Rules;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Links {
    all: BTreeMap<ConnId, Connection>,
    by_address: BTreeMap<SocketAddr, ConnId>,
    actions: VecDeque<Action>,
    /// What can wait for something else that goes the same way, and until when.
    patient: BTreeMap<ConnId, (Time, Vec<RequestId>)>,
    /// The last number that was given.
    last: u64,
}

impl Links {
    /// What is to be done next.
    pub(crate) fn poll(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn get(&self, conn: ConnId) -> Option<&Connection> {
        self.all.get(&conn)
    }

    pub(crate) fn get_mut(&mut self, conn: ConnId) -> Option<&mut Connection> {
        self.all.get_mut(&conn)
    }

    pub(crate) fn has_one_to(&self, address: SocketAddr) -> bool {
        self.by_address.contains_key(&address)
    }

    /// All whose other ends `are_meant`.
    pub(crate) fn to_those(&self, are_meant: impl Fn(&SocketAddr) -> bool) -> Vec<ConnId> {
        self.by_address.iter().filter(|(address, _)| are_meant(address)).map(|(_, conn)| *conn).collect()
    }

    /// The one to `address`, which is to be made if there is none.
    pub(crate) fn to(&mut self, now: Time, rules: Rules, address: SocketAddr) -> ConnId {
        if let Some(conn) = self.by_address.get(&address) {
            return *conn;
        }
        self.last += 1;
        let conn = rules.connection(ConnId(self.last), address.port());
        self.all.insert(conn, Connection::new(address, now));
        self.by_address.insert(address, conn);
        self.actions.push_back(Action::Connect(conn, address));
        conn
    }

    /// It has been made.
    pub(crate) fn made(&mut self, conn: ConnId) {
        // What was said before had nowhere to go.
        if let Some(connection) = self.all.get_mut(&conn) {
            connection.announced = false;
        }
        self.announce(conn);
    }

    /// It is not wanted any more.
    pub(crate) fn close(&mut self, conn: ConnId) {
        self.actions.push_back(Action::Close(conn));
    }

    /// None is.
    pub(crate) fn close_all(&mut self) {
        self.by_address.clear();
        self.patient.clear();
        self.actions.extend(std::mem::take(&mut self.all).into_keys().map(Action::Close));
    }

    /// It is there no more.
    pub(crate) fn remove(&mut self, conn: ConnId) -> Option<Connection> {
        let connection = self.all.remove(&conn)?;
        self.patient.remove(&conn);
        self.by_address.remove(&connection.address);
        Some(connection)
    }

    /// When the first of those is late that have not been welcomed.
    pub(crate) fn first_late(&self, connect_us: u64) -> Option<Time> {
        let since = self.all.values().filter_map(|connection| match connection.stage {
            Stage::Opening(since) => Some(since + connect_us),
            Stage::Open(_) => None,
        });
        since.min()
    }

    /// Those that are.
    pub(crate) fn late(&self, now: Time, connect_us: u64) -> Vec<ConnId> {
        let is_late = |connection: &Connection| matches!(connection.stage, Stage::Opening(since) if since + connect_us <= now);
        self.all.iter().filter(|(_, connection)| is_late(connection)).map(|(conn, _)| *conn).collect()
    }

    /// Something goes there when something else does, or then.
    pub(crate) fn send_until(&mut self, conn: ConnId, until: Time, what: RequestId) {
        let (first, all) = self.patient.entry(conn).or_insert((until, Vec::new()));
        *first = until.min(*first);
        all.push(what);
    }

    /// When the first of these has waited for long enough.
    pub(crate) fn first_impatient(&self) -> Option<Time> {
        self.patient.values().map(|(until, _)| *until).min()
    }

    /// Those where something has.
    pub(crate) fn impatient(&self, now: Time) -> Vec<ConnId> {
        self.patient.iter().filter(|(_, (until, _))| *until <= now).map(|(conn, _)| *conn).collect()
    }

    /// What can wait goes along with what cannot, or by itself when it has waited for long enough.
    pub(crate) fn join(&mut self, now: Time, conn: ConnId) {
        let Some(connection) = self.all.get_mut(&conn) else { return };
        let goes = |until: Time| until <= now || !connection.waiting.is_empty();
        if self.patient.get(&conn).is_some_and(|(until, _)| goes(*until))
            && let Some((_, all)) = self.patient.remove(&conn)
        {
            connection.waiting.extend(all);
        }
    }

    /// See [`Connection::disown`].
    pub(crate) fn disown(&mut self, memory: &Range<usize>) {
        self.all.values_mut().for_each(|connection| connection.disown(memory));
    }

    /// Says something that is no request, where that can be heard.
    pub(crate) fn say(&mut self, conn: ConnId, message: &FromClient) {
        if let Some(connection) = self.all.get_mut(&conn).filter(|connection| connection.is_open()) {
            connection.say(message);
            self.announce(conn);
        }
    }

    /// Says once that there is something to send.
    pub(crate) fn announce(&mut self, conn: ConnId) {
        if let Some(connection) = self.all.get_mut(&conn)
            && connection.has_output()
            && !std::mem::replace(&mut connection.announced, true)
        {
            self.actions.push_back(Action::Send(conn));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_one_to_each_address_and_its_number_is_not_used_again() {
        let mut links = Links::default();
        let [one, other] = [1, 2].map(|port| SocketAddr::from(([10, 0, 0, 1], port)));
        let to = |links: &mut Links, address| links.to(Time(5), Rules::all(), address);
        let first = to(&mut links, one);
        assert_eq!((to(&mut links, one), links.len()), (first, 1));
        assert_ne!(to(&mut links, other), first);
        assert_eq!(links.to_those(|address| *address == one), [first]);
        assert_eq!(
            (links.first_late(3), links.late(Time(7), 3).len(), links.late(Time(8), 3).len()),
            (Some(Time(8)), 0, 2)
        );
        assert!(links.remove(first).is_some() && !links.has_one_to(one));
        assert_ne!(to(&mut links, one), first);
    }

    #[test]
    fn what_can_wait_goes_with_something_else_or_when_it_has_waited() {
        let mut links = Links::default();
        let [one, other] = [1, 2].map(|port| links.to(Time(5), Rules::all(), ([10, 0, 0, 1], port).into()));
        for (conn, until, what) in [(one, 20, 1), (one, 30, 2), (other, 25, 3)] {
            links.send_until(conn, Time(until), RequestId(what));
        }
        let waiting = |links: &mut Links, conn| {
            let all = std::mem::take(&mut links.get_mut(conn).unwrap().waiting);
            all.into_iter().map(|id| id.0).collect::<Vec<_>>()
        };
        assert_eq!((links.first_impatient(), links.impatient(Time(24))), (Some(Time(20)), vec![one]));
        links.join(Time(19), one);
        assert_eq!(waiting(&mut links, one), [0; 0], "nothing else goes there, and it is too early");
        links.join(Time(20), one);
        assert_eq!((waiting(&mut links, one), links.first_impatient()), (vec![1, 2], Some(Time(25))));
        links.get_mut(other).unwrap().waiting.push_back(RequestId(4));
        links.join(Time(20), other);
        assert_eq!((waiting(&mut links, other), links.first_impatient()), (vec![4, 3], None));
        links.send_until(other, Time(40), RequestId(5));
        links.remove(other);
        assert_eq!(links.first_impatient(), None, "it is for nobody");
    }

    #[test]
    fn what_is_to_be_sent_is_announced_once() {
        let mut links = Links::default();
        let conn = links.to(Time(5), Rules::all(), ([10, 0, 0, 1], 1).into());
        (0..2).for_each(|_| links.announce(conn));
        links.made(conn);
        let actions: Vec<Action> = std::iter::from_fn(|| links.poll()).collect();
        // The hello waits for it to be made.
        assert_eq!(actions[1..], [Action::Send(conn), Action::Send(conn)]);
        links.close_all();
        assert_eq!((links.poll(), links.is_empty()), (Some(Action::Close(conn)), true));
    }
}
