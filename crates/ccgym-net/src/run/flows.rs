//! The flows of a run: a receiver thread for each outside the path, and a sender thread inside.
//!
//! Senders meet their receivers before the run's time zero, so that no handshake of ours shows in the run; a kernel's
//! TCP and QUIC connect when their flow starts, as they do anywhere.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::Arc;
use std::time::Duration;

use ccgym_core::congestion_control::CongestionControl;
use ccgym_core::Timestamp;

use super::plan::{Carrier, Prepared};
use super::port;
use super::workers::Workers;
use crate::clock::Clock;
use crate::error::{Context, NetError, Result};
use crate::program::{self, End, ProgramLog, ProgramTask};
use crate::quic::{self, Ends, QuicJob, QuicReceiverJob, QuicSenderJob};
use crate::steer::{AgentConnection, LiveGroundTruth, Steering};
use crate::system::Namespace;
use crate::tcp::{self, TcpSenderTask};
use crate::udp::{run_receiver, Connection, ReceiverResult, ReceiverTask, SenderResult, SenderTask};

/// How long a receiver may take to listen.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(10);

/// Where the ends of the flows are.
#[derive(Clone)]
pub(super) struct FlowEndpoints {
    /// The senders' namespace.
    pub inside: Arc<Namespace>,
    /// The receivers' namespace.
    pub outside: Arc<Namespace>,
    /// The receivers' address.
    pub address: Ipv4Addr,
    /// The senders' address, where receivers can reach it.
    pub inside_address: Option<Ipv4Addr>,
    /// How long a handshake may take.
    pub handshake: Duration,
    /// Packets in the bottleneck, where this process counts them.
    pub backlog: Option<Arc<AtomicU64>>,
}

/// All flows of a run, at work.
pub(super) struct Flows {
    receivers: Workers<Left<ReceiverResult>>,
    senders: Workers<Left<SenderResult>>,
}

/// What an end of a flow left; and what it said, if it was a program of others.
pub(super) type Left<T> = (T, Option<String>);

/// What all flows left, in order of their index.
#[derive(Default)]
pub(super) struct Ended {
    pub senders: Vec<SenderResult>,
    pub received: Vec<ReceiverResult>,
    pub said: Vec<ProgramLog>,
}

impl Flows {
    /// Start the threads and wait until each sender has met its receiver. They begin to send at the times that the
    /// plan says, counted by `clock`. `None` if `clock` reached zero before all were ready.
    ///
    /// # Errors
    /// A socket cannot be had, a handshake stalled, a scheme cannot be made.
    pub fn start(prepared: &Arc<Prepared>, endpoints: &FlowEndpoints, clock: Clock) -> Result<Option<Self>> {
        let receivers = start_receivers(prepared, endpoints, clock)?;
        let senders = start_senders(prepared, endpoints, clock)?;
        Ok((!clock.has_started()).then_some(Self { receivers, senders }))
    }

    /// Let the flows run to the end of the run; then `stop_path` ends the path, and gets that time. What it returned,
    /// and the results in order of the flows. Where an environment decides, the run is over as soon as the flows are.
    pub fn finish<P>(
        self,
        prepared: &Prepared,
        clock: Clock,
        stop_path: impl FnOnce(Timestamp) -> Result<P>,
    ) -> Result<(P, Ended)> {
        let senders = self.senders.join();
        let end = Timestamp::ZERO + prepared.plan.spec.duration;
        let at = if prepared.plan.control.is_some() { clock.now().min(end) } else { end };
        clock.sleep_until(at);
        let path = stop_path(at)?;
        self.receivers.halt.store(true, Ordering::Relaxed);
        let received = self.receivers.join();
        let mut ended = Ended::default();
        ended.take_senders(senders?);
        ended.take_receivers(received?);
        Ok((path, ended))
    }
}

impl Ended {
    /// What all senders left.
    pub fn take_senders(&mut self, left: Vec<Left<SenderResult>>) {
        self.senders = self.take(End::Sender, left);
    }

    /// What all receivers left.
    pub fn take_receivers(&mut self, left: Vec<Left<ReceiverResult>>) {
        self.received = self.take(End::Receiver, left);
    }

    fn take<T>(&mut self, end: End, left: Vec<Left<T>>) -> Vec<T> {
        let keep = |(flow, (result, said)): (usize, Left<T>)| {
            self.said.extend(said.map(|text| ProgramLog { flow, end, text }));
            result
        };
        left.into_iter().enumerate().map(keep).collect()
    }
}

