//! No public call that returns a `Result` panics, whatever it is given, and what is refused leaves the outputs alone.

use std::num::NonZeroUsize;

use codec::{Code, CodeError, Family, Fused, PlanCache, Scheme};
use proptest::prelude::*;

/// What outputs hold before a call.
const UNTOUCHED: u8 = 0xb6;

fn any_code() -> impl Strategy<Value = Code> {
    let size = || 0usize..9;
    let family = (0..Family::ALL.len()).prop_map(|index| Family::ALL[index]);
    prop_oneof![
        (family, size(), size()).prop_map(|(family, k, m)| Code::of_family(family, k, m)),
        (size(), size(), size()).prop_map(|(k, l, r)| Code::lrc(k, l, r)),
        size().prop_map(Code::rep),
        (size(), proptest::collection::vec(size(), 0..5)).prop_map(|(k, roles)| Code::mirrors(k, &roles)),
        (size(), proptest::collection::vec(proptest::collection::vec(0u8..3, 0..9), 0..6)).prop_map(
            |(k, rows)| {
                let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
                Code::custom(k, &rows).or_else(|_| Code::systematic(k, &rows))
            }
        ),
    ]
    .prop_filter_map("a code", Result::ok)
}

/// Counts that are right, or nearly so, or anything.
fn count(right: usize, salt: usize) -> usize {
    match salt % 8 {
        0..5 => right,
        5 => right + 1,
        6 => right.saturating_sub(1),
        _ => salt / 8 % 12,
    }
}

/// Byte strings most of which are of one length.
fn chunks(count: usize, lengths: &[usize]) -> Vec<Vec<u8>> {
    (0..count).map(|i| vec![UNTOUCHED; lengths[i % lengths.len()]]).collect()
}

fn borrow(chunks: &[Vec<u8>]) -> Vec<&[u8]> {
    chunks.iter().map(Vec::as_slice).collect()
}

fn borrow_mut(chunks: &mut [Vec<u8>]) -> Vec<&mut [u8]> {
    chunks.iter_mut().map(Vec::as_mut_slice).collect()
}

/// Runs `call` on outputs and checks that a refusal wrote nothing.
fn run(count: usize, lengths: &[usize], call: impl FnOnce(&mut [&mut [u8]]) -> Result<(), CodeError>) {
    let mut outputs = chunks(count, lengths);
    let refused = call(&mut borrow_mut(&mut outputs)).is_err();
    if refused {
        assert!(outputs.iter().flatten().all(|byte| *byte == UNTOUCHED), "refused, but wrote");
    }
}

fn any_lengths() -> impl Strategy<Value = Vec<usize>> {
    prop_oneof![
        5 => (0usize..200).prop_map(|len| vec![len]),
        2 => proptest::collection::vec(0usize..4, 1..5),
    ]
}

