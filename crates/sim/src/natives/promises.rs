//! What a core says has to be true, whether anybody hears it or not.

use std::collections::{BTreeMap, BTreeSet};

use bytes::{Bytes, BytesMut};
use client_core::ConnId;
use native::{Answer, Ask, Code, Decoder, FromClient, FromServer, Request};
use types::{ClientSession, MemberId, ObjectId, Once};

use crate::stage::book::Broken;

/// What one core has said.
#[derive(Default)]
pub(crate) struct Promises {
    /// Of each session the highest floor that any of its writes has named.
    floors: BTreeMap<(MemberId, ClientSession), u32>,
    /// What has been said on each connection and is no whole frame yet.
    inputs: BTreeMap<ConnId, BytesMut>,
    /// The same of what it has heard.
    heard: BTreeMap<ConnId, BytesMut>,
    ids: Ids,
}

/// Ids of values that are to stay open, as a core has asked, and those of which it has heard that they are not.
#[derive(Default)]
struct Ids {
    renewals: BTreeMap<(ConnId, u64), ObjectId>,
    gone: BTreeSet<ObjectId>,
}

impl Promises {
    /// Bytes leave on a connection: the frames in them, briefly, or the rule that they break. Of each key `member_of` knows the role.
    pub(crate) fn leave(
        &mut self,
        conn: ConnId,
        bytes: &Bytes,
        member_of: impl Fn(&[u8]) -> MemberId,
    ) -> Result<Vec<String>, Broken> {
        let input = self.inputs.entry(conn).or_default();
        input.extend_from_slice(bytes);
        let mut said = Vec::new();
        loop {
            let frame = Decoder::next(input).map_err(|malformed| ("frames", malformed.to_string()))?;
            let Some(frame) = frame else { return Ok(said) };
            let message = FromClient::take(frame).map_err(|malformed| ("frames", malformed.to_string()))?;
            if let FromClient::Scan(id, ask) = &message {
                said.push(format!("{id}: {:?}", ask.scan));
            }
            if let FromClient::Request(id, request) = &message {
                said.push(format!("{id}: {:?} as {:?}", request.key, request.once));
                if let Some(once) = &request.once {
                    let floor = self.floors.entry((member_of(&request.key), once.session)).or_default();
                    keep_floor(floor, once)?;
                }
                self.ids.leave(conn, *id, request)?;
            }
        }
    }

    /// Bytes have come on a connection, and the core has done with them what it does.
    pub(crate) fn heard(&mut self, conn: ConnId, bytes: &Bytes) {
        let input = self.heard.entry(conn).or_default();
        input.extend_from_slice(bytes);
        while let Ok(Some(frame)) = Decoder::next(input) {
            let Ok(FromServer::Answer(id, answer)) = FromServer::take(frame) else { continue };
            let object = self.ids.renewals.remove(&(conn, id));
            self.ids.gone.extend(object.filter(|_| *answer == Answer::Just(Code::NotOpen)));
        }
    }

    /// A connection has ended.
    pub(crate) fn forget(&mut self, conn: ConnId) {
        self.inputs.remove(&conn);
        self.heard.remove(&conn);
        self.ids.renewals.retain(|(of, _), _| *of != conn);
    }
}

impl Ids {
    /// What is put under an id that is gone is put in vain.
    fn leave(&mut self, conn: ConnId, id: u64, request: &Request) -> Result<(), Broken> {
        let (what, object) = match &request.ask {
            Ask::Renew(object) => {
                self.renewals.insert((conn, id), *object);
                return Ok(());
            }
            Ask::Put(put) => ("written", put.chunk.object),
            Ask::Commit(commit) => ("committed", commit.written.object),
            _ => return Ok(()),
        };
        if self.gone.contains(&object) {
            return Err((
                "gone",
                format!("{object} is {what} as {:?} though its owner has said that it is gone", request.once),
            ));
        }
        Ok(())
    }
}

/// Who has said that it waits for nothing below a floor asks for nothing below it.
fn keep_floor(floor: &mut u32, once: &Once) -> Result<(), Broken> {
    if once.sequence < *floor {
        return Err(("floor", format!("{once:?} is below the floor {floor} that its client has told")));
    }
    *floor = (*floor).max(once.floor());
    Ok(())
}
