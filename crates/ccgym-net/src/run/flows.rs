//! The sending half of every flow: one thread each, inside the path.
//!
//! They meet their receivers before the run's time zero, so that a handshake of ours never shows in the run; a kernel's
//! TCP connects when its flow starts, as it does anywhere.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{sync_channel, Receiver as Channel, RecvTimeoutError, SyncSender};
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ccgym_core::congestion_control::CongestionControl;
use ccgym_core::Timestamp;

use super::plan::Prepared;
use super::port;
use crate::clock::Clock;
use crate::error::{Context, NetError, Result};
use crate::steer::{AgentConnection, LiveGroundTruth, SocketSteering, Steering};
use crate::system::Namespace;
use crate::tcp::{self, TcpSenderTask};
use crate::udp::{Connection, Hello, SenderResult, SenderTask};

/// Where senders are.
#[derive(Clone)]
pub struct FlowEndpoints {
    /// The namespace to send from; the one that we are in if absent.
    pub namespace: Option<Arc<Namespace>>,
    /// Where the receivers are.
    pub receivers: Ipv4Addr,
    /// How long a handshake may take.
    pub deadline: Duration,
    /// Packets in the bottleneck, where this process counts them.
    pub backlog: Option<Arc<AtomicU64>>,
}

/// The senders of a run.
pub struct Flows {
    threads: Vec<JoinHandle<Result<SenderResult>>>,
    halt: Arc<AtomicBool>,
}

/// What the thread of a flow needs.
struct Work {
    prepared: Arc<Prepared>,
    index: usize,
    endpoints: FlowEndpoints,
    truth: LiveGroundTruth,
    clock: Clock,
    halt: Arc<AtomicBool>,
    ready: SyncSender<()>,
}

impl Flows {
    /// Start a thread per flow and wait until each has met its receiver. They begin to send at the times that the plan
    /// says, counted by `clock`.
    ///
    /// # Errors
    /// A handshake that stalled, a scheme that cannot be made.
    pub fn start(prepared: &Arc<Prepared>, endpoints: &FlowEndpoints, clock: Clock) -> Result<Self> {
        let halt = Arc::new(AtomicBool::new(false));
        let mut flows = Self { threads: Vec::new(), halt: halt.clone() };
        let mut waiting: Vec<Channel<()>> = Vec::new();
        let truth = LiveGroundTruth::of(&prepared.plan.spec, endpoints.backlog.clone());
        for index in 0..prepared.flows().len() {
            let cca = match prepared.kernel_algorithm(index) {
                None => Some(prepared.scheme(index)?),
                Some(_) => None,
            };
            let (ready, is_ready) = sync_channel(1);
            let (prepared, endpoints, halt) = (prepared.clone(), endpoints.clone(), halt.clone());
            let work = Work { prepared, index, endpoints, truth: truth.clone(), clock, halt, ready };
            let name = format!("sender {index}");
            let thread = thread::Builder::new().name(name.clone()).spawn(move || work.run(cca));
            flows.threads.push(thread.context(|| format!("starting {name}"))?);
            waiting.push(is_ready);
        }
        // Each handshake has its own deadline; this one only catches a bug.
        let patience = endpoints.deadline + Duration::from_secs(5);
        for (index, is_ready) in waiting.into_iter().enumerate() {
            match is_ready.recv_timeout(patience) {
                Ok(()) => {}
                Err(RecvTimeoutError::Timeout) => {
                    flows.halt.store(true, Ordering::Relaxed);
                    let found = format!("not ready after {} s", patience.as_secs());
                    return Err(NetError::new(format!("starting flow {index}"), found));
                }
                // It ended: with an error, or because it cannot run here.
                Err(RecvTimeoutError::Disconnected) => {
                    if let Some(error) = flows.failed(index) {
                        flows.halt.store(true, Ordering::Relaxed);
                        return Err(error);
                    }
                }
            }
        }
        Ok(flows)
    }