fn any_roles() -> impl Strategy<Value = Vec<usize>> {
    let role = prop_oneof![20 => 0usize..14, 1 => 250usize..260, 1 => Just(usize::MAX)];
    proptest::collection::vec(role, 0..14)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn encoding_never_panics(
        code in any_code(),
        lengths in any_lengths(),
        other in any_lengths(),
        salts in proptest::array::uniform4(0usize..500),
        role in 0usize..12,
    ) {
        let data = chunks(count(code.k(), salts[0]), &lengths);
        let sources = borrow(&data);
        let outputs = count(code.m(), salts[1]);
        let lengths = if salts[2].is_multiple_of(5) { other } else { lengths };
        run(outputs, &lengths, |out| code.encode(&sources, out));
        run(outputs, &lengths, |out| {
            code.encode_with_threads(&sources, out, NonZeroUsize::new(1 + salts[3] % 4).unwrap())
        });
        let delta = sources.first().copied().unwrap_or(&[]);
        run(outputs, &lengths, |out| code.update(role, delta, out));
        let _ = code.verify(&sources, &borrow(&chunks(outputs, &lengths)));
        let coefficients = vec![3; count(sources.len(), salts[2])];
        run(1, &lengths, |out| codec::combine_add(out[0], &coefficients, &sources));
        let kernel = code.kernel();
        run(1, &lengths, |out| codec::xor(out[0], delta));
        run(1, &lengths, |out| codec::mul(out[0], 7, delta));
        run(1, &lengths, |out| codec::mul_add(out[0], 7, delta));
        run(outputs, &lengths, |out| kernel.combine(&coefficients, &sources, out));
        run(outputs, &lengths, |out| kernel.combine_add(&vec![2; sources.len() * outputs], &sources, out));
        run(count(code.k(), salts[3]), &lengths, |copies| {
            let mut parity = chunks(outputs, &lengths);
            let mut sums = vec![0; count(code.n(), salts[2])];
            let fused = Fused { copies: Some(copies), checksums: Some(&mut sums) };
            let result = code.encode_fused(&sources, &mut borrow_mut(&mut parity), fused);
            if result.is_err() {
                assert!(parity.iter().flatten().all(|byte| *byte == UNTOUCHED));
            }
            result
        });
    }

    #[test]
    fn reconstruction_never_panics(
        code in any_code(),
        lengths in any_lengths(),
        present in any_roles(),
        wanted in any_roles(),
        salts in proptest::array::uniform2(0usize..500),
    ) {
        let data = chunks(present.len(), &lengths);
        let held: Vec<(usize, &[u8])> = present.iter().copied().zip(borrow(&data)).collect();
        let cache = PlanCache::new(code.clone(), 3);
        run(wanted.len(), &lengths, |out| {
            let outputs = out.iter_mut().map(|chunk| &mut **chunk);
            code.reconstruct(&held, &mut wanted.iter().copied().zip(outputs).collect::<Vec<_>>())
        });
        run(wanted.len(), &lengths, |out| {
            let outputs = out.iter_mut().map(|chunk| &mut **chunk);
            cache.reconstruct(&held, &mut wanted.iter().copied().zip(outputs).collect::<Vec<_>>())
        });
        let residuals = chunks(count(present.len(), salts[0]), &lengths);
        let one = wanted.first().copied().unwrap_or(0);
        run(1, &lengths, |out| code.recover(&present, &wanted, one, &borrow(&residuals), out[0]));
        let _ = (code.decodable(&present), code.helpers(&present, &wanted), cache.plan(&present, &wanted));
        let plans = [code.plan(&present, &wanted), code.cheapest_plan(&present, &wanted)];
        for plan in plans.into_iter().chain([code.recovery_plan(&present, &wanted, one)]).flatten() {
            let sources = chunks(count(plan.sources().len(), salts[1]), &lengths);
            run(count(plan.outputs().len(), salts[0]), &lengths, |out| plan.run(&borrow(&sources), out));
        }
    }

    #[test]
    fn constructors_never_panic(
        numbers in proptest::array::uniform3(prop_oneof![0usize..300, Just(usize::MAX), Just(usize::MAX / 2)]),
        rows in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..5), 0..7),
    ) {
        let [a, b, c] = numbers;
        let _ = (Code::rs(a, b), Code::lrc(a, b, c), Code::rep(a), Code::xor(a), Code::mirrors(a, &[b, c]));
        Family::ALL.into_iter().for_each(|family| drop(Code::of_family(family, a, b)));
        let rows: Vec<&[u8]> = rows.iter().map(Vec::as_slice).collect();
        let _ = (Code::custom(a, &rows), Code::systematic(a, &rows), Code::systematic(4, &rows));
    }

    #[test]
    fn any_text_is_a_scheme_or_refused(
        text in "(rs|lrc|rep|mirror|xor|none|isal-cauchy|[a-z-]{0,5})?\\(?[0-9+,kmp=]{0,9}\\)?",
        other in any::<String>(),
    ) {
        for text in [text, other] {
            if let Ok(scheme) = text.parse::<Scheme>() {
                prop_assert_eq!(scheme.to_string().parse::<Scheme>(), Ok(scheme));
                let _ = (Code::of(scheme), scheme.tolerance());
            }
        }
    }
}

#[test]
fn every_refusal_says_what_was_wrong() {
    let code = Code::rs(3, 2).unwrap();
    let (chunk, mut a, mut b) = ([0u8; 4], [0u8; 4], [0u8; 4]);
    let empty: &[u8] = &[];
    let count = |what, expected, found| Err(CodeError::Count { what, expected, found });
    assert_eq!(code.encode(&[empty; 3], &mut [&mut [], &mut []]), Err(CodeError::Empty));
    assert_eq!(
        code.update(3, &chunk, &mut [&mut a, &mut b]),
        Err(CodeError::NoSuchRole { role: 3, limit: 3 })
    );
    assert_eq!(code.update(2, &chunk, &mut [&mut a]), count("parity chunks", 2, 1));
    assert_eq!(code.update(2, &[], &mut [&mut [], &mut []]), Err(CodeError::Empty));
    assert_eq!(
        code.update(2, &chunk[..3], &mut [&mut a, &mut b]),
        Err(CodeError::Length { expected: 3, found: 4 })
    );
    let data = [&chunk[..]; 3];
    assert_eq!(code.encode_and_sum(&data, &mut [&mut a, &mut b], &mut [0; 4]), count("checksums", 5, 4));
    assert_eq!(code.encode_and_copy(&data, &mut [], &mut [&mut a, &mut b]), count("copies", 3, 0));
    assert_eq!(code.verify(&data, &[&chunk]).map(drop), count("parity chunks", 2, 1));
    assert_eq!(codec::combine_add(&mut a, &[1], &[]), count("coefficients", 0, 1));
    assert_eq!(codec::xor(&mut a, &[1]), Err(CodeError::Length { expected: 1, found: 4 }));
    let refused = Code::of_family(Family::IsalVandermonde, 8, 6).unwrap_err().to_string();
    assert!(refused.starts_with("isal-vandermonde(8+6) is not MDS: parity rows [0, 2, 5]"), "{refused}");
}
