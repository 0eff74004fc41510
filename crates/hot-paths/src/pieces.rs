//! Pieces of the paths by themselves: the codec's calls, and a slot.

use std::hint::black_box;

use codec::Code;
use store::{Allocation, Budget, DataStore, Eviction, Shortage, StoreConfig, encoded_len};
use types::ClusterId;

use crate::data;
use crate::path::{Path, counted};

const CHUNK: usize = 4096;
const STORE_BYTES: usize = 64 << 20;
/// Slots that are taken, so that those in question lie among others.
const TAKEN: usize = 1000;

pub const PATHS: &[Path] = &[
    Path { name: "encode-10-4-4k", about: "a stripe of 10 chunks of 4 KiB gets 4 parities", run: encode },
    Path { name: "delta-64", about: "a delta of 64 B added to a parity", run: |times| delta(times, 64) },
    Path { name: "delta-1k", about: "a delta of 1 KiB added to a parity", run: |times| delta(times, 1024) },
    Path { name: "slot", about: "a slot for an item of 100 B handed out and given back", run: slot },
];

fn encode(times: usize) {
    // A matrix, which needs no clock to be chosen.
    let code = Code::rs(10, 4).expect("a valid code").without_transform();
    let data: Vec<Vec<u8>> = (0..10).map(|chunk| data::bytes(chunk, CHUNK)).collect();
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    let mut parity = vec![vec![0; CHUNK]; 4];
    for _ in 0..times {
        let mut parity: Vec<&mut [u8]> = parity.iter_mut().map(Vec::as_mut_slice).collect();
        counted(|| code.encode(black_box(&data), &mut parity)).expect("chunks of one length");
    }
    let parity: Vec<&[u8]> = parity.iter().map(Vec::as_slice).collect();
    assert_eq!(code.verify(&data, &parity).expect("chunks of one length"), []);
}

fn delta(times: usize, len: usize) {
    const COEFFICIENT: u8 = 0x1d;
    let delta = data::bytes(0, len);
    let mut area = data::bytes(1, CHUNK);
    let before = area.clone();
    for _ in 0..times {
        counted(|| codec::mul_add(&mut area[..len], COEFFICIENT, black_box(&delta))).expect("of one length");
    }
    // An even number of times: what is added twice is gone.
    assert_eq!(area, before);
    codec::mul_add(&mut area[..len], COEFFICIENT, &delta).expect("of one length");
    assert_ne!(area, before);
}

fn slot(times: usize) {
    let config =
        StoreConfig { cluster: ClusterId(1), area_limit_bytes: STORE_BYTES, eviction: Eviction::None };
    let mut store = DataStore::new(config, Budget::new(STORE_BYTES as u64 * 2)).expect("address space");
    let len = encoded_len(20, 100);
    let taken: Vec<Allocation> = (0..TAKEN).map(|_| allocate(&mut store, len)).collect();
    for _ in 0..times {
        let addr = counted(|| {
            let allocation = store.allocate(len).expect("there is room");
            store.cancel(allocation.addr, len);
            allocation.addr
        });
        assert!(taken.iter().all(|other| other.addr != addr));
    }
}

/// A slot; extents are committed as needed.
fn allocate(store: &mut DataStore, len: usize) -> Allocation {
    loop {
        match store.allocate(len) {
            Ok(allocation) => return allocation,
            Err(Shortage::Extent(extent)) => store.commit_extent(extent).expect("there is memory"),
            Err(shortage) => panic!("{shortage:?}"),
        }
    }
}
