//! Where every node has a role of every group a data role can only change places with a parity.

use proptest::prelude::*;

use super::super::*;
use super::world::World;

/// By how much the nodes differ in data roles, at most.
fn data_spread(world: &World) -> usize {
    let counts = world.counts();
    let data = || counts.iter().map(|has| has.data);
    data().max().unwrap_or(0) - data().min().unwrap_or(0)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Nodes are lost, as many at a time as the code can make up for, and come back.
    #[test]
    fn data_roles_are_even_after_losses_and_returns(
        rounds in prop::collection::vec((prop::collection::vec(0..5u16, 1..=2), any::<[bool; 2]>()), 1..5),
        rings in 1..4u32,
    ) {
        let mut world = World::without_zones("rs(3+2)", 5, 5, 5 * rings);
        let limits = PlanLimits::default();
        for (lost, [settles, between]) in rounds {
            for node in &lost {
                world.lose(*node);
                if between {
                    world.settle(&limits);
                }
            }
            for node in lost {
                world.bring_back(node);
                if settles {
                    world.settle(&limits);
                }
            }
            world.settle(&limits);
        }
        prop_assert!(data_spread(&world) <= limits.balance_slack, "{:?}", world.counts());
    }
}
