//! The sending endpoint: the transport of the simulator over a socket.
//!
//! The transport's clock shows the time of each event, not the time at which this process handles it:
//! acknowledgements are handled at their arrival in the kernel, timers and pacing releases at their due times, in
//! order of time; then the packets that the window allows are sent. A process wakes up some tens of microseconds late,
//! maybe after the next release was due: those packets are sent together, and the rate is kept. An event that was due
//! more than four milliseconds ago (a scheduler's time slice) counts as due then: no burst makes up for a longer stall.
//!
//! Packets that the kernel does not take at once wait, and the transport sends no more until they are gone: this wait
//! counts as delay on the path.

use std::collections::BTreeMap;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use ccgym_core::sender::{SenderStats, HANDSHAKE};
use ccgym_core::{Ack, CongestionControl, Ecn, Feedback, InitContext, Packet, Sender, TimeSpan, Timestamp};
use ccgym_run::media::Frame;
use ccgym_run::recorder::FlowSeries;
use ccgym_run::source::Source;
use ccgym_run::spec::SourceSpec;
use ccgym_run::FlowSpec;
use serde::{Deserialize, Serialize};

use super::codec::{decode, encode, encode_packet, Message};
use super::datagram::{self, datagram::Kind};
use super::hello::{refusal, Connection};
use super::series::SenderSeries;
use super::socket::{wait, RxBatch, TxBatch};
use crate::error::{Context, Result};
use crate::steer::Steering;
use crate::system::{precise_timers, set_option};
use crate::Clock;

/// Max wait between checks of `halt`.
const HALT_CHECK: TimeSpan = TimeSpan::from_millis(20);
/// Max wait for a socket that does not report when it is writable again.
const RETRY: TimeSpan = TimeSpan::from_millis(1);
/// Max wait without sleeping: sleep and wake-up take as long.
const MAX_SPIN: TimeSpan = TimeSpan::from_micros(5);
/// Max age of a due event; an older one counts as this old.
const MAX_LAG: TimeSpan = TimeSpan::from_millis(4);

/// Task of a sender: one flow.
pub struct SenderTask {
    /// Index of the flow.
    pub flow: u32,
    /// Description of the flow; `start` and `stop` in it are not used.
    pub spec: FlowSpec,
    /// Scheme of the flow.
    pub cca: Box<dyn CongestionControl>,
    /// Initial context of the scheme; its time is overwritten.
    pub context: InitContext,
    /// The run's clock.
    pub clock: Clock,
    /// Start of the flow.
    pub start: Timestamp,
    /// End of sending and of the task.
    pub stop: Timestamp,
    /// Interval between samples; zero: none.
    pub step: TimeSpan,
    /// Seed of the run, for an application that draws random numbers.
    pub seed: u64,
    /// Environment that decides, if the scheme does not.
    pub steering: Option<Steering>,
    /// True: return now.
    pub halt: Arc<AtomicBool>,
}

/// Result of a flow's sender: our transport, the kernel's TCP, or QUIC.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SenderResult {
    /// Name of the scheme.
    pub name: String,
    /// Counters. The kernel does not count losses: there they are the retransmissions.
    pub stats: SenderStats,
    /// Min RTT; [`TimeSpan::MAX`] if there was none.
    pub min_rtt: TimeSpan,
    /// Time at which a finite transfer was acknowledged in full; [`Timestamp::NEVER`] if it was not.
    pub finished: Timestamp,
    /// Frames of a video encoder; empty for other applications.
    pub frames: Vec<Frame>,
    /// Samples, one per step since the run's start, from number `first_sample` on.
    pub series: FlowSeries,
    /// Number of the first sample that is not before the flow's start.
    pub first_sample: usize,
    /// Datagrams that did not decode or carried another token.
    pub rejected: u64,
    /// Hash over times and numbers of all acknowledgements, as in the simulator; 0 for other transports.
    pub hash: u64,
    /// More data of the kernel, by name, at the times of the series: `ca_state`, `delivery_rate_bps`,
    /// `kernel_pacing_bps`, `rto_ns`, `ssthresh_packets` (infinite if not set), and for BBR `bbr_bw_bps`,
    /// `bbr_min_rtt_ns`, `bbr_pacing_gain`, `bbr_cwnd_gain`.
    pub extra: BTreeMap<String, Vec<f64>>,
    /// Reason if this flow cannot run on this machine; absent if it ran.
    pub unavailable: Option<String>,
}