    /// The error of a flow whose thread has ended with one.
    fn failed(&mut self, index: usize) -> Option<NetError> {
        let ended = std::mem::replace(&mut self.threads[index], thread::spawn(|| Err(NetError::new("flow", "taken"))));
        match ended.join() {
            Ok(Ok(report)) => {
                self.threads[index] = thread::spawn(move || Ok(report));
                None
            }
            Ok(Err(error)) => Some(error),
            Err(_) => Some(NetError::new(format!("flow {index}"), "its thread panicked")),
        }
    }

    /// End all flows now.
    pub fn halt(&self) {
        self.halt.store(true, Ordering::Relaxed);
    }

    /// Wait for all.
    pub fn finish(self) -> Vec<Result<SenderResult>> {
        let join = |(index, thread): (usize, JoinHandle<_>)| {
            thread.join().unwrap_or_else(|_| Err(NetError::new(format!("flow {index}"), "its thread panicked")))
        };
        self.threads.into_iter().enumerate().map(join).collect()
    }
}

impl Work {
    fn run(self, cca: Option<Box<dyn CongestionControl>>) -> Result<SenderResult> {
        if let Some(namespace) = &self.endpoints.namespace {
            namespace.enter()?;
        }
        match cca {
            Some(cca) => self.run_ours(cca),
            None => self.run_kernel(),
        }
    }

    fn stop(&self) -> Timestamp {
        let end = Timestamp::ZERO + self.prepared.plan.spec.duration;
        self.prepared.flows()[self.index].stop.unwrap_or(end).min(end)
    }

    fn peer(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.endpoints.receivers, port(self.index))
    }

    fn run_ours(self, cca: Box<dyn CongestionControl>) -> Result<SenderResult> {
        let spec = &self.prepared.plan.spec;
        let flow = &spec.flows[self.index];
        let steering = self.steering(&*cca)?;
        let socket =
            UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).context(|| format!("flow {}: a socket", self.index))?;
        let connection = Connection::open(
            socket,
            SocketAddr::V4(self.peer()),
            &Hello::of(flow)?.for_flow(self.index as u32),
            self.endpoints.deadline,
        )?;
        let context = spec.init_context(self.index, &*cca);
        let _ = self.ready.send(());
        // The clock reads zero before the run begins, too.
        self.clock.sleep_until(Timestamp::ZERO);
        connection.run(SenderTask {
            flow: self.index as u32,
            spec: flow.clone(),
            cca,
            context,
            clock: self.clock,
            start: flow.start,
            stop: self.stop(),
            step: spec.record.series,
            seed: spec.seed,
            steering,
            halt: self.halt,
        })
    }

    /// Who decides, for a flow that is decided for from outside.
    fn steering(&self, cca: &dyn CongestionControl) -> Result<Option<Box<dyn Steering>>> {
        if !cca.interval_driven().is_some_and(|scheme| scheme.decided_outside()) {
            return Ok(None);
        }
        let step = || format!("flow {}", self.index);
        let (Some(socket), Some(agent)) = (&self.prepared.plan.control, &self.prepared.resources.agent) else {
            return Err(NetError::new(step(), "a learning flow, and nothing to decide for it")
                .expected("an agent and a control socket in the plan"));
        };
        let steering = SocketSteering::connect(
            socket,
            AgentConnection {
                flow: self.index as u32,
                agent: agent.spec(),
                truth: self.truth.clone(),
                halt: self.halt.clone(),
            },
        )?;
        Ok(Some(Box::new(steering)))
    }

    fn run_kernel(self) -> Result<SenderResult> {
        let spec = &self.prepared.plan.spec;
        let flow = &spec.flows[self.index];
        let algorithm = self.prepared.kernel_algorithm(self.index).unwrap_or_default().to_owned();
        if !tcp::available().contains(&algorithm) {
            let reason = format!("this kernel has no congestion control {algorithm:?}");
            return Ok(SenderResult::unavailable(&flow.scheme, reason));
        }
        let _ = self.ready.send(());
        self.clock.sleep_until(Timestamp::ZERO);
        tcp::run_sender(TcpSenderTask {
            flow: self.index as u32,
            algorithm,
            peer: self.peer(),
            source: flow.source.clone(),
            mss: flow.mss,
            header: flow.header,
            clock: self.clock,
            start: flow.start,
            stop: self.stop(),
            step: spec.record.series,
            seed: spec.seed,
            halt: self.halt,
        })
    }
}
