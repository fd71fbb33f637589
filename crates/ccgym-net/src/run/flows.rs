//! The flows of a run: a receiver thread for each flow outside the path, and a sender thread inside.
//!
//! Our handshakes are done before the run's time zero, so that none is part of the run; kernel TCP
//! and QUIC connect at the start of their flow, as usual.

use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::Arc;
use std::time::Duration;

use ccgym_core::congestion_control::CongestionControl;
use ccgym_core::Timestamp;
use ccgym_run::FlowSpec;
use serde::{Deserialize, Serialize};

use super::outcome::run_result;
use super::plan::{Carrier, Prepared};
use super::port;
use super::result::{PathReport, RunResult};
use super::workers::Workers;
use crate::clock::Clock;
use crate::error::{Context, Error, Result};
use crate::program::{self, End, ProgramLog, ProgramSpec, ProgramTask};
use crate::quic::{self, Ends, QuicJob, QuicReceiverJob, QuicSenderJob};
use crate::shell::EmulatorReport;
use crate::steer::{AgentConnection, LiveGroundTruth, Steering};
use crate::system::{system_info, Namespace};
use crate::tcp::{self, TcpSenderTask};
use crate::udp::{run_receiver, Connection, ReceiverResult, ReceiverTask, SenderResult, SenderTask};

/// Max time until a receiver listens.
const LISTEN_TIMEOUT: Duration = Duration::from_secs(10);

/// Namespaces and addresses of the flows' ends.
#[derive(Clone)]
pub struct FlowEndpoints {
    /// Namespace of the senders.
    pub inside: Arc<Namespace>,
    /// Namespace of the receivers.
    pub outside: Arc<Namespace>,
    /// Address of the receivers.
    pub address: Ipv4Addr,
    /// Address of the senders, if receivers can reach it.
    pub inside_address: Option<Ipv4Addr>,
    /// Max time of a handshake.
    pub handshake: Duration,
    /// Packets in the bottleneck, if this process counts them.
    pub backlog: Option<Arc<AtomicU64>>,
}

/// Result of one end of a flow, with its output if it was an external program.
pub type Left<T> = (T, Option<String>);

/// Results of all flows, by index.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ended {
    /// Results of the senders.
    pub senders: Vec<SenderResult>,
    /// Results of the receivers.
    pub received: Vec<ReceiverResult>,
    /// Output of external programs.
    pub said: Vec<ProgramLog>,
}

/// Run all flows over a path; they start to send at the plan's times on `clock`. At the end of the run, `stop_path` gets
/// the time, ends the path and returns its report; the rest of the report is added here. If an environment decides,
/// the run ends with the flows. `None` if `clock` reached zero before all handshakes were done.
///
/// # Errors
/// No socket, a handshake that stalled, an invalid scheme, a flow that failed.
pub fn carry_flows(
    prepared: &Arc<Prepared>,
    endpoints: &FlowEndpoints,
    clock: Clock,
    stop_path: impl FnOnce(Timestamp) -> Result<(EmulatorReport, PathReport)>,
) -> Result<Option<RunResult>> {
    let receivers = start_receivers(prepared, endpoints, clock)?;
    let senders = start_senders(prepared, endpoints, clock)?;
    if clock.has_started() {
        return Ok(None);
    }
    let senders = senders.join();
    let end = Timestamp::ZERO + prepared.plan.spec.duration;
    let at = if prepared.plan.control.is_some() { clock.now().min(end) } else { end };
    clock.sleep_until(at);
    let (path, mut report) = stop_path(at)?;
    let received = receivers.end();
    let ended = Ended::of(senders?, received?);
    report.limited = report.limited.or_else(|| prepared.fell_behind());
    report.started_epoch_ms = clock.epoch_ms(Timestamp::ZERO);
    report.system = system_info(&endpoints.inside)?;
    run_result(&prepared.plan.spec, path, report, ended).map(Some)
}

impl Ended {
    /// Collect the results of all senders and receivers; those of other machines are not included.
    pub fn of(senders: Vec<Left<SenderResult>>, receivers: Vec<Left<ReceiverResult>>) -> Self {
        let mut said = Vec::new();
        let (senders, received) = (take(End::Sender, senders, &mut said), take(End::Receiver, receivers, &mut said));
        Self { senders, received, said }
    }
}

fn take<T>(end: End, left: Vec<Left<T>>, all_said: &mut Vec<ProgramLog>) -> Vec<T> {
    let keep = |(flow, (result, said)): (usize, Left<T>)| {
        all_said.extend(said.map(|text| ProgramLog { flow, end, text }));
        result
    };
    left.into_iter().enumerate().map(keep).collect()
}