/// A sender per flow; each has met its receiver. They begin to send at the times that the plan says.
pub(super) fn start_senders(
    prepared: &Arc<Prepared>,
    endpoints: &FlowEndpoints,
    clock: Clock,
) -> Result<Workers<Left<SenderResult>>> {
    let mut senders = Workers::new("sender");
    let truth = LiveGroundTruth::of(&prepared.plan.spec, endpoints.backlog.clone());
    for index in 0..prepared.flows().len() {
        let work = match prepared.carrier(index) {
            Carrier::Ours => Work::Ours(prepared.scheme(index)?),
            Carrier::Kernel(algorithm) => Work::Kernel(algorithm),
            Carrier::Quic(algorithm) => Work::Quic(algorithm),
            Carrier::Program(_) => Work::Program,
        };
        let (prepared, endpoints, halt) = (prepared.clone(), endpoints.clone(), senders.halt.clone());
        let sender = FlowSender { prepared, index, endpoints, truth: truth.clone(), clock, halt };
        senders.start(move |ready| sender.run(work, ready))?;
    }
    // Each handshake and each program has its own deadline; this one only catches a bug.
    senders.wait_until_ready(endpoints.handshake + LISTEN_TIMEOUT)?;
    Ok(senders)
}

/// A receiver per flow; all of them listen. What they count is binned by `clock`.
pub(super) fn start_receivers(
    prepared: &Prepared,
    endpoints: &FlowEndpoints,
    clock: Clock,
) -> Result<Workers<Left<ReceiverResult>>> {
    let spec = &prepared.plan.spec;
    let mut receivers = Workers::new("receiver");
    for index in 0..prepared.flows().len() {
        let at = SocketAddrV4::new(endpoints.address, port(index));
        let (step, end) = (spec.record.series, Timestamp::ZERO + spec.duration);
        let task = ReceiverTask { clock, step, end, halt: receivers.halt.clone(), flows: 1 };
        let (carrier, namespace, quic) = (prepared.carrier(index), endpoints.outside.clone(), prepared.quic.clone());
        let ends = quic_ends(prepared, endpoints, index, clock);
        let program = program_task(prepared, endpoints, index, End::Receiver, clock, receivers.halt.clone());
        receivers.start(move |ready| {
            namespace.enter()?;
            if let Some(program) = program {
                return Ok((ReceiverResult::default(), Some(program::carry_out(&program, ready)?)));
            }
            let step = || format!("listening at {at}");
            let received = match carrier {
                // One that cannot run here.
                Carrier::Program(_) => Ok(ReceiverResult::default()),
                Carrier::Kernel(_) => {
                    let listener = TcpListener::bind(at).context(step)?;
                    ready();
                    tcp::run_receiver(listener, task)
                }
                Carrier::Quic(_) => {
                    let Some(program) = quic.program else { return Ok((ReceiverResult::default(), None)) };
                    let job = QuicJob::Receiver(QuicReceiverJob { ends, end });
                    quic::carry_out(&program, &job, &task.halt, ready)
                }
                Carrier::Ours => {
                    let socket = UdpSocket::bind(at).context(step)?;
                    ready();
                    run_receiver(socket, task)
                }
            };
            Ok((received?, None))
        })?;
    }
    receivers.wait_until_ready(LISTEN_TIMEOUT)?;
    Ok(receivers)
}

/// What both ends of flow `index` need if QUIC carries it.
fn quic_ends(prepared: &Prepared, endpoints: &FlowEndpoints, index: usize, clock: Clock) -> Ends {
    let flow = &prepared.flows()[index];
    Ends {
        flow: index as u32,
        receiver: SocketAddrV4::new(endpoints.address, port(index)),
        secret: prepared.quic.secret,
        packet_bytes: flow.mss + flow.header,
        clock,
        step: prepared.plan.spec.record.series,
    }
}

/// One end of flow `index`, if programs of others carry it, and can here.
fn program_task(
    prepared: &Prepared,
    endpoints: &FlowEndpoints,
    index: usize,
    end: End,
    clock: Clock,
    halt: Arc<AtomicBool>,
) -> Option<ProgramTask> {
    let Carrier::Program(program) = prepared.carrier(index) else { return None };
    let (flow, run_end) = (&prepared.flows()[index], Timestamp::ZERO + prepared.plan.spec.duration);
    let stop = flow.stop.unwrap_or(run_end).min(run_end);
    Some(ProgramTask {
        flow: index,
        scheme: flow.scheme.clone(),
        address: match program.listens {
            End::Receiver => endpoints.address,
            End::Sender => endpoints.inside_address?,
        },
        port: port(index),
        namespace: if end == End::Sender { &endpoints.inside } else { &endpoints.outside }.clone(),
        program,
        end,
        clock,
        start: flow.start,
        stop,
        // A receiver may still get what is under way.
        until: if end == End::Sender { stop } else { run_end },
        halt,
    })
}

