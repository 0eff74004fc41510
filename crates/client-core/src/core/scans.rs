//! What the core does for scans: their pages are asked of data roles, and not of keys.

use std::net::SocketAddr;

use native::Code;
use types::{NamespaceId, ScanPage, Time};

use super::Core;
use crate::connection::Connection;
use crate::error::Error;
use crate::event::{ConnId, Done, RequestId};
use crate::nodes::Nodes;
use crate::operation::Op;
use crate::request::{Place, Request};

impl Core {
    /// A page has come. How many data roles there are the map says, by which the page was asked for.
    pub(super) fn keys_come(&mut self, id: RequestId, page: Box<ScanPage>) {
        let roles = self.nodes.namespace().and_then(|namespace| self.nodes.roles(namespace));
        self.finish(id, roles.map(|roles| Done::Keys(page, roles)).ok_or(Error::NoNamespace));
    }

    /// A request has to be sent again. Whether it is a page, and nobody does that.
    pub(super) fn passes_over(&mut self, id: RequestId) -> bool {
        let is_page = self.requests.get(id).is_some_and(|request| matches!(request.op, Op::Scan(_)));
        let passes_over = is_page && !self.config.rules.scans_go_on_from_their_cursor();
        if passes_over {
            self.keys_come(id, Box::default());
        }
        passes_over
    }
}

/// The address of the primary of what `request` is about.
pub(super) fn primary_of(
    nodes: &Nodes,
    now: Time,
    namespace: NamespaceId,
    request: &Request,
) -> Option<SocketAddr> {
    match &request.op {
        Op::Scan(scan) => nodes.primary_of_role(now, namespace, scan.role),
        _ => nodes.primary(now, namespace, &request.key),
    }
}

/// Sends a page's request; none if it is no such request.
pub(super) fn send(
    nodes: &Nodes,
    namespace: Option<NamespaceId>,
    now: Time,
    (conn, connection): (ConnId, &mut Connection),
    (id, request): (RequestId, &mut Request),
) -> Option<Result<(), Error>> {
    let Op::Scan(scan) = &request.op else { return None };
    let slot = namespace.and_then(|namespace| nodes.first_slot(namespace, scan.role));
    let ask = namespace.and_then(|namespace| request.scan(namespace, now, slot));
    let Some(ask) = ask.filter(|_| connection.takes_scans()) else {
        return Some(Err(Error::Code(Code::ScansOff)));
    };
    request.place = Some(Place { conn, sent: Some(connection.scan(id, &ask)) });
    Some(Ok(()))
}
