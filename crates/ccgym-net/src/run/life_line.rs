//! A run does not outlive whoever asked for it.
//!
//! The parent holds the other end of a pipe on our standard input. It closes when the parent ends, whatever ended it, and
//! then so do we: with us go all threads, and with them devices and namespaces.

use std::io::Read;
use std::thread;

use crate::error::{Result, Step};

/// Exit status after the life line was cut.
pub const STATUS: i32 = 129;

/// End this process when standard input does.
///
/// # Errors
/// The thread that watches cannot be started.
pub fn hold() -> Result<()> {
    let watch = || {
        let mut bytes = [0; 64];
        // What the parent writes says nothing; an error is an end, too.
        while std::io::stdin().read(&mut bytes).is_ok_and(|n| n > 0) {}
        std::process::exit(STATUS);
    };
    thread::Builder::new().name("life line".into()).spawn(watch).step(|| "starting the life line".into())?;
    Ok(())
}
