//! The connections of a client, by their numbers and by whom they go to, and what is to be done with them.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::ops::Range;

use native::FromClient;
use types::Time;

use crate::connection::{Connection, Stage};
use crate::event::{Action, ConnId};
use crate::rules::Rules;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Links {
    all: BTreeMap<ConnId, Connection>,
    by_address: BTreeMap<SocketAddr, ConnId>,
    actions: VecDeque<Action>,
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
        self.actions.extend(std::mem::take(&mut self.all).into_keys().map(Action::Close));
    }

    /// It is there no more.
    pub(crate) fn remove(&mut self, conn: ConnId) -> Option<Connection> {
        let connection = self.all.remove(&conn)?;
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