/// Start a sender per flow, and wait for all handshakes. Senders start to send at the plan's times.
///
/// # Errors
/// A handshake that stalled, an invalid scheme.
pub fn start_senders(
    prepared: &Arc<Prepared>,
    endpoints: &FlowEndpoints,
    clock: Clock,
) -> Result<Workers<Left<SenderResult>>> {
    let mut senders = Workers::new("sender");
    let truth = LiveGroundTruth::of(&prepared.plan.spec, endpoints.backlog.clone());
    for index in 0..prepared.flows().len() {
        let ours = prepared.carrier(index) == Carrier::Ours;
        let cca = ours.then(|| prepared.scheme(index)).transpose()?;
        let (flow, truth) = (FlowThread::new(prepared, endpoints, index, clock, &senders.halt), truth.clone());
        senders.start(move |ready| flow.send(cca, truth, ready))?;
    }
    // Each handshake and program has its own deadline; this one only detects bugs.
    senders.wait_until_ready(endpoints.handshake + LISTEN_TIMEOUT)?;
    Ok(senders)
}

/// Start a receiver per flow, and wait until all listen. Their series use `clock`.
///
/// # Errors
/// No socket.
pub fn start_receivers(
    prepared: &Arc<Prepared>,
    endpoints: &FlowEndpoints,
    clock: Clock,
) -> Result<Workers<Left<ReceiverResult>>> {
    let mut receivers = Workers::new("receiver");
    for index in 0..prepared.flows().len() {
        let flow = FlowThread::new(prepared, endpoints, index, clock, &receivers.halt);
        receivers.start(move |ready| flow.receive(ready))?;
    }
    receivers.wait_until_ready(LISTEN_TIMEOUT)?;
    Ok(receivers)
}

/// Data of the thread of a sender or receiver.
struct FlowThread {
    prepared: Arc<Prepared>,
    endpoints: FlowEndpoints,
    index: usize,
    clock: Clock,
    halt: Arc<AtomicBool>,
    /// End of the run; `stop`: end of the flow.
    end: Timestamp,
    stop: Timestamp,
    /// Address of the receiver.
    receiver: SocketAddrV4,
}

impl FlowThread {
    fn new(
        prepared: &Arc<Prepared>,
        endpoints: &FlowEndpoints,
        index: usize,
        clock: Clock,
        halt: &Arc<AtomicBool>,
    ) -> Self {
        let end = Timestamp::ZERO + prepared.plan.spec.duration;
        let stop = prepared.flows()[index].stop.unwrap_or(end).min(end);
        let receiver = SocketAddrV4::new(endpoints.address, port(index));
        let (prepared, endpoints, halt) = (prepared.clone(), endpoints.clone(), halt.clone());
        Self { prepared, endpoints, index, clock, halt, end, stop, receiver }
    }

    fn flow(&self) -> &FlowSpec {
        &self.prepared.flows()[self.index]
    }

    fn receive(self, ready: &dyn Fn()) -> Result<Left<ReceiverResult>> {
        self.endpoints.outside.enter()?;
        let step = || format!("listening at {}", self.receiver);
        let (clock, halt, end) = (self.clock, self.halt.clone(), self.end);
        let task = ReceiverTask { clock, step: self.prepared.plan.spec.record.series, end, halt, flows: 1 };
        let received = match self.prepared.carrier(self.index) {
            Carrier::Program(program) => match self.program_task(program, End::Receiver) {
                Some(task) => return Ok((ReceiverResult::default(), Some(program::carry_out(&task, ready)?))),
                // The program cannot run here.
                None => ReceiverResult::default(),
            },
            Carrier::Kernel(_) => {
                let listener = TcpListener::bind(self.receiver).context(step)?;
                ready();
                tcp::run_receiver(listener, task)?
            }
            Carrier::Quic(_) => {
                let Some(program) = &self.prepared.quic.program else { return Ok((ReceiverResult::default(), None)) };
                let job = QuicJob::Receiver(QuicReceiverJob { ends: self.quic_ends(), end });
                quic::carry_out(program, &job, &self.halt, ready)?
            }
            Carrier::Ours => {
                let socket = UdpSocket::bind(self.receiver).context(step)?;
                ready();
                run_receiver(socket, task)?
            }
        };
        Ok((received, None))
    }

    /// Send the flow. `cca`: the scheme, if our endpoints carry it.
    fn send(
        self,
        cca: Option<Box<dyn CongestionControl>>,
        truth: LiveGroundTruth,
        ready: &dyn Fn(),
    ) -> Result<Left<SenderResult>> {
        self.endpoints.inside.enter()?;
        if let Some(cca) = cca {
            return Ok((self.send_by_scheme(cca, truth, ready)?, None));
        }
        let sent = match self.prepared.carrier(self.index) {
            Carrier::Ours => SenderResult::default(),
            Carrier::Kernel(algorithm) => self.send_by_kernel(algorithm, ready)?,
            Carrier::Quic(algorithm) => self.send_by_quic(algorithm, ready)?,
            Carrier::Program(program) => {
                let scheme = &self.flow().scheme;
                if let Some(task) = self.program_task(program, End::Sender) {
                    let said = program::carry_out(&task, ready)?;
                    return Ok((SenderResult { name: scheme.clone(), ..SenderResult::default() }, Some(said)));
                }
                let reason = "its sender listens, and nothing inside mahimahi's shells can be reached from outside \
                              (--backend emulated runs it)";
                SenderResult::unavailable(scheme, reason.into())
            }
        };
        Ok((sent, None))
    }

