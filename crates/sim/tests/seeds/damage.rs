//! Memory that goes bad is found by a scrub, and named. `cargo test -p sim --features planted-bugs damage::`

use proto::ScrubFinding;
use sim::Story;
use types::{OnFinding, RoleIndex};

/// A group of 3+2: parity rows 0 and 1 are roles 3 and 4.
fn filled() -> Story {
    let mut story = Story::new(3, 2, 6);
    story.fill(4);
    story.calm_down();
    story
}

fn scrubbed(story: &mut Story, finding: OnFinding) -> Vec<ScrubFinding> {
    story.operator().start_scrub(finding);
    story.until_scrubbed();
    story.scrub().findings()
}

#[test]
#[ignore = "long: cargo xtask test sim planted"]
fn a_flipped_bit_of_a_parity_names_that_parity_and_its_page() {
    for row in 0..2 {
        for bit in [0, 7] {
            let mut story = filled();
            let byte = story.slot_of(story.key(1, 2)).byte() + 30;
            story.damage(story.parity(row), 3 + row, byte, 1 << bit);
            let found = scrubbed(&mut story, OnFinding::Report);
            let [finding] = &found[..] else { panic!("one row disagrees: {found:?}") };
            assert_eq!(finding.parity.role, RoleIndex(3 + row as u8));
            assert_eq!((finding.pages.first, finding.pages.count), ((byte / 4096) as u32, 1));
            assert!(finding.differs && finding.items.is_empty() && !finding.corrected);
        }
    }
}

#[test]
#[ignore = "long: cargo xtask test sim planted"]
fn a_parity_is_wrong_also_where_nothing_was_ever_written() {
    let mut story = filled();
    // All of the first extent is reserved for it, and the last runs are not needed.
    let large = story.key(0, 9);
    story.set_bytes(large, &[7; 600_000]);
    story.damage(story.parity(1), 4, 900_000, 1);
    let found = scrubbed(&mut story, OnFinding::Report);
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!((found[0].pages.first, found[0].differs), (900_000 / 4096, true));
}

#[test]
#[ignore = "long: cargo xtask test sim planted"]
fn a_flipped_bit_of_an_item_names_the_role_and_the_slot_at_every_parity() {
    for offset in [0, 4, 24, 30, 40] {
        let mut story = filled();
        let key = story.key(2, 1);
        let slot = story.slot_of(key);
        story.damage(story.primary(2), 2, slot.byte() + offset, 0x10);
        let found = scrubbed(&mut story, OnFinding::Correct);
        assert_eq!(found.len(), 2, "both rows disagree: {found:?}");
        for finding in &found {
            assert_eq!(finding.items, [(RoleIndex(2), slot)], "byte {offset} of the item");
            assert!(finding.differs && !finding.corrected, "nobody guesses");
        }
    }
}

#[test]
#[ignore = "long: cargo xtask test sim planted"]
fn a_flipped_bit_between_items_is_seen_by_every_parity() {
    let mut story = filled();
    // Free slots keep their bytes, and those are part of the sum.
    story.damage(story.primary(0), 0, 64 * 1024 - 1, 1);
    let found = scrubbed(&mut story, OnFinding::Report);
    assert_eq!(found.len(), 2, "{found:?}");
    assert!(found.iter().all(|finding| finding.differs && finding.items.is_empty()));
}

#[test]
#[ignore = "long: cargo xtask test sim planted"]
fn a_wrong_parity_is_corrected_on_request_and_all_agree_again() {
    for moment in 0..20 {
        let mut story = filled();
        let byte = story.slot_of(story.key(1, 2)).byte() + 30;
        story.damage(story.parity(0), 3, byte, 0x40);
        story.damage(story.parity(0), 3, byte + 5000, 0x01);
        story.operator().start_scrub(OnFinding::Correct);
        story.steps(moment);
        let key = story.key(1, 2);
        let asked = story.begin_set(key, "meanwhile");
        story.until_scrubbed();
        story.wait_for(asked);
        let found = story.scrub().findings();
        assert_eq!(found.len(), 1, "{found:?}");
        assert!(found[0].corrected && found[0].pages.count >= 2);
        assert_eq!(story.scrub().progress().corrected, 1);
        assert_eq!(scrubbed(&mut story, OnFinding::Report), []);
        story.is_sound_again();
        // What is decoded from that parity alone is right.
        story.kill(story.parity(1));
        story.kill(story.primary(1));
        story.until_full(1);
        assert_eq!(story.get(key).as_deref(), Some("meanwhile"));
        story.end();
    }
}

#[test]
#[ignore = "long: cargo xtask test sim planted"]
fn a_free_slot_that_went_bad_is_no_reason_to_keep_the_parities_wrong() {
    let mut story = filled();
    story.damage(story.primary(0), 0, 64 * 1024 - 1, 1);
    let found = scrubbed(&mut story, OnFinding::Correct);
    assert!(found.len() == 2 && found.iter().all(|finding| finding.corrected), "{found:?}");
    assert_eq!(scrubbed(&mut story, OnFinding::Report), []);
}

#[test]
#[ignore = "long: cargo xtask test sim planted"]
fn a_damaged_item_comes_back_right_once_its_role_is_decoded_elsewhere() {
    let mut story = filled();
    let key = story.key(2, 1);
    let slot = story.slot_of(key);
    let node = story.primary(2);
    story.damage(node, 2, slot.byte() + 40, 0x10);
    assert_eq!(scrubbed(&mut story, OnFinding::Report).len(), 2);
    story.kill(node);
    story.until_full(2);
    assert_eq!(scrubbed(&mut story, OnFinding::Report), []);
    story.is_sound_again();
    story.is_filled(4);
    story.end();
}
