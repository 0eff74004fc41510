//! What takes hundreds of seeds, or rules that can be broken: built with the feature `planted-bugs`, and run when it is asked for.

mod damage;
mod planted;
mod runs;
