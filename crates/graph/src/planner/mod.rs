//! Planners: pure functions from what is lost, who has what and what links are worth, to a graph.
//!
//! A scheme is a way to lay out the same sums: what is computed from what is the codec's answer ([`helpers`]), a scheme says where.

mod arrange;
mod build;
mod chain;
mod choice;
mod decode;
mod encode;
mod helpers;
mod ppr;
mod question;
mod refusal;
mod scheme;
mod shape;
mod star;
mod tri;

pub use choice::Aim;
pub use encode::plan_encode;
pub use question::{EncodeQuestion, Question, Source, Wanted};
pub use refusal::Unplannable;
pub use scheme::{Scheme, UnknownScheme};
pub use shape::{Envelope, Shape};

/// The graph of `scheme` that gives what `question` wants; with [`Scheme::Auto`] the one that the model says is best.
///
/// # Errors
/// `Unsolvable` if too much is lost; `Question` for one that contradicts itself; `TooLarge`.
pub fn plan(question: &Question<'_>, scheme: Scheme) -> Result<Shape, Unplannable> {
    question.check()?;
    let recipes = helpers::Recipes::new(question);
    let sketch = |scheme| decode::sketch(question, &recipes, scheme);
    match scheme {
        Scheme::Auto => choice::best(recipes.schemes(), sketch, &question.aim),
        scheme => Ok(sketch(scheme)?.shape()),
    }
}