impl Default for SenderResult {
    /// Return the result of a flow that sent nothing.
    fn default() -> Self {
        Self {
            name: String::new(),
            stats: SenderStats::default(),
            min_rtt: TimeSpan::MAX,
            finished: Timestamp::NEVER,
            frames: Vec::new(),
            series: FlowSeries::default(),
            first_sample: 0,
            rejected: 0,
            hash: 0,
            extra: BTreeMap::new(),
            unavailable: None,
        }
    }
}

impl SenderResult {
    /// Return the result of a flow that cannot run on this machine.
    pub fn unavailable(name: &str, reason: String) -> Self {
        Self { name: name.to_owned(), unavailable: Some(reason), ..Self::default() }
    }
}

/// Interval and function to call while a flow runs.
type Report<'a> = (TimeSpan, &'a mut dyn FnMut(Timestamp, &Sender));

impl Connection {
    /// Run a flow until it stops.
    ///
    /// # Errors
    /// A failing socket or environment; packets too large for the path.
    pub fn run(self, task: SenderTask) -> Result<SenderResult> {
        self.drive(task, None)
    }

    /// Run a flow until it stops or a finite transfer is complete. Call `report` about every `interval`; not if it is zero.
    pub(super) fn run_to_completion(
        self,
        task: SenderTask,
        interval: TimeSpan,
        report: &mut dyn FnMut(Timestamp, &Sender),
    ) -> Result<SenderResult> {
        self.drive(task, Some((interval, report)))
    }

    fn drive(self, task: SenderTask, report: Option<Report<'_>>) -> Result<SenderResult> {
        precise_timers();
        while task.clock.now() < task.start.min(task.stop) && !task.halt.load(Ordering::Relaxed) {
            task.clock.sleep_until(task.start.min(task.clock.now() + HALT_CHECK));
        }
        let mut driver = Driver::new(self, task);
        driver.run(report)?;
        driver.finish()
    }
}

struct Driver {
    connection: Connection,
    sender: Sender,
    source: Source,
    clock: Clock,
    stop: Timestamp,
    /// Clock of the transport: no event is earlier.
    now: Timestamp,
    departures: TxBatch,
    /// True if the kernel took all packets.
    clear: bool,
    /// ECN bits that the socket sets.
    marking: Ecn,
    steering: Option<Steering>,
    action: Vec<f32>,
    series: SenderSeries,
    name: String,
    finite: bool,
    finished: Timestamp,
    hash: u64,
    halt: Arc<AtomicBool>,
}

impl Driver {
    fn new(connection: Connection, task: SenderTask) -> Self {
        let SenderTask { flow, spec, cca, context, clock, start, stop, step, seed, steering, halt } = task;
        let now = clock.now().max(start);
        let mut sender = Sender::new(spec.sender_config(flow), cca, InitContext { now, ..context });
        let mut source = Source::new(&spec.source, spec.mss, spec.header, seed, u64::from(flow));
        source.start(start, &mut sender, spec.mss, spec.header);
        Self {
            connection,
            sender,
            source,
            clock,
            stop,
            now,
            departures: TxBatch::default(),
            clear: true,
            marking: Ecn::NotEct,
            steering,
            action: Vec::new(),
            series: SenderSeries::new(step, start),
            name: spec.scheme,
            finite: matches!(spec.source, SourceSpec::Bytes { .. }),
            finished: Timestamp::NEVER,
            hash: 0xcbf2_9ce4_8422_2325,
            halt,
        }
    }

    fn run(&mut self, mut report: Option<Report<'_>>) -> Result<()> {
        let mut arrivals = RxBatch::default();
        let mut next_report = match report {
            Some((interval, _)) if interval.0 > 0 => Timestamp::ZERO + interval,
            _ => Timestamp::NEVER,
        };
        while !self.halt.load(Ordering::Relaxed) {
            let came = arrivals.receive(self.connection.socket.as_fd(), &self.clock)?;
            for index in 0..came {
                self.take_arrival(&arrivals, index)?;
            }
            let now = arrivals.now().max(self.now);
            if now >= self.stop {
                return Ok(());
            }
            let more = self.send(now)?;
            self.series.catch_up(now, &self.sender);
            if let Some((interval, report)) = &mut report {
                if self.finished.is_set() {
                    return Ok(());
                }
                if next_report <= now {
                    report(now, &self.sender);
                    while next_report <= now {
                        next_report += *interval;
                    }
                }
            }
            self.wait(came > 0 || more, next_report)?;
        }
        Ok(())
    }

