//! What the planner begins, told as stories; that it always helps and always ends is in `properties`.

mod exchanges;
mod properties;
mod stand_ins;
mod stories;
mod warned;
mod world;
