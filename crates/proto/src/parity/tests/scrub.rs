//! Scrubs of a parity (docs/protocol.md, "Scrub").

use types::{Layout, OnFinding, ScrubSettings};

use super::*;

const RUN: PageRange = PageRange { first: 0, count: 16 };

/// Both roles have applied one record, of a 5 and of a 9, and the operators want a scrub.
fn scrubbing(finding: OnFinding) -> Stage {
    let mut stage = Stage::new();
    for (role, byte) in PRIMARIES.into_iter().zip([5, 9]) {
        stage.frame(role, 0, vec![record(1, byte)]);
        stage.frame(role, 1, vec![]);
    }
    let repair = finding == OnFinding::Correct;
    let scrub = ScrubSettings { generation: 1, running: true, repair, ..ScrubSettings::default() };
    stage.pace.set(&Layout { scrub, ..Layout::default() }, 1);
    stage
}

/// Goes on; the session that was opened, and who was asked for pages.
fn go_on(stage: &mut Stage) -> Option<(SessionId, Vec<RoleIndex>)> {
    let (opened, sent) = stage.act(Parity::go_on_scrubbing);
    let session = asked(&sent.iter().map(|(_, body)| body.clone()).collect::<Vec<_>>());
    assert_eq!(opened, session.is_some());
    session.map(|session| (session, sent.iter().map(|(role, _)| *role).collect()))
}

/// The session for which pages were asked.
fn asked(sent: &[GroupBody]) -> Option<SessionId> {
    sent.iter().find_map(|body| match body {
        GroupBody::Read(read) => Some(read.session),
        _ => None,
    })
}

/// The page of a role whose first item is all of `byte`.
fn page(session: SessionId, byte: u8, wrong: &[Addr]) -> GroupBody {
    let mut bytes = vec![0; RUN.len_bytes()];
    bytes[..64].fill(byte);
    let (term, committed, wrong) = (Term(1), Seq(1), wrong.into());
    GroupBody::Page(Page { session, term, committed, bytes: Some(bytes.into()), wrong }.into())
}

/// All primaries answer; the session that follows.
fn answer(stage: &mut Stage, session: SessionId, bytes: [u8; 2], wrong: &[Addr]) -> Option<SessionId> {
    assert_eq!(stage.hear(PRIMARIES[0], page(session, bytes[0], wrong)), [], "the other one is waited for");
    asked(&stage.hear(PRIMARIES[1], page(session, bytes[1], &[])))
}

fn progress(stage: &Stage) -> (u64, u64, u64) {
    let progress = stage.parity.scrub_progress(stage.pace.scrub()).unwrap();
    (progress.checked_pages, progress.mismatches, progress.corrected)
}

#[test]
fn every_primary_is_asked_for_its_pages_and_where_nothing_is_left_all_agree() {
    let mut stage = scrubbing(OnFinding::Report);
    let (session, asked) = go_on(&mut stage).unwrap();
    assert_eq!(asked, PRIMARIES);
    assert_eq!(go_on(&mut stage), None, "one session at a time");
    assert_eq!(answer(&mut stage, session, [5, 9], &[]), None, "the rest was never written to");
    assert_eq!((progress(&stage), stage.parity.scrub_findings()), ((256, 0, 0), &[][..]));
    assert_eq!(stage.parity.session_bytes(), 0);
}

#[test]
fn what_is_left_is_damage_and_is_told_with_its_pages() {
    let mut stage = scrubbing(OnFinding::Report);
    let (session, _) = go_on(&mut stage).unwrap();
    answer(&mut stage, session, [5, 8], &[]);
    let [finding] = stage.parity.scrub_findings() else { panic!("{:?}", stage.parity.scrub_findings()) };
    assert_eq!(
        (finding.pages, finding.differs, finding.corrected),
        (PageRange { first: 0, count: 1 }, true, false)
    );
    assert_ne!(stage.byte(), 5 ^ 8);
}