    fn quic_ends(&self) -> Ends {
        Ends {
            flow: self.index as u32,
            receiver: self.receiver,
            secret: self.prepared.quic.secret,
            packet_bytes: self.flow().mss + self.flow().header,
            clock: self.clock,
            step: self.prepared.plan.spec.record.series,
        }
    }

    /// Make the task of one end of a flow of external programs, if they can run here.
    fn program_task(&self, program: ProgramSpec, end: End) -> Option<ProgramTask> {
        let FlowEndpoints { inside, outside, address, inside_address, .. } = &self.endpoints;
        Some(ProgramTask {
            flow: self.index,
            scheme: self.flow().scheme.clone(),
            address: if program.listens == End::Receiver { *address } else { (*inside_address)? },
            port: port(self.index),
            namespace: if end == End::Sender { inside } else { outside }.clone(),
            program,
            end,
            clock: self.clock,
            start: self.flow().start,
            stop: self.stop,
            // A receiver still receives packets under way.
            until: if end == End::Sender { self.stop } else { self.end },
            halt: self.halt.clone(),
        })
    }

    fn send_by_scheme(
        self,
        cca: Box<dyn CongestionControl>,
        truth: LiveGroundTruth,
        ready: &dyn Fn(),
    ) -> Result<SenderResult> {
        let spec = &self.prepared.plan.spec;
        let (index, flow) = (self.index as u32, self.flow());
        let steering = self.steering(&*cca, truth)?;
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).context(|| format!("flow {index}: a socket"))?;
        let peer = SocketAddr::V4(self.receiver);
        let connection = Connection::open(socket, peer, flow, index, self.endpoints.handshake)?;
        let context = spec.init_context(self.index, &*cca);
        ready();
        // The clock also reads zero before the run starts.
        self.clock.sleep_until(Timestamp::ZERO);
        connection.run(SenderTask {
            flow: index,
            spec: flow.clone(),
            cca,
            context,
            clock: self.clock,
            start: flow.start,
            stop: self.stop,
            step: spec.record.series,
            seed: spec.seed,
            steering,
            halt: self.halt.clone(),
        })
    }

    /// Connect to the environment if it decides for the flow's scheme.
    fn steering(&self, cca: &dyn CongestionControl, truth: LiveGroundTruth) -> Result<Option<Steering>> {
        if !cca.interval_driven().is_some_and(|scheme| scheme.decided_outside()) {
            return Ok(None);
        }
        let (Some(socket), Some(agent)) = (&self.prepared.plan.control, &self.prepared.resources.agent) else {
            let found = "a learning flow, and nothing to decide for it";
            return Err(Error::of("argument-missing", format!("flow {}", self.index), found)
                .expected("an agent and a control socket in the plan"));
        };
        let (flow, halt) = (self.index as u32, self.halt.clone());
        Steering::connect(socket, AgentConnection { flow, agent: agent.spec(), truth, halt }).map(Some)
    }

    fn send_by_quic(self, algorithm: String, ready: &dyn Fn()) -> Result<SenderResult> {
        let flow = self.flow();
        let Some(program) = &self.prepared.quic.program else {
            return Ok(SenderResult::unavailable(&flow.scheme, "there is no program ccgym-quic here".into()));
        };
        let job = QuicJob::Sender(QuicSenderJob {
            ends: self.quic_ends(),
            algorithm,
            source: flow.source.clone(),
            seed: self.prepared.plan.spec.seed,
            mss: flow.mss,
            start: flow.start,
            stop: self.stop,
        });
        quic::carry_out(program, &job, &self.halt, ready)
    }

    fn send_by_kernel(self, algorithm: String, ready: &dyn Fn()) -> Result<SenderResult> {
        let (spec, flow) = (&self.prepared.plan.spec, self.flow());
        if !tcp::available().contains(&algorithm) {
            let reason = format!("this kernel has no congestion control {algorithm:?}");
            return Ok(SenderResult::unavailable(&flow.scheme, reason));
        }
        ready();
        self.clock.sleep_until(Timestamp::ZERO);
        tcp::run_sender(TcpSenderTask {
            flow: self.index as u32,
            algorithm,
            peer: self.receiver,
            source: flow.source.clone(),
            mss: flow.mss,
            header: flow.header,
            clock: self.clock,
            start: flow.start,
            stop: self.stop,
            step: spec.record.series,
            seed: spec.seed,
            halt: self.halt.clone(),
        })
    }
}
