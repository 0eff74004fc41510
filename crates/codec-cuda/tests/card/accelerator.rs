//! A card beside threads that may not wait: what it does, what it leaves, and that the bytes are the same.

use std::time::Duration;

use codec::conformance::noise;
use codec::{Accelerator, Code, Coder, Work};
use codec_cuda::{CardAccelerator, CudaError};

use crate::{card, in_another_process};

/// As long as a cell of a server.
const CELL: usize = 64 << 10;

/// One that uses the card for everything; none where there is no card.
fn always() -> Option<std::sync::Arc<CardAccelerator>> {
    card()?;
    Some(std::sync::Arc::new(CardAccelerator::always(0).unwrap()))
}

fn data(code: &Code) -> Vec<Vec<u8>> {
    (0..code.k()).map(|role| noise(role, CELL)).collect()
}

/// Encodes a row, decodes two of its cells, and adds two up: all bytes are right.
fn use_it(coder: &Coder) {
    let code = Code::rs(4, 2).unwrap();
    let data = data(&code);
    let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
    let (mut expected, mut found) = (vec![vec![0; CELL]; 2], vec![vec![0xa5; CELL]; 2]);
    code.encode(&data, &mut borrow(&mut expected)).unwrap();
    coder.encode(&code, &data, &mut borrow(&mut found)).unwrap();
    assert!(found == expected, "encoded");

    let plan = code.plan(&[1, 2, 4, 5], &[0, 3]).unwrap();
    let cells: Vec<&[u8]> = data.iter().copied().chain(expected.iter().map(Vec::as_slice)).collect();
    let sources: Vec<&[u8]> = plan.sources().iter().map(|role| cells[*role]).collect();
    let mut lost = vec![vec![0xa5; CELL]; 2];
    coder.reconstruct(&plan, &sources, &mut borrow(&mut lost)).unwrap();
    assert!(lost[0] == data[0] && lost[1] == data[3], "decoded");

    let mut sum = vec![0xa5; CELL];
    coder.combine(&[1, 1], &data[..2], &mut [&mut sum]).unwrap();
    assert!(sum.iter().zip(data[0].iter().zip(data[1])).all(|(sum, (a, b))| *sum == a ^ b), "added up");
}

fn borrow(cells: &mut [Vec<u8>]) -> Vec<&mut [u8]> {
    cells.iter_mut().map(Vec::as_mut_slice).collect()
}

fn wait_until_ready(card: &CardAccelerator) {
    while !card.is_ready() {
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

#[test]
fn nobody_waits_for_kernels_and_afterwards_the_card_does_it() {
    let Some(card) = always() else { return };
    let coder = Coder::with(card.clone());
    use_it(&coder);
    assert_eq!(card.work(), Work { left: 3, ..Work::default() }, "nothing is ready yet");
    wait_until_ready(&card);
    use_it(&coder);
    let bytes = (4 + 4 + 2) * CELL as u64;
    assert_eq!(card.work(), Work { done: 3, bytes, left: 3, faults: 0 });
    // Another pattern of the same shape needs no kernel of its own.
    let code = Code::rs(4, 2).unwrap();
    let plan = code.plan(&[0, 1, 4, 5], &[2, 3]).unwrap();
    let cells = vec![noise(1, CELL); plan.sources().len()];
    let sources: Vec<&[u8]> = cells.iter().map(Vec::as_slice).collect();
    coder.reconstruct(&plan, &sources, &mut borrow(&mut vec![vec![0; CELL]; 2])).unwrap();
    assert_eq!(card.work().done, 4);
}

#[test]
fn what_is_wrong_with_cells_is_said_and_is_no_fault_of_the_card() {
    let Some(card) = always() else { return };
    let coder = Coder::with(card.clone());
    use_it(&coder);
    wait_until_ready(&card);
    let code = Code::rs(4, 2).unwrap();
    let cells = [noise(1, CELL), noise(2, CELL - 1)];
    let unequal: Vec<&[u8]> = (0..4).map(|role| &cells[role % 2][..]).collect();
    let mut parity = vec![vec![0; CELL]; 2];
    assert!(coder.encode(&code, &unequal, &mut borrow(&mut parity)).is_err());
    assert!(coder.encode(&code, &unequal[..1], &mut borrow(&mut parity)).is_err());
    assert_eq!(card.work().faults, 0);
}

#[test]
fn who_measures_leaves_little_to_the_processor_without_asking() {
    if card().is_none() {
        return;
    }
    let card = CardAccelerator::new(0).unwrap();
    let code = Code::rs(2, 1).unwrap();
    let cells = [noise(1, 1000), noise(2, 1000)];
    assert!(!card.encode(&code, &[&cells[0], &cells[1]], &mut [&mut [0; 1000]]));
    assert!(card.is_ready(), "nothing is measured for so few bytes");
}

#[test]
fn without_a_card_there_is_none() {
    in_another_process("accelerator::no_card", |child, _| child.env("GESTALT_EMULATED_CUDA", "devices=0"));
}

#[test]
#[ignore = "needs an emulated driver: run by the test above"]
fn no_card() {
    assert!(matches!(CardAccelerator::always(0), Err(CudaError::NoDevice { .. })));
}

#[test]
fn a_card_that_is_lost_costs_a_fault_and_no_bytes() {
    in_another_process("accelerator::lost_card", |child, _| child);
}

#[test]
#[ignore = "needs an emulated driver: run by the test above"]
#[allow(unsafe_code)] // Changes the environment.
fn lost_card() {
    let card = always().unwrap();
    let coder = Coder::with(card.clone());
    use_it(&coder);
    wait_until_ready(&card);
    use_it(&coder);
    assert_eq!(card.work().done, 3);
    // SAFETY: this process runs this test alone, and the card's thread has nothing to do.
    unsafe { std::env::set_var("GESTALT_EMULATED_CUDA", "lost-after=1") };
    use_it(&coder);
    use_it(&coder);
    let work = card.work();
    assert_eq!((work.done, work.left), (3, 9));
    assert!(work.faults > 0, "{work:?}");
}

#[test]
fn a_card_without_memory_is_left_alone_for_a_while() {
    in_another_process("accelerator::full_card", |child, _| {
        child.env("GESTALT_EMULATED_CUDA", "memory=100000")
    });
}

#[test]
#[ignore = "needs an emulated driver: run by the test above"]
fn full_card() {
    let card = always().unwrap();
    let coder = Coder::with(card.clone());
    use_it(&coder);
    wait_until_ready(&card);
    use_it(&coder);
    let faults = card.work().faults;
    assert!(faults > 0);
    use_it(&coder);
    assert_eq!(card.work().faults, faults, "it is not asked again and again");
    assert_eq!(card.work().done, 0);
}
