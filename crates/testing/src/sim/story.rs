//! Stories: to be written.
