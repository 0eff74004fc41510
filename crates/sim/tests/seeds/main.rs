//! What takes hundreds of seeds, or rules that can be broken: built with the feature `planted-bugs`, in the profile `sim`.

mod damage;
mod planted;
mod runs;
