//! How many more losses a placed group survives.

use cluster::{Protection, place};
use types::{GroupView, HostId, Incarnation, Learner, NodeId, Profile, RoleIndex, RoleStatus, Seq};

fn view() -> GroupView {
    let host = |node| HostId { node: NodeId(node), incarnation: Incarnation(1) };
    let hosts: Vec<_> = (0..5).map(host).collect();
    place(Profile::rs(3, 2).unwrap(), &hosts, 1).unwrap().remove(0)
}

fn survived(view: &GroupView) -> usize {
    Protection::of(Profile::rs(3, 2).unwrap()).losses_survived(view)
}

fn survived_without(view: &GroupView, gone: &[NodeId]) -> Option<usize> {
    Protection::of(Profile::rs(3, 2).unwrap()).losses_survived_without(view, gone)
}

#[test]
fn a_stand_in_beside_a_parity_makes_its_node_count_twice() {
    let mut view = view();
    assert_eq!(survived(&view), 2);
    view.data[0].primary = view.parity[0];
    assert_eq!(survived(&view), 1);
    view.data[0].status = RoleStatus::Rebuilding { start: Seq(0), wait_us: 0 };
    assert_eq!(survived(&view), 1);
}

#[test]
fn an_exchange_of_two_roles_lowers_the_protection_at_no_time() {
    let mut view = view();
    let (from, to) = (view.data[0].primary.unwrap(), view.parity[0].unwrap());
    let mirror = Learner { role: RoleIndex(0), host: to, since: view.version, whole: false };
    view.learners.push(mirror);
    assert_eq!(survived(&view), 2);
    view.learners[0].whole = true;
    assert_eq!(survived(&view), 2);
    view.parity[0] = Some(from);
    assert_eq!(survived(&view), 2);
    for pair in [[from, to], [from, view.parity[1].unwrap()], [to, view.data[1].primary.unwrap()]] {
        assert_eq!(survived_without(&view, &pair.map(|host| host.node)), Some(0), "{pair:?}");
    }
    view.data[0].primary = Some(to);
    view.learners.clear();
    assert_eq!(survived(&view), 2);
}

#[test]
fn without_a_node_one_loss_less_is_survived_and_beyond_the_parities_none_is() {
    let mut view = view();
    assert_eq!(survived_without(&view, &[]), Some(2));
    assert_eq!(survived_without(&view, &[NodeId(0)]), Some(1));
    assert_eq!(survived_without(&view, &[NodeId(4)]), Some(1));
    assert_eq!(survived_without(&view, &[NodeId(4), NodeId(1)]), Some(0));
    view.parity[0] = None;
    assert_eq!(survived_without(&view, &[NodeId(4), NodeId(1)]), None);
    assert_eq!(survived_without(&view, &[NodeId(9)]), Some(1));
}
