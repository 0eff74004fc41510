//! What a health means for whoever asked: one line that says what to do, and an exit code.

use cluster::health::{Age, Assessment, Health, Loss, slot_count};
use types::NodeId;

use super::survey::unheard;
use crate::exit::Exit;
use crate::words::{self, count, one_or};

/// Nothing if all is well.
///
/// # Errors
/// `Degraded` where something is to be done or to be found out, `AtRisk` where data is lost, may be lost next, or is out of reach.
pub fn verdict(found: &Assessment, lost_keys: usize, age: Age) -> Result<(), Exit> {
    match found.health {
        Health::Ok => Ok(()),
        Health::Full => full(found),
        Health::Degraded => Err(Exit::Degraded(degraded(found))),
        Health::Forming | Health::Unknown => Err(Exit::Degraded(unknown(found, age))),
        Health::AtRisk | Health::Unavailable => Err(Exit::AtRisk(at_risk(found, age))),
        Health::Lost if found.lost_slots.is_empty() => Err(Exit::AtRisk(lost_values(lost_keys))),
        Health::Lost => Err(Exit::AtRisk(lost(found))),
    }
}

/// Who evicts does what it was told to do.
fn full(found: &Assessment) -> Result<(), Exit> {
    if found.refusing_nodes.is_empty() {
        return Ok(());
    }
    Err(Exit::Degraded(format!(
        "full: {} {} writes for want of memory: delete something, add nodes with `gestalt serve --join`, give the nodes \
         more --memory, or let them --evict",
        words::nodes(&found.refusing_nodes),
        one_or(found.refusing_nodes.len(), "refuses", "refuse")
    )))
}

fn degraded(found: &Assessment) -> String {
    let (asked, achieved) = (found.protection_asked, found.protection_achieved);
    let way_out = if found.silent_nodes.is_empty() && !found.refusing_nodes.is_empty() {
        "there may be no memory for what is missing: delete something, add nodes with `gestalt serve --join`, or give the nodes \
         more --memory"
    } else {
        "replace the lost nodes"
    };
    format!(
        "degraded: {} {} survived, {asked} {} asked for: {way_out}",
        count(achieved, "more node loss", "more node losses"),
        one_or(achieved, "is", "are"),
        one_or(asked, "was", "were")
    )
}

fn unknown(found: &Assessment, age: Age) -> String {
    if !age.is_fresh() {
        return format!(
            "unknown: {}: reads and writes go on, but a loss may have been missed, and nothing is repaired: bring the \
             coordinator back",
            unheard(age)
        );
    }
    format!(
        "unknown: {}: look at the process, and whether its http address can be reached from here (`gestalt node list`)",
        silent(&found.silent_nodes)
    )
}

/// Who does not answer.
fn silent(nodes: &[NodeId]) -> String {
    format!("{} {} not answer status", words::nodes(nodes), one_or(nodes.len(), "does", "do"))
}

fn at_risk(found: &Assessment, age: Age) -> String {
    if let Some(beyond) = &found.beyond_repair {
        return beyond_repair(beyond);
    }
    let presides = age.is_fresh();
    if found.health == Health::Unavailable {
        let slots = slot_count(&found.unavailable_slots);
        let silent = match found.silent_nodes.as_slice() {
            [] => "the primary".to_owned(),
            silent => words::nodes(silent),
        };
        return if presides {
            format!(
                "unavailable: nobody serves {slots} slots now: others take them over within a few leases; look again"
            )
        } else {
            format!(
                "unavailable: nobody serves {slots} slots, and nobody takes them over: {}: bring the coordinator back, or \
                 {silent}",
                unheard(age)
            )
        };
    }
    let what = "at risk: the next node loss may cost data";
    if presides {
        format!("{what}: wait for the repair to end, and replace the lost nodes")
    } else {
        format!("{what}, and nothing is repaired: {}: bring the coordinator back", unheard(age))
    }
}

fn beyond_repair(beyond: &Loss) -> String {
    let who = if beyond.nodes.is_empty() { "members".to_owned() } else { words::nodes(&beyond.nodes) };
    format!(
        "more is missing than the code can make up for: {} slots cannot be rebuilt without {who}: bring these processes back if \
         they still live, stopped or cut off; else say that they are dead with `gestalt node fence N --accept-loss`, and give up \
         what only they had with `gestalt lost accept`",
        slot_count(&beyond.slots)
    )
}

fn lost_values(keys: usize) -> String {
    format!(
        "{} {} lost: too few chunks are left, and reads get SERVER_ERROR lost: see `gestalt lost list`; write them anew or delete \
         them",
        count(keys, "long value", "long values"),
        one_or(keys, "is", "are")
    )
}

fn lost(found: &Assessment) -> String {
    format!(
        "data is lost in {}: requests for it get SERVER_ERROR: see `gestalt lost list`; `gestalt lost accept` makes its slots \
         empty, to be used again",
        count(found.lost_slots.len(), "slot range", "slot ranges")
    )
}

