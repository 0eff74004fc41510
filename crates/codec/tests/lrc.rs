//! Local reconstruction codes: maximally recoverable for Azure's parameters and others, over all loss patterns, with
//! real bytes.

use codec::Code;

/// The roles in a set given as bits.
fn roles(set: u32) -> Vec<usize> {
    (0..32).filter(|role| set >> role & 1 == 1).collect()
}

/// Whether any code with these groups could repair the loss: each group absorbs one loss, the `r` globals the rest.
/// (Lost globals are part of the rest.)
fn could_be_repaired((k, l, r): (usize, usize, usize), lost: &[usize]) -> bool {
    let group_of = |role: usize| if role < k { Some(role * l / k) } else { (role < k + l).then(|| role - k) };
    let in_group = |t: usize| lost.iter().filter(|role| group_of(**role) == Some(t)).count();
    let beyond_local: usize = (0..l).map(|t| in_group(t).saturating_sub(1)).sum();
    let globals = lost.iter().filter(|role| **role >= k + l).count();
    beyond_local + globals <= r
}

#[test]
fn every_loss_that_could_be_repaired_is_decodable_and_no_other() {
    let azure = [(4, 2, 2), (6, 2, 2), (12, 2, 2)];
    for (k, l, r) in
        azure.into_iter().chain([(6, 3, 2), (8, 4, 1), (5, 2, 2), (3, 3, 2), (6, 2, 0), (9, 1, 2)])
    {
        let code = Code::lrc(k, l, r).unwrap();
        for lost in (0..1u32 << code.n()).map(roles) {
            let expected = could_be_repaired((k, l, r), &lost);
            assert_eq!(code.decodable(&lost).unwrap(), expected, "lrc({k},{l},{r}) without {lost:?}");
        }
    }
}

#[test]
fn the_widest_groups_with_two_globals_are_maximally_recoverable() {
    // Three losses in one group, and two in each of two groups: what is beyond one per group comes to two.
    let code = Code::lrc(45, 3, 2).unwrap();
    let group: Vec<usize> = (0..15).chain([45]).collect();
    let other: Vec<usize> = (15..30).chain([46]).collect();
    for (a, first) in group.iter().enumerate() {
        for (b, second) in group[..a].iter().enumerate() {
            for third in &group[..b] {
                assert!(code.decodable(&[*first, *second, *third]).unwrap());
            }
            for (c, third) in other.iter().enumerate() {
                for fourth in &other[..c] {
                    assert!(code.decodable(&[*first, *second, *third, *fourth]).unwrap());
                }
            }
        }
    }
}

#[test]
fn beyond_the_construction_any_r_and_one_losses_are_decodable() {
    for (k, l, r) in [(6, 2, 3), (5, 2, 4), (16, 1, 2), (8, 2, 3)] {
        let code = Code::lrc(k, l, r).unwrap();
        let few = |set: &u32| set.count_ones() as usize <= r + 1;
        for lost in (0..1u32 << code.n()).filter(few).map(roles) {
            assert!(code.decodable(&lost).unwrap(), "lrc({k},{l},{r}) without {lost:?}");
        }
    }
}

#[test]
fn every_decodable_loss_of_azures_codes_is_repaired_to_the_byte() {
    for (k, l, r) in [(4, 2, 2), (6, 2, 2), (12, 2, 2)] {
        let code = Code::lrc(k, l, r).unwrap();
        let mut chunks: Vec<Vec<u8>> =
            (0..k).map(|i| (0..67).map(|at| (at * 31 + i * 101 + at * at * i) as u8).collect()).collect();
        let mut parity = vec![vec![0; 67]; l + r];
        let borrowed: Vec<&[u8]> = chunks.iter().map(Vec::as_slice).collect();
        code.encode(&borrowed, &mut parity.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>()).unwrap();
        chunks.extend(parity);
        let decodable = |lost: &Vec<usize>| !lost.is_empty() && code.decodable(lost).unwrap();
        for lost in (0..1u32 << code.n()).map(roles).filter(decodable) {
            let plan = code.cheapest_plan(&lost, &lost).unwrap();
            assert!(plan.sources().iter().all(|helper| !lost.contains(helper)));
            let sources: Vec<&[u8]> = plan.sources().iter().map(|role| chunks[*role].as_slice()).collect();
            let mut found = vec![vec![0x55; 67]; lost.len()];
            plan.run(&sources, &mut found.iter_mut().map(Vec::as_mut_slice).collect::<Vec<_>>()).unwrap();
            assert!(lost.iter().zip(&found).all(|(role, bytes)| *bytes == chunks[*role]), "without {lost:?}");
        }
    }
}

#[test]
fn one_loss_reads_its_group_and_two_in_one_group_read_k() {
    let code = Code::lrc(12, 2, 2).unwrap();
    for role in 0..12 {
        let group = role / 6;
        let mut expected: Vec<usize> = (group * 6..group * 6 + 6).filter(|other| *other != role).collect();
        expected.push(12 + group);
        assert_eq!(code.helpers(&[role], &[role]).unwrap(), expected);
    }
    assert_eq!(code.helpers(&[12], &[12]).unwrap(), [0, 1, 2, 3, 4, 5]);
    assert_eq!(code.helpers(&[0, 6], &[0]).unwrap().len(), 6);
    assert_eq!(code.helpers(&[0, 6], &[0, 6]).unwrap().len(), 12);
    assert_eq!(code.helpers(&[0, 1], &[0]).unwrap().len(), 12);
}