    /// Handle arrival `index` at its own time.
    #[inline]
    fn take_arrival(&mut self, arrivals: &RxBatch, index: usize) -> Result<()> {
        let Some((incoming, at)) = arrivals.get(index, self.now) else { return Ok(()) };
        if at > self.stop {
            return Ok(());
        }
        for bytes in incoming.datagrams() {
            match decode(bytes, self.connection.overhead) {
                Ok((token, Message::Ack(ack))) if token == self.connection.token => {
                    self.take_ack(at, &ack)?;
                }
                Ok((token, Message::Feedback(feedback))) if token == self.connection.token => {
                    self.take_feedback(at, &feedback)?;
                }
                // A Hello can have several answers; a receiver can refuse a flow later.
                Ok((token, Message::HelloAck(answer))) if token == self.connection.token => {
                    if let Some(error) = refusal(self.connection.peer, &answer) {
                        return Err(error);
                    }
                }
                _ => self.connection.rejected += 1,
            }
        }
        Ok(())
    }

    #[inline]
    fn take_ack(&mut self, at: Timestamp, ack: &Ack) -> Result<()> {
        self.take_report(at, ack.trigger, |sender| sender.on_ack(at, ack))
    }

    #[cold]
    fn take_feedback(&mut self, at: Timestamp, feedback: &Feedback) -> Result<()> {
        let newest = feedback.arrivals.last().map_or(0, |arrived| arrived.number);
        self.take_report(at, newest, |sender| sender.on_feedback(at, feedback))
    }

    /// Handle a report that arrived at `at` because of packet `trigger`.
    #[inline]
    fn take_report(&mut self, at: Timestamp, trigger: u64, take: impl FnOnce(&mut Sender)) -> Result<()> {
        self.advance(at)?;
        self.series.catch_up(at, &self.sender);
        self.now = at;
        self.hash = (self.hash ^ at.0 ^ trigger.rotate_left(40)).wrapping_mul(0x0000_0100_0000_01b3);
        take(&mut self.sender);
        if self.finite && !self.finished.is_set() && self.sender.is_finished() {
            self.finished = at;
        }
        self.ask(at)?;
        // Send before the next acknowledgement of the batch, as if this one came alone: the next one sees the window in use.
        if self.clear {
            self.collect(at)?;
        }
        Ok(())
    }

    /// Run the events due by `until`, each at its time: timers, pacing releases, the application.
    #[inline]
    fn advance(&mut self, until: Timestamp) -> Result<()> {
        while self.clear && !self.departures.is_full() {
            let due = self.due();
            if due > until {
                break;
            }
            let at = due.max(self.now).max(until - MAX_LAG);
            self.series.catch_up(at, &self.sender);
            self.now = at;
            while self.source.next_event() <= at {
                let due = self.source.next_event();
                self.source.on_event(due, &mut self.sender);
            }
            if self.sender.next_timeout() <= at && !self.sender.is_release_due(at) {
                self.sender.on_timeout(at);
                self.ask(at)?;
            }
            let sent = self.collect(at)?;
            if sent == 0 && self.due() <= at {
                break; // an event due again at once waits for the next call
            }
        }
        Ok(())
    }

    #[inline]
    fn due(&self) -> Timestamp {
        self.sender.next_timeout().min(self.source.next_event())
    }

    /// If the scheme waits for a decision, ask the environment and continue with the last decision.
    #[inline]
    fn ask(&mut self, now: Timestamp) -> Result<()> {
        if self.sender.awaits_decision() {
            if let Some(steering) = &mut self.steering {
                steering.interval_closed(now, &self.sender)?;
            }
            self.sender.hold_decision();
        }
        Ok(())
    }

    /// Send the packets that window and pacing allow now. True if more can be sent at once.
    fn send(&mut self, now: Timestamp) -> Result<bool> {
        if !self.clear {
            self.clear = self.departures.flush(self.connection.socket.as_fd())?;
            if !self.clear {
                return Ok(false);
            }
        }
        self.advance(now)?;
        self.collect(now)?;
        let full = self.departures.is_full();
        if !self.departures.is_empty() {
            self.clear = self.departures.flush(self.connection.socket.as_fd())?;
        }
        Ok(full && self.clear)
    }

