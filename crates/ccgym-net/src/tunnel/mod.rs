//! The path between two machines: packets of a private namespace travel in UDP datagrams to the other machine's.
//!
//! | module | what |
//! |---|---|
//! | [`clocks`] | how the clocks of both machines relate, from packets that went both ways |

pub mod clocks;
