//! What is read all the time stays, whatever is written.

use store::Eviction;

use crate::driver::Role;

const HOT_KEYS: usize = 20;

/// Reads of `HOT_KEYS` keys of 1,000 bytes before every set of a value, of the next of `sizes`; how many missed, of all.
fn misses(extents: usize, hot: usize, sets: usize, sizes: &[usize]) -> (usize, usize) {
    let mut role = Role::new(extents, Eviction::Clock, u64::MAX);
    let hot: Vec<Vec<u8>> = (0..hot).map(|key| format!("hot{key}").into_bytes()).collect();
    hot.iter().for_each(|key| role.set(key, &[7; 1000]).unwrap());
    role.commit_all();
    let (mut missed, mut read) = (0, 0);
    for set in 0..sets {
        for key in &hot {
            read += 1;
            if role.get(key).is_none() {
                missed += 1;
                role.set(key, &[7; 1000]).unwrap();
            }
        }
        let size = sizes[set % sizes.len()];
        role.set(format!("cold{set}").as_bytes(), &vec![3; size]).unwrap();
    }
    (missed, read)
}

#[test]
fn what_is_read_all_the_time_survives_any_stream_of_sets() {
    let sizes: [&[usize]; 10] = [
        &[100],
        &[1000],
        &[4000],
        &[12_000],
        &[16_000],
        &[32_000],
        &[100_000],
        &[600_000],
        &[1_000_000],
        &[100, 4000, 32_000, 600_000],
    ];
    for extents in [3, 24] {
        for hot in [1, 3, HOT_KEYS] {
            for sizes in sizes {
                let sets = ((3 * extents) << 20) / (sizes.iter().sum::<usize>() / sizes.len());
                let (missed, read) = misses(extents, hot, sets.clamp(100, 3000), sizes);
                assert_eq!(missed, 0, "of {read}: {extents} extents, {hot} hot keys, sets of {sizes:?}");
            }
        }
    }
}