    /// Make datagrams of all packets that may be sent at `at`. Return their number.
    #[inline]
    fn collect(&mut self, at: Timestamp) -> Result<u32> {
        let (token, overhead) = (self.connection.token, self.connection.overhead);
        let mut packet = Packet::default();
        let mut sent = 0;
        while !self.departures.is_full() && self.sender.poll_transmit_into(at, &mut packet) {
            self.now = at;
            sent += 1;
            if packet.ecn != self.marking && packet.number != HANDSHAKE {
                self.change_marking(packet.ecn)?;
            }
            self.departures.add(None, |out| encode_packet(out, token, &packet, overhead));
        }
        Ok(sent)
    }

    /// Send the waiting packets with the old ECN bits; then set the new ones.
    #[cold]
    fn change_marking(&mut self, ecn: Ecn) -> Result<()> {
        self.clear = self.departures.flush(self.connection.socket.as_fd())?;
        mark(&self.connection, ecn)?;
        self.marking = ecn;
        Ok(())
    }

    /// Wait for an arrival, a timer, or an action; return at once if `busy`.
    fn wait(&mut self, busy: bool, report: Timestamp) -> Result<()> {
        let now = self.clock.now();
        let due = if busy {
            now
        } else if self.clear {
            self.due().min(report).min(self.stop).min(now + HALT_CHECK)
        } else {
            now + RETRY
        };
        let Some(steering) = &mut self.steering else {
            if due > now + MAX_SPIN {
                wait(self.connection.socket.as_fd(), !self.clear, None, &self.clock, due)?;
            }
            return Ok(());
        };
        if wait(self.connection.socket.as_fd(), !self.clear, steering.fd(), &self.clock, due)? {
            let now = self.clock.now().max(self.now);
            if steering.take_action(now, &mut self.action)? {
                self.series.catch_up(now, &self.sender);
                self.now = now;
                self.sender.decide(now, &self.action);
            }
        }
        Ok(())
    }

    fn finish(mut self) -> Result<SenderResult> {
        let end = self.clock.now().max(self.now).min(self.stop);
        self.series.catch_up(end, &self.sender);
        if let Some(steering) = &mut self.steering {
            steering.flow_ended(end, &mut self.sender)?;
        }
        let stats = *self.sender.stats();
        let close = datagram::Close { sent_packets: stats.sent_packets, sent_bytes: stats.sent_bytes };
        let mut bytes = Vec::new();
        encode(&mut bytes, self.connection.token, Kind::Close(close), 0);
        // Not required: the receiver also detects the end by itself.
        let _ = self.connection.socket.send(&bytes);
        let (series, first_sample) = self.series.finish();
        Ok(SenderResult {
            name: self.name,
            stats,
            min_rtt: self.sender.rtt().min(),
            finished: self.finished,
            frames: self.source.frames().to_vec(),
            series,
            first_sample,
            rejected: self.connection.rejected,
            hash: self.hash,
            ..SenderResult::default()
        })
    }
}

