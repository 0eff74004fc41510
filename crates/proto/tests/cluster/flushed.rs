//! What holders ask of an owner that has flushed a namespace.

use proto::{Action, Host, Now, Timing};
use types::{NodeId, Term};
use wire::message::PeerMessage;
use wire::object::{Ask, ObjectMessage, Recall, Verdict, Verdicts};

use super::objects::noise;
use super::{Cluster, host_id, key_of};

/// What a holder asks owners of its chunks now.
fn asked_by(holder: &mut Host, now: Now) -> Vec<Ask> {
    holder.flush(now);
    holder.tick(now);
    holder.flush(now);
    let mut asked = Vec::new();
    while let Some(action) = holder.poll_action() {
        if let Action::Send { message: PeerMessage::Object(message), .. } = action
            && let ObjectMessage::Ask(ask) = *message
        {
            asked.push(ask);
        }
    }
    asked
}

#[test]
fn an_owner_that_flushes_again_while_it_is_asked_is_asked_again() {
    let mut cluster = Cluster::new(7, "rs(3+2)");
    cluster.put(0, "key", &noise(1, 150_000)).unwrap();
    cluster.advance(200);
    let (owner, term) = (cluster.hosts[&NodeId(0)].locate(&key_of("key")).member.unwrap(), Term(1));
    let (from, mut now) = (cluster.owner_of("key"), cluster.now);
    now.time = now.time + 2 * Timing::default().ask_us;
    let has_chunks = |host: &Host| host.chunks().any(|(_, chunks)| chunks.count() > 0);
    let mut others = cluster.hosts.iter_mut().filter(|(node, host)| **node != from && has_chunks(host));
    let (_, holder) = others.next().unwrap();
    let say = |holder: &mut Host, message: ObjectMessage| {
        holder.handle_peer(now, host_id(from.0), message.into());
    };
    say(holder, ObjectMessage::Recall(Recall { owner, term, number: 1 }));
    let asked = asked_by(holder, now).pop().expect("it asks what is left");
    // An answer from before the second flush; the word of that comes behind it on the same link.
    let (member, object) = (asked.member, asked.objects[0].object);
    let verdicts = vec![(object, Verdict::Committed)];
    say(holder, ObjectMessage::Recall(Recall { owner, term, number: 2 }));
    say(holder, ObjectMessage::Verdicts(Verdicts { owner, term, member, verdicts, moved: Vec::new() }));
    let again = asked_by(holder, now);
    assert!(again.iter().any(|ask| ask.objects.iter().any(|known| known.object == object)), "{again:?}");
}
