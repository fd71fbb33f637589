//! The threads of a run that start together and end together: its receivers, and its senders.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, Receiver, RecvTimeoutError};
use std::sync::Arc;
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use crate::error::{Context, Error, Result};

/// Threads of one kind, by flow index. Drop makes them end.
pub struct Workers<T> {
    /// Name in errors, such as `receiver`.
    name: &'static str,
    /// True: all threads end.
    pub(super) halt: Arc<AtomicBool>,
    threads: Vec<JoinHandle<Result<T>>>,
    ready: Vec<Receiver<Result<()>>>,
}

impl<T: Send + 'static> Workers<T> {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, halt: Arc::default(), threads: Vec::new(), ready: Vec::new() }
    }

    /// Start the next thread. `work` gets a function to call when it is ready.
    pub(super) fn start(&mut self, work: impl FnOnce(&dyn Fn()) -> Result<T> + Send + 'static) -> Result<()> {
        let name = format!("{} {}", self.name, self.threads.len());
        let (tx, rx) = sync_channel(1);
        let run =
            move || work(&|| drop(tx.try_send(Ok(())))).inspect_err(|error| drop(tx.try_send(Err(error.clone()))));
        self.threads.push(Builder::new().name(name.clone()).spawn(run).context(|| format!("starting {name}"))?);
        self.ready.push(rx);
        Ok(())
    }

    /// Wait until each thread is ready or has ended without error.
    pub(super) fn wait_until_ready(&self, patience: Duration) -> Result<()> {
        for (index, ready) in self.ready.iter().enumerate() {
            match ready.recv_timeout(patience) {
                Ok(result) => result?,
                Err(RecvTimeoutError::Disconnected) => {}
                Err(RecvTimeoutError::Timeout) => {
                    let found = format!("not ready after {} s", patience.as_secs());
                    return Err(Error::of("run-stalled", format!("starting {} {index}", self.name), found));
                }
            }
        }
        Ok(())
    }

    /// Make all threads end, and wait for them.
    ///
    /// # Errors
    /// The first error of a thread.
    pub fn end(self) -> Result<Vec<T>> {
        self.halt.store(true, Ordering::Relaxed);
        self.join()
    }

    /// Wait for the end of all threads.
    ///
    /// # Errors
    /// The first error of a thread.
    pub fn join(mut self) -> Result<Vec<T>> {
        let threads = std::mem::take(&mut self.threads);
        let panicked = |index| Error::of("run-failed", format!("{} {index}", self.name), "its thread panicked");
        let joined: Vec<_> = threads.into_iter().map(JoinHandle::join).enumerate().collect();
        joined.into_iter().map(|(index, ended)| ended.unwrap_or_else(|_| Err(panicked(index)))).collect()
    }
}

impl<T> Drop for Workers<T> {
    fn drop(&mut self) {
        self.halt.store(true, Ordering::Relaxed);
    }
}
