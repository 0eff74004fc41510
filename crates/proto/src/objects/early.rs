//! Chunks for roles that this host does not hold yet, from writers whose view says that it does.

use std::collections::BTreeMap;

use types::{GroupId, HostId};
use wire::object::{Put, PutShared};

/// See the module.
#[derive(Default)]
pub(super) struct Early {
    puts: BTreeMap<GroupId, Vec<(HostId, PutShared)>>,
    bytes: usize,
}

impl Early {
    /// Keeps a cell until there is a newer view of its group; drops it if too much waits: the writer puts it again.
    pub(super) fn keep(&mut self, most_bytes: usize, from: HostId, shared: PutShared) {
        let bytes = self.bytes + bytes_of(&shared.put);
        if bytes <= most_bytes {
            self.bytes = bytes;
            self.puts.entry(shared.put.member.group).or_default().push((from, shared));
        }
    }

    /// What has waited for a view of `group`, in order.
    pub(super) fn take(&mut self, group: GroupId) -> Vec<(HostId, PutShared)> {
        let puts = self.puts.remove(&group).unwrap_or_default();
        self.bytes -= puts.iter().map(|(_, shared)| bytes_of(&shared.put)).sum::<usize>();
        puts
    }

    /// What came from `peer` is put again on its next link.
    pub(super) fn forget(&mut self, peer: HostId) {
        let mut bytes = 0;
        self.puts.retain(|_, puts| {
            puts.retain(|(from, _)| *from != peer);
            bytes += puts.iter().map(|(_, shared)| bytes_of(&shared.put)).sum::<usize>();
            !puts.is_empty()
        });
        self.bytes = bytes;
    }

    pub(super) fn memory_bytes(&self) -> usize {
        self.bytes
    }
}

fn bytes_of(put: &Put) -> usize {
    put.cell.bytes.len() + size_of::<PutShared>()
}