/// Set the ECN bits of the socket's packets.
#[cold]
fn mark(connection: &Connection, ecn: Ecn) -> Result<()> {
    let (level, option) = if connection.peer.is_ipv4() {
        (libc::IPPROTO_IP, libc::IP_TOS)
    } else {
        (libc::IPPROTO_IPV6, libc::IPV6_TCLASS)
    };
    set_option(connection.socket.as_fd(), level, option, ecn.bits().into())
        .context(|| "marking packets as ECN-capable".into())
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::thread::JoinHandle;
    use std::time::Duration;

    use ccgym_core::packet::AckRange;

    use super::super::endpoint::alone;
    use super::super::receiver::{run_receiver, ReceiverResult, ReceiverTask};
    use super::super::socket::{prepare, RxBatch};
    use super::*;

    /// Connect a flow of `spec` to a receiver that runs until `halt`.
    fn connect(
        spec: &FlowSpec,
        clock: Clock,
        halt: &Arc<AtomicBool>,
    ) -> (Connection, JoinHandle<Result<ReceiverResult>>) {
        let server = UdpSocket::bind("127.0.0.1:0").unwrap();
        let peer = server.local_addr().unwrap();
        let halt = Arc::clone(halt);
        let task = ReceiverTask { clock, step: TimeSpan::ZERO, end: Timestamp::NEVER, halt, flows: 1 };
        let thread = std::thread::spawn(move || run_receiver(server, task));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        (Connection::open(socket, peer, spec, 0, Duration::from_secs(1)).unwrap(), thread)
    }

    /// Ten acknowledgements that arrive together: each one sees a full window, as if it came alone.
    #[test]
    fn each_acknowledgement_of_a_bunch_finds_the_window_in_use() {
        let clock = Clock::start();
        let halt = Arc::new(AtomicBool::new(false));
        let spec = r#"{"scheme": "fixed_window", "params": {"cwnd": 10}, "profile": "udp", "mss": 1472, "header": 28}"#;
        let spec: FlowSpec = serde_json::from_str(spec).unwrap();
        let (connection, thread) = connect(&spec, clock, &halt);
        let cca = ccgym_schemes::create(&spec.scheme, &spec.params).unwrap();
        let task = SenderTask {
            flow: 0,
            context: alone(&spec, 1).unwrap().init_context(0, &*cca),
            cca,
            spec,
            clock,
            start: Timestamp::ZERO,
            stop: Timestamp::NEVER,
            step: TimeSpan::ZERO,
            seed: 1,
            steering: None,
            halt: halt.clone(),
        };
        let mut driver = Driver::new(connection, task);
        let sent = driver.now;
        driver.collect(sent).unwrap();
        for number in 0..10 {
            assert_eq!(driver.sender.in_flight(), 10 * 1500, "before acknowledgement {number}");
            let packet = Packet { number, sent, size: 1500, ..Packet::default() };
            let mut ack = Ack::new(number, &packet, sent, 60);
            ack.push_range(AckRange { first: 0, last: number });
            driver.take_ack(sent + TimeSpan::from_millis(1), &ack).unwrap();
        }
        halt.store(true, Ordering::Relaxed);
        thread.join().unwrap().unwrap();
    }

    #[test]
    fn ecn_bits_reach_the_other_end() {
        let clock = Clock::start();
        let halt = Arc::new(AtomicBool::new(false));
        let spec = serde_json::from_str(r#"{"scheme": "cubic"}"#).unwrap();
        let (connection, thread) = connect(&spec, clock, &halt);
        let mut arrivals = RxBatch::default();
        for (number, ecn) in [(0, Ecn::Ect0), (1, Ecn::Ce), (2, Ecn::NotEct), (3, Ecn::Ce)] {
            let sent = clock.now();
            mark(&connection, ecn).unwrap();
            let mut bytes = Vec::new();
            let packet = Packet { number, sent, size: 1500, ..Packet::default() };
            encode_packet(&mut bytes, connection.token, &packet, 28);
            connection.socket.send(&bytes).unwrap();
            wait(connection.socket.as_fd(), false, None, &clock, clock.now() + TimeSpan::from_millis(1000)).unwrap();
            assert_eq!(arrivals.receive(connection.socket.as_fd(), &clock).unwrap(), 1);
            let (incoming, at) = arrivals.get(0, Timestamp::ZERO).unwrap();
            // Kernel time stamps on our clock: the answer arrived after the packet was sent and before we read it.
            assert!(sent <= at && at <= arrivals.now() && incoming.arrived_ns > 0, "{sent:?} {at:?}");
            let Ok((_, Message::Ack(ack))) = decode(incoming.bytes, 28) else { panic!() };
            assert_eq!((ack.trigger, ack.ce_total), (number, number.div_ceil(2) as u32));
            assert!(ack.received >= sent && ack.received <= at);
        }
        halt.store(true, Ordering::Relaxed);
        assert_eq!(thread.join().unwrap().unwrap().flows[0].ce_packets, 2);
    }

    #[test]
    fn trains_arrive_as_datagrams_cut_by_the_kernel_or_by_us() {
        let (from, to) = (UdpSocket::bind("127.0.0.1:0").unwrap(), UdpSocket::bind("127.0.0.1:0").unwrap());
        let address = to.local_addr().unwrap();
        to.set_read_timeout(Some(Duration::from_secs(1))).unwrap();
        prepare(&from).unwrap();
        let mut departures = TxBatch::default();
        for by_us in [false, true] {
            let sizes = [500, 500, 500, 20, 30, 500];
            for size in sizes {
                departures.add(Some(address), |out| out.resize(out.len() + size, size as u8));
            }
            if by_us {
                departures.uncouple();
            }
            assert!(departures.flush(from.as_fd()).unwrap() && departures.is_empty());
            let mut room = [0; 2000];
            for size in sizes {
                let length = to.recv(&mut room).unwrap();
                assert_eq!((length, room[0]), (size, size as u8));
            }
        }
    }
}
