//! A tensor that lies on a card is put into a store on the processor's side: it is encoded where it is, and its chunks travel one after
//! the other while the store takes those that have arrived. Then two holders are lost, and it comes back all the same.
//!
//!     cargo run --release -p codec-cuda --example tensor -- 256
#![allow(unsafe_code)] // Addresses in a card's memory are the caller's word.
#![allow(clippy::disallowed_methods, reason = "says how long it took")]

use std::collections::BTreeMap;
use std::error::Error;
use std::time::Instant;

use codec::Code;
use codec_cuda::{Codec, Device, DeviceBuffer, PinnedBuffer, Readout};

const SHAPE: (usize, usize) = (4, 2);
/// Chunks that travel at a time.
const UNDER_WAY: usize = 2;

/// In place of holders on other machines, with their memory: chunks by role.
struct Store(BTreeMap<usize, Vec<u8>>);

impl Store {
    fn new(chunks: usize, len: usize) -> Self {
        Self((0..chunks).map(|role| (role, vec![0xa5; len])).collect())
    }

    fn put(&mut self, role: usize, chunk: &[u8]) {
        self.0.entry(role).or_default().copy_from_slice(chunk);
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mib: usize = std::env::args().nth(1).map_or(Ok(64), |text| text.parse())?;
    let codec = Codec::new(0, Codec::all_threads());
    let device = match codec.device() {
        Ok(device) => device.clone(),
        Err(error) => {
            println!("nothing to show: {error}");
            return Ok(());
        }
    };
    let code = Code::rs(SHAPE.0, SHAPE.1)?;
    let len = (mib << 20).div_ceil(code.k());
    let mut tensor = device.allocate(code.n() * len)?;
    let content: Vec<u8> = (0..code.k() * len).map(|i| ((i * 31) ^ (i >> 7)) as u8).collect();
    tensor.write(0, &content)?;

    let mut store = Store::new(code.n(), len);
    // The first time, the kernel is compiled.
    for _ in 0..2 {
        put(&codec, &code, &tensor, len, &mut store)?;
    }
    store.0.remove(&0);
    store.0.remove(&3);
    let back = get(&code, &store, len)?;
    assert!(back == content, "the tensor is not what it was");
    println!(
        "{mib} MiB on {}, put, two of {} chunks lost, and read: the same bytes",
        device.name(),
        code.n()
    );
    Ok(())
}

/// Encodes the tensor at the beginning of `tensor`, into parities behind it, and hands all chunks to the store.
fn put(
    codec: &Codec,
    code: &Code,
    tensor: &DeviceBuffer,
    len: usize,
    store: &mut Store,
) -> Result<(), Box<dyn Error>> {
    let device = codec.device().map_err(Clone::clone)?;
    let chunks: Vec<u64> = (0..code.n()).map(|role| tensor.address_of(role * len, len)).collect();
    let (data, parity) = chunks.split_at(code.k());
    // Taken once, and used for every tensor.
    let mut free: Vec<PinnedBuffer> =
        (0..UNDER_WAY).map(|_| device.allocate_pinned(len)).collect::<Result<_, _>>()?;

    let begun = Instant::now();
    // SAFETY: all chunks are in `tensor`, apart from each other.
    let place = unsafe { codec.encode_device(code, data, parity, len) }?;
    let encoded = begun.elapsed();
    let mut under_way: Vec<(usize, Readout)> = Vec::new();
    for (role, chunk) in chunks.iter().enumerate() {
        let buffer = match free.pop() {
            Some(buffer) => buffer,
            None => arrive(&mut under_way, store, len)?,
        };
        under_way.push((role, read_out(device, *chunk, len, buffer)?));
    }
    while !under_way.is_empty() {
        arrive(&mut under_way, store, len)?;
    }
    let rate = |seconds: f64| (code.k() * len) as f64 / seconds / 1e9;
    println!(
        "encoded on {}: {:.1} GB/s; encoded, read out and stored: {:.1} GB/s",
        place.name(),
        rate(encoded.as_secs_f64()),
        rate(begun.elapsed().as_secs_f64())
    );
    Ok(())
}

fn read_out(
    device: &std::sync::Arc<Device>,
    chunk: u64,
    len: usize,
    into: PinnedBuffer,
) -> Result<Readout, Box<dyn Error>> {
    // SAFETY: the chunk is in the tensor, which stays, and nobody writes it.
    Ok(unsafe { device.read_out(&[(chunk, len)], into) }?)
}

/// Waits for the oldest chunk, stores it, and gives its buffer back.
fn arrive(
    under_way: &mut Vec<(usize, Readout)>,
    store: &mut Store,
    len: usize,
) -> Result<PinnedBuffer, Box<dyn Error>> {
    let (role, readout) = under_way.remove(0);
    let buffer = readout.wait()?;
    store.put(role, &buffer.bytes()[..len]);
    Ok(buffer)
}

/// The object of the chunks that are left.
fn get(code: &Code, store: &Store, len: usize) -> Result<Vec<u8>, Box<dyn Error>> {
    let left: Vec<usize> = store.0.keys().copied().collect();
    let lost: Vec<usize> = (0..code.k()).filter(|role| !left.contains(role)).collect();
    let plan = code.plan(&left, &lost)?;
    let sources: Vec<&[u8]> = plan.sources().iter().map(|role| &store.0[role][..]).collect();
    let mut repaired = vec![vec![0; len]; lost.len()];
    let mut outputs: Vec<&mut [u8]> = repaired.iter_mut().map(Vec::as_mut_slice).collect();
    plan.run(&sources, &mut outputs)?;
    let repaired: BTreeMap<usize, Vec<u8>> = lost.into_iter().zip(repaired).collect();
    Ok((0..code.k())
        .flat_map(|role| store.0.get(&role).unwrap_or_else(|| &repaired[&role]).clone())
        .collect())
}