#[cfg(test)]
mod tests {
    use types::{GroupId, Name, PoolSlots, Slot, SlotRange};

    use super::*;

    const FRESH: Age = Age { coordinator_us: Some(1000), lease_us: 1_000_000 };
    const STALE: Age = Age { coordinator_us: Some(9_000_000), lease_us: 1_000_000 };

    fn found(states: &[Health]) -> Assessment {
        Assessment {
            health: states.first().copied().unwrap_or(Health::Ok),
            states: states.to_vec(),
            protection_asked: 2,
            protection_achieved: 0,
            lost_slots: vec![],
            pools: vec![],
            unavailable_slots: vec![PoolSlots {
                pool: Name::default_name(),
                slots: SlotRange { first: Slot(10), last: Slot(19) },
            }],
            silent_nodes: vec![NodeId(3)],
            missing_nodes: vec![],
            beyond_repair: None,
            at_risk_by: vec![],
            evicting_nodes: vec![NodeId(1)],
            refusing_nodes: vec![],
        }
    }

    fn told(found: &Assessment, age: Age) -> (u8, String) {
        match verdict(found, 0, age) {
            Ok(()) => (0, String::new()),
            Err(Exit::Degraded(text)) => (3, text),
            Err(Exit::AtRisk(text)) => (4, text),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn each_health_has_its_exit_code() {
        let code = |health, age| told(&found(&[health]), age).0;
        assert_eq!(code(Health::Ok, FRESH), 0);
        assert_eq!(code(Health::Full, FRESH), 0, "a cache evicts");
        assert_eq!((code(Health::Degraded, FRESH), code(Health::Forming, FRESH)), (3, 3));
        assert_eq!(code(Health::Unknown, STALE), 3);
        let bad = [Health::AtRisk, Health::Unavailable, Health::Lost];
        assert_eq!(bad.map(|health| code(health, FRESH)), [4; 3]);
        let refusing = Assessment { refusing_nodes: vec![NodeId(2)], ..found(&[Health::Full]) };
        let (code, text) = told(&refusing, FRESH);
        assert!(code == 3 && text.starts_with("full: node 2 refuses writes"), "{text}");
    }

    #[test]
    fn where_nodes_are_full_memory_is_named_and_where_one_is_silent_the_lost_are() {
        let of = found(&[Health::Degraded]);
        let full = Assessment { refusing_nodes: vec![NodeId(2)], silent_nodes: vec![], ..of };
        let (code, text) = told(&full, FRESH);
        assert!(code == 3 && text.contains("no memory for what is missing"), "{text}");
        let silent = Assessment { silent_nodes: vec![NodeId(1)], ..full };
        assert!(told(&silent, FRESH).1.ends_with("replace the lost nodes"));
    }

    #[test]
    fn one_is_not_several() {
        let of = |asked, achieved| {
            let found = Assessment {
                protection_asked: asked,
                protection_achieved: achieved,
                ..found(&[Health::Degraded])
            };
            told(&found, FRESH).1
        };
        assert!(
            of(2, 1).starts_with("degraded: 1 more node loss is survived, 2 were asked for"),
            "{}",
            of(2, 1)
        );
        assert!(
            of(1, 0).starts_with("degraded: 0 more node losses are survived, 1 was asked for"),
            "{}",
            of(1, 0)
        );
        let two = Assessment { silent_nodes: vec![NodeId(1), NodeId(3)], ..found(&[Health::Unknown]) };
        assert!(told(&two, FRESH).1.starts_with("unknown: nodes 1, 3 do not answer"));
    }

    #[test]
    fn repair_is_waited_for_only_where_there_is_somebody_to_begin_it() {
        let waits = |found: &Assessment, age| told(found, age).1.contains("wait for the repair");
        assert!(waits(&found(&[Health::AtRisk]), FRESH));
        assert!(!waits(&found(&[Health::AtRisk]), STALE));
        let nodes = vec![NodeId(0), NodeId(1), NodeId(4)];
        let beyond = Loss { nodes, groups: vec![GroupId(0)], slots: found(&[]).unavailable_slots };
        for health in [Health::AtRisk, Health::Unavailable] {
            let found = Assessment { beyond_repair: Some(beyond.clone()), ..found(&[health]) };
            let (code, text) = told(&found, FRESH);
            assert!(code == 4 && !waits(&found, FRESH), "{text}");
            let way_out = "10 slots cannot be rebuilt without nodes 0, 1, 4: bring these processes back";
            assert!(text.contains(way_out) && text.contains("gestalt lost accept"), "{text}");
        }
    }

    #[test]
    fn what_nobody_takes_over_is_not_to_be_waited_for() {
        let unavailable = found(&[Health::Unavailable, Health::Unknown]);
        assert!(told(&unavailable, FRESH).1.contains("look again"));
        let text = told(&unavailable, STALE).1;
        assert!(
            text.contains("no coordinator has been heard for 9s: bring the coordinator back, or node 3"),
            "{text}"
        );
    }
}