#[test]
fn a_wrong_parity_takes_the_difference_off_itself_and_compares_once_more() {
    let mut stage = scrubbing(OnFinding::Correct);
    let before = stage.byte();
    let (session, _) = go_on(&mut stage).unwrap();
    let again = answer(&mut stage, session, [5 ^ 2, 9], &[]).expect("the same pages once more");
    assert_eq!((stage.byte(), progress(&stage)), (before ^ 2, (0, 1, 1)));
    assert_eq!(answer(&mut stage, again, [5 ^ 2, 9], &[]), None);
    assert_eq!(progress(&stage), (256, 1, 1));
}

#[test]
fn beside_a_wrong_item_nobody_corrects_anything() {
    let mut stage = scrubbing(OnFinding::Correct);
    let before = stage.byte();
    let (session, _) = go_on(&mut stage).unwrap();
    let item = Addr::from_byte(0);
    answer(&mut stage, session, [5 ^ 2, 9], &[item]);
    let [finding] = stage.parity.scrub_findings() else { panic!("{:?}", stage.parity.scrub_findings()) };
    assert_eq!((&finding.items[..], finding.corrected), (&[(PRIMARIES[0], item)][..], false));
    assert_eq!(stage.byte(), before);
}

#[test]
fn the_records_that_a_page_contains_are_in_the_sum_before_it_leaves() {
    let mut stage = scrubbing(OnFinding::Report);
    let (session, _) = go_on(&mut stage).unwrap();
    stage.frame(PRIMARIES[0], 1, vec![record(2, 32)]);
    let GroupBody::Page(newer) = page(session, 5 ^ 32, &[]) else { unreachable!("it is a page") };
    stage.hear(PRIMARIES[0], GroupBody::Page(Page { committed: Seq(2), ..*newer }.into()));
    stage.hear(PRIMARIES[1], page(session, 9, &[]));
    assert_eq!(progress(&stage), (256, 0, 0));
}

#[test]
fn a_session_that_gets_no_answer_is_given_up_and_the_same_pages_are_asked_for_again() {
    let mut stage = scrubbing(OnFinding::Report);
    let (session, _) = go_on(&mut stage).unwrap();
    stage.now += stage.timing.retry_us;
    stage.act(Parity::tick);
    assert!(!stage.parity.is_scrubbing());
    let (again, _) = go_on(&mut stage).unwrap();
    assert_ne!(again, session);
    assert_eq!(progress(&stage).0, 0);
}

#[test]
fn nothing_is_compared_while_a_role_is_under_repair_and_a_view_ends_what_is_open() {
    let mut stage = scrubbing(OnFinding::Report);
    go_on(&mut stage).unwrap();
    stage.adopt(|view| view.data[0].status = RoleStatus::Rebuilding { start: Seq(0), wait_us: 0 });
    assert!(!stage.parity.is_scrubbing());
    assert_eq!(go_on(&mut stage), None);
    stage.adopt(|view| view.data[0].status = RoleStatus::Full);
    assert!(go_on(&mut stage).is_some());
}

#[test]
fn what_is_lost_is_in_no_sum_and_nobody_is_asked_for_it() {
    let mut view = placed();
    view.data[1].primary = None;
    view.data[1].status = RoleStatus::Lost;
    let mut stage = Stage::of(view);
    stage.hear(PRIMARIES[0], GroupBody::Reserve(Reserve { term: Term(1), run: 15 }));
    stage.frame(PRIMARIES[0], 0, vec![record(1, 5)]);
    stage.frame(PRIMARIES[0], 1, vec![]);
    let scrub = ScrubSettings { generation: 1, running: true, ..ScrubSettings::default() };
    stage.pace.set(&Layout { scrub, ..Layout::default() }, 1);
    let (session, asked) = go_on(&mut stage).unwrap();
    assert_eq!(asked, [PRIMARIES[0]]);
    stage.hear(PRIMARIES[0], page(session, 5, &[]));
    assert_eq!(progress(&stage), (256, 0, 0));
}
