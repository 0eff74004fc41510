//! Durability, by doing what a recovery would do with the memory that there is.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use store::{Cohorts, Item, ItemError};
use types::{Addr, IndexHash, IndexOp, KeyHash, MAX_ITEM_BYTES, PAGE_BYTES, PageRange, RoleStatus, Seq};
use wire::descriptor::descriptor_of;

use super::chunks;
use super::look::{Extent, Look, first_difference};
use crate::cluster::inspect::add_kept;
use crate::oracle::Copy;
use crate::shadow::stream::Page;
use crate::stage::book::Broken;
use crate::stage::brief::brief_bytes;

/// Keys that one check decodes.
const KEYS_PER_CHECK: usize = 2;

/// A loss that has not happened.
struct Loss {
    /// Data roles that nobody serves then, and up to where their streams would be settled.
    data: Vec<(usize, Seq)>,
    /// Which of the members' parities are left, by position.
    survivors: Vec<usize>,
}

impl Look<'_> {
    /// Loses as much as the code can bear, and looks whether everything is still there.
    pub(super) fn durability(&mut self) -> Result<(), Broken> {
        let Some(loss) = self.draw_loss() else { return Ok(()) };
        for (role, settled) in &loss.data {
            // A takeover from these survivors would end the stream there, and drop what a
            // client may have been told is done.
            if let Some(primary) = &self.members.data[*role]
                && *settled < primary.info.committed
            {
                let what = format!(
                    "{}: role-{role} would be settled at {settled}, but {} is committed",
                    self.describe(&loss),
                    primary.info.committed
                );
                return Err(("durability", what));
            }
        }
        self.decode_pages(&loss)?;
        self.decode_keys(&loss)
    }

    fn draw_loss(&mut self) -> Option<Loss> {
        let unserved = |role: &usize| {
            self.members.data[*role].is_none() || self.view.data[*role].status != RoleStatus::Full
        };
        // Who serves nothing, or lacks pages, uses up margin already: each such role needs an equation for itself.
        let in_play = self.living_roles().filter(unserved).count();
        let mut margin = self.members.parities.len().checked_sub(in_play)?;
        let gone: Vec<usize> =
            self.living_roles().filter(|role| self.members.data[*role].is_none()).collect();
        let mut data = gone;
        let mut survivors: Vec<usize> = (0..self.members.parities.len()).collect();
        let full: Vec<usize> = self.living_roles().filter(|role| !unserved(role)).collect();
        let standing: Vec<usize> =
            self.living_roles().filter(|role| unserved(role) && !data.contains(role)).collect();
        // A stand-in costs no margin here, whether it is lost or not: it was counted above.
        for role in standing {
            if self.rng.percent(50) {
                data.push(role);
            }
        }
        let mut candidates = full;
        while margin > 0 {
            let choices = candidates.len() + survivors.len();
            // One choice more than there are members: to lose nothing this time. A smaller
            // loss is decoded in another way.
            let choice = self.rng.index(choices + 1);
            if choice < candidates.len() {
                data.push(candidates.swap_remove(choice));
            } else if choice < choices && survivors.len() > 1 {
                survivors.swap_remove(choice - candidates.len());
            }
            margin -= 1;
        }
        if survivors.is_empty() {
            return None;
        }
        data.sort_unstable();
        // Some codes do not make up for every loss of as many members as they have parities.
        if !self.is_solvable(&data, &survivors) {
            return None;
        }
        // As step F2 of a takeover: the stream ends where the parity ends that has least of it.
        let received = |role: usize| {
            let left = survivors.iter().map(|at| &self.members.parities[*at]);
            left.filter(|parity| self.covers(parity, role)).map(|parity| self.received(parity, role)).min()
        };
        let data = data.iter().map(|role| (*role, received(*role).unwrap_or(Seq(0)))).collect();
        Some(Loss { data, survivors })
    }

    /// Whether these data roles can be computed from the others and these parities.
    fn is_solvable(&self, data: &[usize], survivors: &[usize]) -> bool {
        let code = self.protection.code();
        let left: Vec<usize> = survivors.iter().map(|at| self.members.parities[*at].row).collect();
        let missing = (0..code.m()).filter(|row| !left.contains(row)).map(|row| code.k() + row);
        let lost: Vec<usize> = data.iter().copied().chain(missing).collect();
        code.decodable(&lost).unwrap_or(false)
    }

    fn describe(&self, loss: &Loss) -> String {
        let data: Vec<String> = loss.data.iter().map(|(role, at)| format!("role-{role} at {at}")).collect();
        let rows: Vec<usize> = loss.survivors.iter().map(|p| self.members.parities[*p].row).collect();
        format!("without [{}], from parities {rows:?}", data.join(", "))
    }

    /// Up to where a role's records are taken.
    fn upto(&self, loss: &Loss, role: usize) -> Seq {
        match (loss.data.iter().find(|(lost, _)| *lost == role), &self.members.data[role]) {
            (Some((_, settled)), _) => *settled,
            (None, Some(primary)) => primary.info.committed,
            (None, None) => Seq(0),
        }
    }

    /// One page of a lost role, from the survivors; none if too many members lack the page.
    fn decode_page(&mut self, loss: &Loss, wanted: usize, page: u32) -> Option<Box<Page>> {
        let mut scratch = [0; PAGE_BYTES];
        let mut lost: Vec<usize> = loss.data.iter().map(|(role, _)| *role).collect();
        for role in self.living_roles() {
            // A stand-in that lacks the page helps nobody with it: as good as lost.
            let absent = match &self.members.data[role] {
                Some(primary) => primary.page(page, &mut scratch).is_none(),
                None => true,
            };
            if absent && !lost.contains(&role) {
                lost.push(role);
            }
        }
        lost.sort_unstable();
        // Where any are as good as others, as many as are lost.
        let needed = if self.protection.profile().is_mds() { lost.len() } else { loss.survivors.len() };
        let helpers: Vec<usize> = loss.survivors.iter().copied().take(needed).collect();
        if helpers.len() < needed {
            return None;
        }
        let mut residuals = Vec::with_capacity(helpers.len());
        for helper in &helpers {
            let parity = &self.members.parities[*helper];
            let mut sum = Box::new([0; PAGE_BYTES]);
            parity.page(page, &mut sum);
            for role in self.living_roles() {
                let coefficient = self.protection.code().coefficient(parity.row, role);
                scratch.fill(0);
                // A sum holds what was applied. It is brought to the record at which the role would be settled, or
                // up to which its primary's page is: all parts have to be as of the same records in all sums.
                add_kept(parity.stream(role), self.upto(loss, role), page, &mut scratch);
                codec::mul_add(&mut sum[..], coefficient, &scratch).expect("slices of one length");
                if let (false, Some(primary)) = (lost.contains(&role), &self.members.data[role]) {
                    primary.page(page, &mut scratch)?;
                    codec::mul_add(&mut sum[..], coefficient, &scratch).expect("slices of one length");
                }
            }
            residuals.push(sum);
        }
        let rows: Vec<usize> = helpers.iter().map(|helper| self.members.parities[*helper].row).collect();
        let residuals: Vec<&[u8]> = residuals.iter().map(|residual| &residual[..]).collect();
        let mut out = Box::new([0; PAGE_BYTES]);
        self.protection.code().recover(&rows, &lost, wanted, &residuals, &mut out[..]).ok()?;
        self.stats.decoded_pages += 1;
        Some(out)
    }

    fn decode_pages(&mut self, loss: &Loss) -> Result<(), Broken> {
        for (role, settled) in loss.data.clone() {
            let shadow = self.shadow(role);
            // The shadow cannot tell what the page should be.
            if shadow.is_dark() || settled > shadow.last() || settled < shadow.base() {
                continue;
            }
            let touched = shadow.touched();
            for page in self.pages(touched) {
                let Some(decoded) = self.decode_page(loss, role, page) else { continue };
                let mut expected = [0; PAGE_BYTES];
                self.shadow(role).page_at(page, settled, &mut expected);
                if *decoded != expected {
                    let what = format!(
                        "{}: page {page} of role-{role} is not what its records make{}",
                        self.describe(loss),
                        first_difference(&decoded, &expected)
                    );
                    return Err(("durability", what));
                }
            }
        }
        Ok(())
    }

    fn decode_keys(&mut self, loss: &Loss) -> Result<(), Broken> {
        let concerned: Vec<usize> = (0..self.clients.keys().len())
            .filter(|key| {
                let member = self.clients.keys()[*key].member;
                member.group == self.view.group
                    && loss.data.iter().any(|(role, _)| *role == usize::from(member.role.0))
            })
            .collect();
        if concerned.is_empty() {
            return Ok(());
        }
        let keys: Vec<usize> = match self.extent {
            Extent::Whole => concerned,
            Extent::Sample => (0..KEYS_PER_CHECK).map(|_| self.rng.pick(&concerned)).collect(),
        };
        for key in keys {
            self.decode_key(loss, key)?;
        }
        Ok(())
    }

    /// What a reader would be given of the chunks that are left after the loss of some holders.
    fn assemble(&mut self, loss: &Loss, item: &Item<'_>) -> Result<Vec<u8>, Broken> {
        let descriptor = descriptor_of(bytes::Bytes::copy_from_slice(item.value))
            .map_err(|error| ("durability", format!("a descriptor that is none: {error}")))?;
        let code = self.protection.code();
        let value = chunks::assemble(self.map, self.nodes, code, &descriptor, &mut self.rng);
        value.map_err(|why| ("durability", format!("{}: {}: {why}", self.describe(loss), descriptor.id)))
    }

    /// What a stand-in would answer for a key, against what clients may be told.
    fn decode_key(&mut self, loss: &Loss, key: usize) -> Result<(), Broken> {
        let entry = &self.clients.keys()[key];
        let (name, hash, role) = (entry.bytes.clone(), entry.hash, usize::from(entry.member.role.0));
        let mut pages: BTreeMap<u32, Box<Page>> = BTreeMap::new();
        let mut found: Option<(Vec<u8>, Addr)> = None;
        let (addrs, cohorts) = self.settled_index(loss, role, hash);
        for addr in addrs {
            let Some(bytes) = self.decode_item(loss, role, addr, &mut pages)? else { return Ok(()) };
            let item = Item::parse(&bytes)
                .map_err(|error| ("durability", format!("{name:?} at {addr}: {error}")))?;
            // Keys may share the 40 bits of hash that the index knows.
            if item.key == &name[..] && cohorts.is_present(item.cohort()) {
                if !item.verify() {
                    let what = format!("{}: {name:?} at {addr} has a wrong checksum", self.describe(loss));
                    return Err(("durability", what));
                }
                found = Some((bytes, addr));
                break;
            }
        }
        self.stats.decoded_items += 1;
        // By the clock that is furthest ahead. Whether a client may be told so is up to the oracle.
        let item = found
            .as_ref()
            .and_then(|(bytes, _)| Item::parse(bytes).ok())
            .filter(|i| !i.is_expired(self.unix));
        // The value of a descriptor is what its chunks are.
        let assembled = item.filter(|item| item.object).map(|item| self.assemble(loss, &item)).transpose()?;
        let copy = item.map(|item| Copy {
            value: assembled.as_deref().unwrap_or(item.value),
            flags: item.client_flags,
            version: item.version,
        });
        let is_elsewhere = copy.is_none() && self.keys_move;
        if is_elsewhere || self.clients.oracle(key).admits(copy, self.unix) {
            return Ok(());
        }
        let what = match copy {
            None => "would be missing".to_owned(),
            Some(copy) => format!("would be {} version {}", brief_bytes(copy.value), copy.version),
        };
        Err(("durability", format!("{}: {name:?} of role-{role} {what}", self.describe(loss))))
    }

    /// Where the key may lie, by the replica of a survivor once it were settled, and whose items are found then.
    fn settled_index(&mut self, loss: &Loss, role: usize, hash: KeyHash) -> (Vec<Addr>, Cohorts) {
        let covers = |at: &usize| self.covers(&self.members.parities[*at], role);
        let covering: Vec<usize> = loss.survivors.iter().copied().filter(covers).collect();
        let survivor = self.rng.pick(&covering);
        let stream = self.members.parities[survivor].stream(role);
        let mine = IndexHash::from(hash);
        let mut addrs: Vec<Addr> = stream.replica.index().candidates(mine).collect();
        let settled = self.upto(loss, role);
        let mut cohorts = stream.replica.cohorts().clone();
        for op in stream.kept.iter().take_while(|record| record.seq <= settled).flat_map(|record| &record.ops)
        {
            if cohorts.foresee(op) {
                addrs.clear();
            }
            match *op {
                IndexOp::Insert { hash, addr, .. } if hash == mine => addrs.push(addr),
                IndexOp::Replace { hash, old, new, .. } if hash == mine => {
                    addrs.retain(|addr| *addr != old);
                    addrs.push(new);
                }
                IndexOp::Remove { hash, addr, .. } if hash == mine => addrs.retain(|a| *a != addr),
                _ => {}
            }
        }
        (addrs, cohorts)
    }

    /// The bytes of the item at `addr`; none if they cannot be decoded now.
    fn decode_item(
        &mut self,
        loss: &Loss,
        role: usize,
        addr: Addr,
        pages: &mut BTreeMap<u32, Box<Page>>,
    ) -> Result<Option<Vec<u8>>, Broken> {
        // The header tells how long the item is, so this takes a second round.
        let mut len = store::ITEM_HEADER_BYTES;
        loop {
            let Some(bytes) = self.decode_range(loss, role, addr.byte(), len, pages) else {
                return Ok(None);
            };
            match Item::parse(&bytes) {
                Ok(_) => return Ok(Some(bytes)),
                Err(ItemError::Truncated { len_bytes, .. })
                    if len_bytes <= MAX_ITEM_BYTES && len_bytes > len =>
                {
                    len = len_bytes;
                }
                Err(error) => {
                    let what = format!("{}: no item of role-{role} at {addr}: {error}", self.describe(loss));
                    return Err(("durability", what));
                }
            }
        }
    }

    fn decode_range(
        &mut self,
        loss: &Loss,
        role: usize,
        start: usize,
        len: usize,
        pages: &mut BTreeMap<u32, Box<Page>>,
    ) -> Option<Vec<u8>> {
        let range = PageRange::covering(start, len);
        let mut bytes = Vec::with_capacity(range.len_bytes());
        for page in range.iter() {
            if let Entry::Vacant(vacant) = pages.entry(page) {
                vacant.insert(self.decode_page(loss, role, page)?);
            }
            bytes.extend_from_slice(&pages[&page][..]);
        }
        let offset = start - range.start_byte();
        Some(bytes[offset..offset + len].to_vec())
    }
}
