//! With m at its limit, and one beyond: counted, named, never wrong bytes.

use sim::Story;
use types::RoleStatus;
use types::op::{Failure, Outcome};

/// Which members die: data roles and parity rows.
fn choices(k: usize, m: usize, count: usize) -> Vec<Vec<usize>> {
    let sets = (0u32..1 << (k + m)).filter(|set| set.count_ones() as usize == count);
    sets.map(|set| (0..k + m).filter(|role| set >> role & 1 == 1).collect()).collect()
}

fn kill_roles(story: &mut Story, k: usize, roles: &[usize]) {
    let nodes: Vec<usize> = roles
        .iter()
        .map(|role| if *role < k { story.primary(*role) } else { story.parity(*role - k) })
        .collect();
    for node in nodes {
        story.kill(node);
    }
}

#[test]
fn any_m_members_die_at_once_and_every_key_survives() {
    for (k, m, nodes) in [(3, 2, 5), (3, 2, 7), (2, 3, 6), (1, 2, 3)] {
        for roles in choices(k, m, m) {
            let mut story = Story::new(k, m, nodes);
            story.fill(3);
            kill_roles(&mut story, k, &roles);
            story.is_filled(3);
            story.end();
        }
    }
}

#[test]
fn any_m_members_die_one_after_the_other_and_every_key_survives() {
    for roles in choices(3, 2, 2) {
        for gap in [1_000, 130_000, 2_000_000] {
            let mut story = Story::new(3, 2, 6);
            story.fill(3);
            kill_roles(&mut story, 3, &roles[..1]);
            story.run(gap);
            let second = roles[1];
            let node = if second < 3 { story.primary(second) } else { story.parity(second - 3) };
            story.kill(node);
            story.is_filled(3);
            story.end();
        }
    }
}

#[test]
fn one_loss_beyond_m_is_named_and_answered_with_an_error() {
    for roles in choices(3, 2, 3) {
        let mut story = Story::new(3, 2, 7);
        story.expect_loss();
        story.fill(3);
        kill_roles(&mut story, 3, &roles);
        story.run(40 * story.lease_us());
        for role in 0..3 {
            let lost = story.status(role) == RoleStatus::Lost;
            assert_eq!(
                lost,
                roles.contains(&role),
                "role {role} after the loss of {roles:?}: {:?}",
                story.view()
            );
            for n in 0..3 {
                let key = story.key(role, n);
                match story.read(key) {
                    Outcome::Failed(Failure::Lost) if lost => {}
                    Outcome::Hit(view) if !lost => {
                        assert_eq!(view.value, format!("value {n} of role {role}"));
                    }
                    other => panic!("key {n} of role {role} after the loss of {roles:?}: {other:?}"),
                }
            }
        }
        story.end();
    }
}

#[test]
fn the_stand_in_beside_a_parity_counts_as_two_losses() {
    let mut story = Story::new(2, 2, 4);
    story.fill(3);
    story.kill(story.primary(0));
    story.until_full(0);
    let shared = story.primary(0);
    assert!([2, 3].contains(&shared), "there is no spare node");
    assert_eq!(story.view().spare_parities(), 2);
    story.kill(shared);
    story.is_filled(3);
    story.until_full(0);
    assert_eq!(story.in_sync().len(), 1);
    story.end();
}

#[test]
fn without_parities_a_lost_node_is_a_lost_role_and_the_rest_goes_on() {
    let mut story = Story::new(3, 1, 4);
    story.expect_loss();
    story.fill(3);
    kill_roles(&mut story, 3, &[3]);
    story.run(4 * story.lease_us());
    kill_roles(&mut story, 3, &[0]);
    story.run(40 * story.lease_us());
    assert_eq!(story.status(0), RoleStatus::Lost);
    let lost = story.key(0, 0);
    assert_eq!(story.read(lost), Outcome::Failed(Failure::Lost));
    let alive = story.key(1, 0);
    assert_eq!(story.get(alive).as_deref(), Some("value 0 of role 1"));
    story.end();
}

#[test]
fn a_stand_in_that_was_whole_when_the_last_parity_died_serves_on() {
    let mut story = Story::new(3, 1, 6);
    story.fill(3);
    story.kill(story.primary(0));
    story.until_appointed(0);
    // It cannot say that it is whole until the parity is gone.
    let stand_in = story.primary(0);
    story.run(200);
    story.line(stand_in).sever();
    story.run(story.lease_us() / 4);
    story.kill_watched(story.parity(0));
    story.run(1_000);
    story.line(stand_in).mend();
    story.until_full(0);
    story.is_filled(3);
    story.end();
}

#[test]
fn a_stand_in_that_was_not_whole_when_the_last_parity_died_is_lost() {
    let mut story = Story::new(3, 1, 6);
    story.expect_loss();
    story.fill(3);
    story.kill(story.primary(0));
    story.until_appointed(0);
    story.kill_watched(story.parity(0));
    story.run(40 * story.lease_us());
    assert_eq!(story.status(0), RoleStatus::Lost);
    let key = story.key(0, 0);
    assert_eq!(story.read(key), Outcome::Failed(Failure::Lost));
    let alive = story.key(1, 0);
    assert_eq!(story.get(alive).as_deref(), Some("value 0 of role 1"));
    story.end();
}
