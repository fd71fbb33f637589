//! The receiving half of every flow: one thread each, outside the path.

use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{sync_channel, Receiver as Channel};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ccgym_core::Timestamp;

use super::plan::Prepared;
use super::port;
use crate::clock::Clock;
use crate::error::{Context, NetError, Result};
use crate::system::Namespace;
use crate::tcp;
use crate::udp::{run_receiver, ReceiverResult, ReceiverTask};

/// How long a thread may take to listen.
const DEADLINE: Duration = Duration::from_secs(10);

/// Receivers at work.
pub struct Receivers {
    threads: Vec<JoinHandle<Result<ReceiverResult>>>,
    halt: Arc<AtomicBool>,
}

impl Receivers {
    /// Start one per flow in `namespace` at `address`, and wait until all of them listen. What they count is binned by
    /// `clock`.
    ///
    /// # Errors
    /// A socket cannot be had.
    pub fn start(prepared: &Prepared, namespace: &Arc<Namespace>, address: Ipv4Addr, clock: Clock) -> Result<Self> {
        let halt = Arc::new(AtomicBool::new(false));
        let mut receivers = Self { threads: Vec::new(), halt: halt.clone() };
        let mut listening: Vec<Channel<()>> = Vec::new();
        for index in 0..prepared.flows().len() {
            let at = SocketAddrV4::new(address, port(index));
            let task = ReceiverTask {
                clock,
                step: prepared.plan.spec.record.series,
                end: Timestamp::ZERO + prepared.plan.spec.duration,
                halt: halt.clone(),
                flows: 1,
            };
            let (kernel, namespace) = (prepared.kernel_algorithm(index).is_some(), namespace.clone());
            let (ready, listens) = sync_channel(1);
            let work = move || {
                namespace.enter()?;
                let step = || format!("listening at {at}");
                if kernel {
                    let listener = TcpListener::bind(at).context(step)?;
                    let _ = ready.send(());
                    tcp::run_receiver(listener, task)
                } else {
                    let socket = UdpSocket::bind(at).context(step)?;
                    let _ = ready.send(());
                    run_receiver(socket, task)
                }
            };
            let thread = thread::Builder::new().name(format!("receiver {index}")).spawn(work);
            receivers.threads.push(thread.context(|| format!("starting receiver {index}"))?);
            listening.push(listens);
        }
        for (index, listens) in listening.into_iter().enumerate() {
            if listens.recv_timeout(DEADLINE).is_err() {
                return Err(receivers.why_not(index));
            }
        }
        Ok(receivers)
    }

    /// Why receiver `index` does not listen.
    fn why_not(mut self, index: usize) -> NetError {
        self.halt.store(true, Ordering::Relaxed);
        let thread = self.threads.swap_remove(index);
        let step = format!("starting receiver {index}");
        if !thread.is_finished() {
            return NetError::new(step, format!("it does not listen after {} s", DEADLINE.as_secs()));
        }
        match thread.join() {
            Ok(Err(error)) => error,
            Ok(Ok(_)) => NetError::new(step, "it ended before it began"),
            Err(_) => NetError::new(step, "it panicked"),
        }
    }

    /// End all, and say what each received.
    pub fn finish(self) -> Vec<Result<ReceiverResult>> {
        self.halt.store(true, Ordering::Relaxed);
        let join = |(index, thread): (usize, JoinHandle<_>)| {
            thread.join().unwrap_or_else(|_| Err(NetError::new(format!("receiver {index}"), "it panicked")))
        };
        self.threads.into_iter().enumerate().map(join).collect()
    }
}
