//! Flows of QUIC, and our schemes as controllers of its library. One program, so that it is linked once.
#![allow(missing_docs, clippy::print_stderr)] // What is skipped must be seen.

mod flows;
mod schemes;
