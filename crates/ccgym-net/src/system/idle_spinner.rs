//! Threads that keep the processors of a virtual machine busy.

use std::hint::black_box;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use super::syscalls;

/// Iterations between two checks of the end: some microseconds.
const TURNS: u32 = 10_000;

/// One thread per processor, which spins whenever the processor would be idle.
///
/// An idle processor of a virtual machine is returned to the host, and getting it back may take milliseconds, which
/// `/proc/stat` counts as steal. A path in real time wakes up thousands of times per second. On a shared host with two
/// processors, steal was 20 to 40 % of a run without these threads, and 1 to 2 % with them.
pub struct IdleSpinner {
    over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl IdleSpinner {
    /// Start the threads if this is a virtual machine and the system permits it.
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

/// Return true if the processor reports a hypervisor.
fn is_virtual() -> bool {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = text.lines().find(|line| line.starts_with("flags"));
    flags.is_some_and(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Return the scheduling policies of this process's spinner threads.
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
    fn spinners_are_idle_threads_and_end() {
        let awake = IdleSpinner::with(2);
        let begun = std::time::Instant::now();
        while policies().iter().filter(|policy| **policy == libc::SCHED_IDLE).count() < 2 {
            assert!(begun.elapsed().as_secs() < 20, "{:?}", policies());
            thread::yield_now();
        }
        drop(awake);
        // A thread that has been joined stays in /proc for a moment.
        while !policies().is_empty() {
            assert!(begun.elapsed().as_secs() < 20, "{:?}", policies());
            thread::yield_now();
        }
    }
}
