//! No kernel reads or writes a byte outside the slices it is given, whatever their length and alignment: slices end, or
//! begin, at pages that cannot be touched.
#![cfg(unix)]
#![allow(unsafe_code)]

use codec::{Code, Family, Kernel, kernels};

/// Every length from none to more than four of the widest vectors, and around a block.
fn lengths() -> impl Iterator<Item = usize> {
    (0..=300).chain([4095, 4096, 4097])
}

/// Memory between two pages that cannot be touched.
struct Guarded {
    base: *mut u8,
    page: usize,
}

/// Room between the guards.
const ROOM: usize = 2 << 16;

impl Guarded {
    fn new() -> Self {
        // SAFETY: asks for fresh memory, of which only the middle part is made accessible.
        unsafe {
            let page = usize::try_from(libc::sysconf(libc::_SC_PAGESIZE)).expect("a page has a size");
            assert!(ROOM.is_multiple_of(page));
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            let base = libc::mmap(std::ptr::null_mut(), ROOM + 2 * page, libc::PROT_NONE, flags, -1, 0);
            assert_ne!(base, libc::MAP_FAILED);
            let base = base.cast::<u8>();
            let middle = libc::mprotect(base.add(page).cast(), ROOM, libc::PROT_READ | libc::PROT_WRITE);
            assert_eq!(middle, 0);
            Self { base, page }
        }
    }

    /// `len` bytes right before the second guard, or right behind the first.
    fn slice(&mut self, len: usize, at_end: bool) -> &mut [u8] {
        assert!(len <= ROOM);
        let offset = self.page + if at_end { ROOM - len } else { 0 };
        // SAFETY: within the accessible part, which is borrowed as a whole.
        unsafe { std::slice::from_raw_parts_mut(self.base.add(offset), len) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: mapped in `new`, and borrowed by no one.
        unsafe { libc::munmap(self.base.cast(), ROOM + 2 * self.page) };
    }
}

fn fill(bytes: &mut [u8], salt: usize) {
    let noise = |i: usize| (i.wrapping_mul(167) ^ (i >> 5).wrapping_mul(31) ^ salt.wrapping_mul(89)) as u8;
    bytes.iter_mut().enumerate().for_each(|(i, byte)| *byte = noise(i));
}

fn scalar() -> Kernel {
    *kernels().last().expect("the scalar kernel is always there")
}

/// All operations of `kernel` on guarded memory: what the outputs hold then.
fn run(kernel: Kernel, memory: &mut [Guarded], len: usize, at_end: bool) -> Vec<Vec<u8>> {
    let (outputs, sources) = memory.split_at_mut(5);
    let sources: Vec<&[u8]> = sources
        .iter_mut()
        .enumerate()
        .map(|(s, memory)| {
            let source = memory.slice(len, at_end);
            fill(source, s);
            &*source
        })
        .collect();
    let mut outputs: Vec<&mut [u8]> = outputs.iter_mut().map(|memory| memory.slice(len, at_end)).collect();
    outputs.iter_mut().enumerate().for_each(|(o, output)| fill(output, 50 + o));
    let mut coefficients = [0; 15];
    fill(&mut coefficients, 77);
    kernel.combine_add(&coefficients, &sources, &mut outputs).expect("slices of one length");
    kernel.xor(outputs[0], sources[0]).expect("slices of one length");
    kernel.mul_add(outputs[1], 0x53, sources[1]).expect("slices of one length");
    kernel.mul(outputs[2], 0x8e, sources[2]).expect("slices of one length");
    kernel.combine(&coefficients[..6], &sources, &mut outputs[3..]).expect("slices of one length");
    let mut results: Vec<Vec<u8>> = outputs.iter().map(|output| output.to_vec()).collect();
    if len > 0 {
        let (parity, copies) = outputs.split_at_mut(2);
        let code = |family| Code::of_family(family, 3, 2).map(|code| code.with_kernel(kernel));
        code(Family::Lch).and_then(|code| code.encode(&sources, parity)).expect("equal lengths");
        results.extend(parity.iter().map(|output| output.to_vec()));
        let copied = code(Family::CauchyXor).and_then(|code| code.encode_and_copy(&sources, copies, parity));
        copied.expect("equal lengths");
        results.extend(outputs.iter().map(|output| output.to_vec()));
        let chunks: Vec<&mut [u8]> = memory.iter_mut().map(|memory| memory.slice(len, at_end)).collect();
        results.push(run_prepared(kernel, chunks));
    }
    results
}

/// The parities of (3,2), of chunks that were prepared.
fn run_prepared(kernel: Kernel, mut chunks: Vec<&mut [u8]>) -> Vec<u8> {
    let code = Code::rs(3, 2).expect("a code").with_kernel(kernel);
    let data = chunks.split_off(5);
    let mut prepared = code.prepare(data, chunks.split_off(3)).expect("equal lengths");
    prepared.run();
    [prepared.output(0), prepared.output(1)].concat()
}

#[test]
fn no_kernel_touches_what_lies_outside_its_slices() {
    let mut memory: Vec<Guarded> = (0..8).map(|_| Guarded::new()).collect();
    for at_end in [true, false] {
        for len in lengths() {
            let expected = run(scalar(), &mut memory, len, at_end);
            for kernel in kernels() {
                assert!(run(*kernel, &mut memory, len, at_end) == expected, "{kernel:?}, {len} bytes");
            }
        }
    }
}

#[test]
fn no_kernel_depends_on_alignment() {
    let mut buffer = [0; 1024];
    fill(&mut buffer, 5);
    for kernel in kernels() {
        for offset in 0..64 {
            for len in [0, 1, 15, 17, 31, 33, 63, 64, 65, 127, 130, 300] {
                let outcome = |kernel: Kernel| {
                    let mut bytes = buffer;
                    let (dst, src) = bytes.split_at_mut(512);
                    let (source, other) = (&src[offset..offset + len], &src[63 - offset..63 - offset + len]);
                    kernel.mul_add(&mut dst[63 - offset..63 - offset + len], 0xc3, source).unwrap();
                    kernel
                        .combine(&[7, 9], &[source, other], &mut [&mut dst[100 + offset..100 + offset + len]])
                        .unwrap();
                    bytes
                };
                assert!(outcome(*kernel) == outcome(scalar()), "{kernel:?}, {len} bytes at {offset}");
            }
        }
    }
}
