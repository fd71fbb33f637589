//! Keeping the processors of a virtual machine from going to sleep.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::syscalls;

/// Work between two looks at whether it is over: some microseconds.
const TURNS: u32 = 10_000;

/// A thread per processor that spins whenever the processor would be idle.
///
/// A processor of a virtual machine that has nothing to do is given back to the host, and getting it again may take
/// milliseconds, which `/proc/stat` counts as stolen. A path in real time wakes up thousands of times a second. On a
/// shared host of two processors, 20 to 40 % of the time were stolen from a run without these threads, and 1 to 2 % with
/// them.
pub struct IdleSpinner {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl IdleSpinner {
    /// Begin, if this is a virtual machine; what the system does not permit is left undone.
    #[must_use]
    pub fn start() -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self::with(if is_virtual() { processors } else { 0 })
    }

    fn with(count: usize) -> Self {
        let over = Arc::new(AtomicBool::new(false));
        let spawn = |_| {
            let over = Arc::clone(&over);
            thread::Builder::new().name("ccgym-spinner".into()).spawn(move || stay(&over)).ok()
        };
        Self { threads: (0..count).filter_map(spawn).collect(), over }
    }
}

impl Drop for IdleSpinner {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join(); // it cannot fail
        }
    }
}

fn stay(over: &AtomicBool) {
    // As an ordinary thread it would take time from others.
    if syscalls::schedule_when_idle().is_err() {
        return;
    }
    while !over.load(Ordering::Relaxed) {
        // No pause instruction: hosts take the processor from a guest that pauses for long.
        for turn in 0..TURNS {
            black_box(turn);
        }
    }
}

/// Whether a hypervisor runs this machine, as the processor says.
fn is_virtual() -> bool {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scheduling policies of this process's threads of that name.
    fn policies() -> Vec<i32> {
        let tasks = std::fs::read_dir("/proc/self/task").map(Iterator::flatten).into_iter().flatten();
        let named = tasks.filter(|task| {
            std::fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name.trim() == "ccgym-spinner")
        });
        let stats = named.filter_map(|task| std::fs::read_to_string(task.path().join("stat")).ok());
        // Field 41, the 39th after the name in parentheses.
        stats.filter_map(|stat| stat.rsplit_once(") ")?.1.split(' ').nth(38)?.parse().ok()).collect()
    }

    #[test]
    fn it_only_runs_when_nothing_else_does_and_ends() {
        let awake = IdleSpinner::with(2);
        let begun = std::time::Instant::now();
        while policies().iter().filter(|policy| **policy == libc::SCHED_IDLE).count() < 2 {
            assert!(begun.elapsed().as_secs() < 20, "{:?}", policies());
            thread::yield_now();
        }
        drop(awake);
        // A thread that has been joined stays in /proc for an instant.
        while !policies().is_empty() {
            assert!(begun.elapsed().as_secs() < 20, "{:?}", policies());
            thread::yield_now();
        }
    }
}
