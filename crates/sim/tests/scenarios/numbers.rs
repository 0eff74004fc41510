//! A namespace that is removed and made again finds nothing of what it was, however soon. Also told with numbers used again (planted.rs).

use proto::Rules;
use sim::{Options, Story};
use types::op::{Failure, Outcome};

#[test]
fn a_namespace_that_is_made_again_finds_nothing_of_the_former() {
    tell(Rules::all());
}

/// The story.
pub fn tell(rules: Rules) {
    let options = Options { namespaces: 1, ..Options::quiet(3, 2, 5) };
    let mut story = Story::with(options.by(rules));
    story.fill(4);
    let filled = [0, 1, 2, 3].map(|n| story.key(0, n));
    let keys = story.operator().named(filled.into_iter());
    assert!(!keys.is_empty(), "some keys are of a namespace");
    story.operator().make_namespace_anew();
    story.run(story.lease_us() / 10);
    for key in keys {
        // These keys are the former one's, whose number nobody has any more.
        assert_eq!(story.read(key), Outcome::Failed(Failure::NoNamespace));
    }
}
