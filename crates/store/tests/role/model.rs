//! Random operations against a map, with an accounted budget, an equal replica and the parity equation.

use proptest::prelude::*;
use store::{DataStore, Eviction};

use crate::driver::{NoRoom, Role};

#[derive(Clone, Debug)]
enum Step {
    Set { key: u8, len: usize, expiry: u32 },
    Get { key: u8 },
    Delete { key: u8 },
    Flush,
    Commit,
    Wait { seconds: u32 },
    TakeOver,
}

/// Lengths around class edges, page edges, and beyond a run.
fn value_len() -> impl Strategy<Value = usize> {
    prop_oneof![
        6 => 0usize..200,
        6 => 900usize..5000,
        3 => 20_000usize..70_000,
        1 => 100_000usize..400_000,
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let expiry = prop_oneof![4 => Just(0), 1 => 1000u32..1100];
    prop_oneof![
        40 => (any::<u8>(), value_len(), expiry).prop_map(|(key, len, expiry)| Step::Set { key, len, expiry }),
        10 => any::<u8>().prop_map(|key| Step::Get { key }),
        10 => any::<u8>().prop_map(|key| Step::Delete { key }),
        5 => Just(Step::Commit),
        3 => (1u32..20).prop_map(|seconds| Step::Wait { seconds }),
        1 => Just(Step::Flush),
        1 => Just(Step::TakeOver),
    ]
}

fn run(role: &mut Role, step: &Step) {
    match *step {
        Step::Set { key, len, expiry } => {
            let outcome = role.set_with_expiry(&[key], &vec![key; len], expiry);
            assert!(
                outcome.is_ok() || role.config.eviction == Eviction::None,
                "an evicting store is never full"
            );
        }
        Step::Get { key } => {
            role.commit_all();
            let expected = role.model.get(&[key][..]).map(|(value, _)| value.clone());
            assert_eq!(role.get(&[key]), expected);
        }
        Step::Delete { key } => {
            role.delete(&[key]);
        }
        Step::Flush => role.flush(),
        Step::Commit => role.commit_all(),
        Step::Wait { seconds } => role.now.0 += seconds,
        Step::TakeOver => take_over(role),
    }
}

fn take_over(role: &mut Role) {
    role.commit_all();
    let mut builder = store::ReplicaBuilder::new(role.budget.clone());
    let (bytes, last) = role.parity.encode_part(0, 1 << 30);
    assert!(last);
    builder.push(&bytes).unwrap();
    let replica = builder.finish().unwrap();
    let adopted = DataStore::from_replica(role.config.clone(), role.budget.clone(), replica);
    role.store = adopted.unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn behaves_as_a_map_that_forgets_only_what_it_evicts(
        steps in proptest::collection::vec(step(), 1..250),
        clock in any::<bool>(),
        extents in 2usize..5,
        window in 0usize..20,
    ) {
        let eviction = if clock { Eviction::Clock } else { Eviction::None };
        let mut role = Role::new(extents, eviction, 16 << 20);
        role.window = window;
        for step in &steps {
            run(&mut role, step);
        }
        role.check();
        let Role { store, budget, .. } = role;
        drop(store);
        prop_assert_eq!(budget.total_used(), 0);
    }
}

#[test]
fn a_store_of_nothing_is_refused_nothing() {
    let mut role = Role::new(1, Eviction::None, 1 << 10);
    assert_eq!(role.set(b"key", b"value"), Err(NoRoom));
    role.check();
}
