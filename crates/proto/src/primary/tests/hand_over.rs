//! A primary that makes way (docs/protocol.md, "A role moves").

use super::*;

#[test]
fn what_is_under_way_is_finished_before_a_primary_has_made_way_and_nothing_new_begins() {
    let mut stage = Stage::with_item();
    let since = stage.view.version.next();
    let mirror = types::Learner { role: RoleIndex(0), host: host(3), since, whole: true };
    stage.adopt(|view| view.learners.push(mirror));
    stage.set(2);
    let question = Question { since, asked_at: Time(1), epoch: Epoch(1) };
    let asked = stage.act(|primary, context| primary.hand_over(context, Term(1), question)).1;
    assert_eq!(asked, [], "a write is on its way");
    assert_eq!(stage.set(3), (None, vec![]), "and this one waits");
    stage.flush();
    stage.ack(PARITIES[0], 2);
    let done = stage.ack(PARITIES[1], 2);
    assert!(
        matches!(&done[..], [Done::Reports("HandedOver"), Done::Replies(2, Outcome::Stored(_))]),
        "{done:?}"
    );
    assert_eq!(stage.primary().info().waiting, 1);
}

#[test]
fn a_question_to_another_term_or_of_another_mirror_is_not_answered() {
    let mut stage = Stage::leased();
    let since = stage.view.version.next();
    let mirror = types::Learner { role: RoleIndex(0), host: host(3), since, whole: true };
    stage.adopt(|view| view.learners.push(mirror));
    let mut ask = |term, since| {
        let question = Question { since, asked_at: Time(1), epoch: Epoch(1) };
        stage.act(|primary, context| primary.hand_over(context, Term(term), question)).1
    };
    assert_eq!((ask(2, since), ask(1, since.next())), (vec![], vec![]));
    assert_eq!(ask(1, since), [Done::Reports("HandedOver")]);
}

#[test]
fn a_mirror_that_leaves_the_view_ends_the_stillness_and_the_old_lease() {
    let mut stage = Stage::leased();
    let since = stage.view.version.next();
    let mirror = types::Learner { role: RoleIndex(0), host: host(3), since, whole: true };
    stage.adopt(|view| view.learners.push(mirror));
    let question = Question { since, asked_at: Time(1), epoch: Epoch(1) };
    stage.act(|primary, context| primary.hand_over(context, Term(1), question));
    stage.now += 1;
    stage.adopt(|view| view.learners.clear());
    assert!(!stage.may_serve(), "another primary may have been appointed on the strength of the answer");
    assert_eq!(stage.flush(), to_both("Frame"));
    PARITIES.iter().for_each(|role| drop(stage.ack(*role, 0)));
    assert!(stage.may_serve());
}
