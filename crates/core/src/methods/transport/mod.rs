//! Methods by optimal transport: what it costs to move the words of one text onto the other's.

mod mover;
pub mod wmd;
pub mod wrd;