/// What a sender is to run.
enum Work {
    Ours(Box<dyn CongestionControl>),
    Kernel(String),
    Quic(String),
    Program,
}

/// What the thread of a sender needs.
struct FlowSender {
    prepared: Arc<Prepared>,
    index: usize,
    endpoints: FlowEndpoints,
    truth: LiveGroundTruth,
    clock: Clock,
    halt: Arc<AtomicBool>,
}

impl FlowSender {
    fn run(self, work: Work, ready: &dyn Fn()) -> Result<Left<SenderResult>> {
        self.endpoints.inside.enter()?;
        let sent = match work {
            Work::Ours(cca) => self.run_ours(cca, ready),
            Work::Kernel(algorithm) => self.run_kernel(algorithm, ready),
            Work::Quic(algorithm) => self.run_quic(algorithm, ready),
            Work::Program => return self.run_program(ready),
        };
        Ok((sent?, None))
    }

    fn stop(&self) -> Timestamp {
        let end = Timestamp::ZERO + self.prepared.plan.spec.duration;
        self.prepared.flows()[self.index].stop.unwrap_or(end).min(end)
    }

    fn peer(&self) -> SocketAddrV4 {
        SocketAddrV4::new(self.endpoints.address, port(self.index))
    }

    fn run_ours(self, cca: Box<dyn CongestionControl>, ready: &dyn Fn()) -> Result<SenderResult> {
        let spec = &self.prepared.plan.spec;
        let flow = &spec.flows[self.index];
        let steering = self.steering(&*cca)?;
        let socket =
            UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).context(|| format!("flow {}: a socket", self.index))?;
        let peer = SocketAddr::V4(self.peer());
        let connection = Connection::open(socket, peer, flow, self.index as u32, self.endpoints.handshake)?;
        let context = spec.init_context(self.index, &*cca);
        ready();
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

    /// The environment that decides for the flow, if its scheme is decided for from outside.
    fn steering(&self, cca: &dyn CongestionControl) -> Result<Option<Steering>> {
        if !cca.interval_driven().is_some_and(|scheme| scheme.decided_outside()) {
            return Ok(None);
        }
        let (Some(socket), Some(agent)) = (&self.prepared.plan.control, &self.prepared.resources.agent) else {
            let found = "a learning flow, and nothing to decide for it";
            return Err(NetError::of("argument-missing", format!("flow {}", self.index), found)
                .expected("an agent and a control socket in the plan"));
        };
        let connection = AgentConnection {
            flow: self.index as u32,
            agent: agent.spec(),
            truth: self.truth.clone(),
            halt: self.halt.clone(),
        };
        Steering::connect(socket, connection).map(Some)
    }

    fn run_quic(self, algorithm: String, ready: &dyn Fn()) -> Result<SenderResult> {
        let spec = &self.prepared.plan.spec;
        let flow = &spec.flows[self.index];
        let Some(program) = &self.prepared.quic.program else {
            return Ok(SenderResult::unavailable(&flow.scheme, "there is no program ccgym-quic here".into()));
        };
        let job = QuicJob::Sender(QuicSenderJob {
            ends: quic_ends(&self.prepared, &self.endpoints, self.index, self.clock),
            algorithm,
            source: flow.source.clone(),
            seed: spec.seed,
            mss: flow.mss,
            start: flow.start,
            stop: self.stop(),
        });
        quic::carry_out(program, &job, &self.halt, ready)
    }

    fn run_program(self, ready: &dyn Fn()) -> Result<Left<SenderResult>> {
        let scheme = &self.prepared.flows()[self.index].scheme;
        let Some(task) =
            program_task(&self.prepared, &self.endpoints, self.index, End::Sender, self.clock, self.halt.clone())
        else {
            let reason = "its sender listens, and nothing inside mahimahi's shells can be reached from outside \
                          (--backend emulated runs it)";
            return Ok((SenderResult::unavailable(scheme, reason.into()), None));
        };
        let said = program::carry_out(&task, ready)?;
        Ok((SenderResult { name: scheme.clone(), ..SenderResult::default() }, Some(said)))
    }

    fn run_kernel(self, algorithm: String, ready: &dyn Fn()) -> Result<SenderResult> {
        let spec = &self.prepared.plan.spec;
        let flow = &spec.flows[self.index];
        if !tcp::available().contains(&algorithm) {
            let reason = format!("this kernel has no congestion control {algorithm:?}");
            return Ok(SenderResult::unavailable(&flow.scheme, reason));
        }
        ready();
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
