//! Recent extremes: over a window of time, of rounds or of slots, or until an age.

pub mod aged_min;
pub mod max_of_rounds;
pub mod slots;
pub mod windowed;
