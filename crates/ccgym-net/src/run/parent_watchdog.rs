//! The parent watchdog: a run does not outlive the process that asked for it.
//!
//! The parent holds the other end of a pipe on our standard input. It closes when the parent ends, for whatever reason.
//! Then this process ends, and with it all threads, devices and namespaces.

use std::io::Read;
use std::thread;

use crate::error::{Context, Result};

/// Exit status after the parent has ended.
pub const STATUS: i32 = 129;

/// End this process when standard input does.
///
/// # Errors
/// The thread that watches cannot be started.
pub fn start() -> Result<()> {
    let watch = || {
        let mut bytes = [0; 64];
        // What the parent writes says nothing; an error is an end too.
        while std::io::stdin().read(&mut bytes).is_ok_and(|n| n > 0) {}
        std::process::exit(STATUS);
    };
    thread::Builder::new()
        .name("parent watchdog".into())
        .spawn(watch)
        .context(|| "starting the parent watchdog".into())?;
    Ok(())
}
