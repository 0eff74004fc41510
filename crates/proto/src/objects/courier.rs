//! What owners want holders to hear: which objects are committed, and which are dead.
//!
//! Both are gathered for a moment: every message costs its receiver a wake-up, and a value that is overwritten brings one of each for every
//! holder. That an object is committed is said once: who does not hear it asks. That one is dead is repeated until every holder has heard
//! it, for nobody asks about what is committed but once a day.

use std::collections::{BTreeMap, VecDeque};

use types::{Descriptor, GroupId, HostId, MemberId, ObjectId, RoleIndex, Term, Time};
use wire::object::{Free, Heard, Keep, KeptObject, ObjectMessage, Recall};

use super::names::{Errand, News};
use crate::Timing;
use crate::host::Views;
use crate::outbox::Outbox;

/// Objects that one message names.
const BATCH: usize = 128;
/// Dead objects that wait to be told of, of one line; what is beyond its holder asks about.
const MAX_QUEUED: usize = 65_536;

/// Whose word goes to which role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Line {
    owner: MemberId,
    term: Term,
    to: MemberId,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Courier {
    keeps: BTreeMap<Line, Vec<KeptObject>>,
    /// When what was gathered is to be said.
    gathered_due: Option<Time>,
    frees: BTreeMap<(Line, HostId), Frees>,
    /// Who is to ask an owner anew, and in which message that was said, and when.
    recalls: BTreeMap<(MemberId, Term, HostId), Option<(u64, Time)>>,
    numbers: u64,
}

#[derive(Default)]
struct Frees {
    objects: VecDeque<ObjectId>,
    /// How many of the first were said, in which message, and when.
    sent: Option<Sent>,
}

struct Sent {
    number: u64,
    count: usize,
    at: Time,
}

impl Courier {
    /// Takes an errand of an owner here.
    pub(crate) fn take(&mut self, now: Time, timing: &Timing, views: &Views, errand: Errand) {
        let Errand { owner, term, news } = errand;
        match news {
            News::Kept(kept) => {
                for to in members_of(views, &kept.descriptor) {
                    self.keeps.entry(Line { owner, term, to }).or_default().push(kept.clone());
                }
            }
            News::Dead(descriptor) => self.take_dead(views, (owner, term), &descriptor),
            News::Flushed => {
                let recalls = all_holders(views, owner).map(|host| ((owner, term, host), None));
                self.recalls.extend(recalls);
            }
        }
        self.gather(now, timing);
    }

    fn gather(&mut self, now: Time, timing: &Timing) {
        self.gathered_due.get_or_insert(now + timing.commit_delay_us / 2);
    }

    fn take_dead(&mut self, views: &Views, (owner, term): (MemberId, Term), descriptor: &Descriptor) {
        for to in members_of(views, descriptor) {
            for host in holders_of(views, to) {
                let frees = self.frees.entry((Line { owner, term, to }, host)).or_default();
                if frees.objects.len() < MAX_QUEUED {
                    frees.objects.push_back(descriptor.id);
                }
            }
        }
    }

    /// Says what is due to be said.
    pub(crate) fn go_on(&mut self, now: Time, timing: &Timing, views: &Views, out: &mut Outbox) {
        let is_gathered = self.gathered_due.is_some_and(|due| due <= now);
        if is_gathered {
            self.gathered_due = None;
            self.say_kept(views, out);
        }
        self.say_recalls(now, timing, views, out);
        self.say_dead(now, timing, views, is_gathered, out);
    }

    fn say_dead(&mut self, now: Time, timing: &Timing, views: &Views, is_gathered: bool, out: &mut Outbox) {
        // Who holds nothing any more has nothing to free.
        self.frees.retain(|(line, host), _| holders_of(views, line.to).any(|holder| holder == *host));
        for ((line, host), frees) in &mut self.frees {
            if frees.due(timing).map_or(is_gathered, |due| due <= now) {
                self.numbers += 1;
                out.send(host.node, frees.message(now, line, self.numbers).into());
            }
        }
    }

    fn say_recalls(&mut self, now: Time, timing: &Timing, views: &Views, out: &mut Outbox) {
        self.recalls.retain(|(owner, _, host), _| all_holders(views, *owner).any(|holder| holder == *host));
        for ((owner, term, host), said) in &mut self.recalls {
            if said.is_none_or(|(_, at)| now.since(at) >= timing.retry_us) {
                self.numbers += 1;
                *said = Some((self.numbers, now));
                let recall = Recall { owner: *owner, term: *term, number: self.numbers };
                out.send(host.node, ObjectMessage::Recall(recall).into());
            }
        }
    }

