//! The threads of a batch.

use std::sync::mpsc::{channel, RecvTimeoutError};
use std::time::Duration;

use rayon::prelude::*;

use crate::bounds::Interrupt;

/// Interval at which a waiting thread polls the interrupt.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Threads that share work, or the calling thread alone.
pub(crate) struct Pool {
    threads: Option<rayon::ThreadPool>,
    interrupt: Option<Interrupt>,
}

impl Pool {
    /// Make a pool of `threads` threads (0: one per core; 1: the calling thread).
    pub fn new(threads: usize) -> Result<Self, rayon::ThreadPoolBuildError> {
        let threads =
            if threads == 1 { None } else { Some(rayon::ThreadPoolBuilder::new().num_threads(threads).build()?) };
        Ok(Self { threads, interrupt: None })
    }

    /// Set the function that the calling thread polls while it waits; the work must poll by itself.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.interrupt = Some(interrupt);
    }

    /// Call `f` with each item.
    pub fn for_each<T: Send>(&self, items: impl Iterator<Item = T>, f: impl Fn(T) + Sync + Send) {
        let Some(threads) = &self.threads else { return items.for_each(f) };
        let items: Vec<_> = items.collect();
        let Some(interrupt) = &self.interrupt else {
            return threads.install(|| items.into_par_iter().for_each(f));
        };
        threads.in_place_scope(|scope| {
            let (done, waits) = channel::<()>();
            scope.spawn(move |_| {
                items.into_par_iter().for_each(f);
                drop(done);
            });
            while waits.recv_timeout(POLL_INTERVAL) == Err(RecvTimeoutError::Timeout) {
                interrupt();
            }
        });
    }
}