    fn say_kept(&mut self, views: &Views, out: &mut Outbox) {
        for (Line { owner, term, to: member }, objects) in std::mem::take(&mut self.keeps) {
            for objects in objects.chunks(BATCH) {
                self.numbers += 1;
                let objects = objects.to_vec();
                let keep = Keep { owner, term, member, number: self.numbers, objects };
                for host in holders_of(views, member) {
                    out.send(host.node, ObjectMessage::Keep(keep.clone()).into());
                }
            }
        }
    }

    /// A holder has heard.
    pub(crate) fn heard(&mut self, now: Time, timing: &Timing, from: HostId, heard: Heard) {
        let Heard { owner, term, member: to, number } = heard;
        if to == owner {
            let recall = (owner, term, from);
            let is_it = |said: &Option<(u64, Time)>| said.is_some_and(|(known, _)| known == number);
            if self.recalls.get(&recall).is_some_and(is_it) {
                self.recalls.remove(&recall);
            }
        }
        let key = (Line { owner, term, to }, from);
        let Some(frees) = self.frees.get_mut(&key) else { return };
        if let Some(sent) = frees.sent.take_if(|sent| sent.number == number) {
            frees.objects.drain(..sent.count);
        }
        if frees.objects.is_empty() {
            self.frees.remove(&key);
        } else if frees.objects.len() >= BATCH {
            self.gathered_due = Some(now);
        } else {
            self.gather(now, timing);
        }
    }

    /// A link is another one: what was said on the one before may be lost.
    pub(crate) fn link_broken(&mut self, now: Time, timing: &Timing, peer: HostId) {
        self.frees.iter_mut().filter(|((_, host), _)| *host == peer).for_each(|(_, frees)| frees.sent = None);
        if !self.frees.is_empty() {
            self.gather(now, timing);
        }
        self.recalls.iter_mut().filter(|((.., host), _)| *host == peer).for_each(|(_, said)| *said = None);
    }

    /// When [`Self::go_on`] has something to do.
    pub(crate) fn due(&self, timing: &Timing) -> Time {
        let frees = self.frees.values().filter_map(|frees| frees.due(timing));
        let recalls = self.recalls.values().map(|said| said.map_or(Time(0), |(_, at)| at + timing.retry_us));
        frees.chain(recalls).chain(self.gathered_due).min().unwrap_or(Time::NEVER)
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let kept: usize = self.keeps.values().map(Vec::capacity).sum();
        let dead: usize = self.frees.values().map(|frees| frees.objects.capacity()).sum();
        kept * size_of::<KeptObject>() + dead * size_of::<ObjectId>()
    }
}

impl Frees {
    /// When what was said is to be repeated; none if nothing was, so that it is said with the others that are gathered.
    fn due(&self, timing: &Timing) -> Option<Time> {
        self.sent.as_ref().map(|sent| sent.at + timing.retry_us)
    }

    fn message(&mut self, now: Time, line: &Line, number: u64) -> ObjectMessage {
        let count = self.objects.len().min(BATCH);
        self.sent = Some(Sent { number, count, at: now });
        let objects = self.objects.iter().take(count).copied().collect();
        let Line { owner, term, to: member } = *line;
        ObjectMessage::Free(Free { owner, term, member, number, objects })
    }
}

/// Every process that may have chunks of an owner: holders of groups that the same worker has.
fn all_holders(views: &Views, owner: MemberId) -> impl Iterator<Item = HostId> + use<> {
    let mut hosts = std::collections::BTreeSet::new();
    if let Some(map) = views.map() {
        let shard = owner.group.shard(map.shards);
        let same_worker = map.groups.iter().filter(|view| view.group.shard(map.shards) == shard);
        hosts.extend(same_worker.flat_map(|view| view.all_holders().map(|(_, holder)| holder.host)));
    }
    hosts.into_iter()
}

/// The roles that keep chunks of an object.
fn members_of<'a>(views: &'a Views, descriptor: &Descriptor) -> impl Iterator<Item = MemberId> + use<'a> {
    let of = |group: GroupId| {
        let roles = views.group(group).map_or(0, |view| view.holders.len());
        (0..roles).map(move |role| MemberId { group, role: RoleIndex(role as u8) })
    };
    descriptor.all_groups().into_iter().flat_map(of)
}

/// Who keeps the chunks of a role.
fn holders_of(views: &Views, member: MemberId) -> impl Iterator<Item = HostId> + use<> {
    let holders = views.group(member.group).map(|view| view.holders_of(member.role)).unwrap_or_default();
    holders.iter().map(|holder| holder.host)
}
