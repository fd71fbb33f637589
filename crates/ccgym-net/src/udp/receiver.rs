//! The receiving endpoint: the receivers of one or several flows behind one socket.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use ccgym_core::receiver::Arrival;
use ccgym_core::sender::HANDSHAKE;
use ccgym_core::{Ack, Ecn, Feedback, FeedbackHost, Packet, Receiver, TimeSpan, Timestamp};
use ccgym_run::receiver_series::ReceiverSeries;
use ccgym_run::Received;
use serde::{Deserialize, Serialize};

use super::codec::{decode, encode, encode_ack, encode_feedback, Message, Token, VERSION};
use super::cookie::Cookies;
use super::datagram::{self, datagram::Kind};
use super::hello::{feedback_host, receiver_config, REFUSAL_BYTES};
use super::socket::{kernel_drops, overhead, prepare, wait, RxBatch, TxBatch};
use crate::error::{Context, Result};
use crate::system::precise_timers;
use crate::Clock;

/// Max wait between checks of `halt`.
const HALT_CHECK: TimeSpan = TimeSpan::from_millis(20);
/// Max flows after the handshake without data; beyond it the oldest is removed. They do not count against the max number
/// of flows: only flows with data do.
const MAX_WAITING: usize = 64;
/// Max gaps among a flow's segments; with more it is refused. Each gap takes 16 bytes and time to sort. A window of
/// 100,000 packets with a loss of 10% has 10,000.
pub const MOST_GAPS: usize = 16_384;

/// Task of a receiver.
#[derive(Clone, Debug)]
pub struct ReceiverTask {
    /// The run's clock.
    pub clock: Clock,
    /// Interval between samples; zero: none.
    pub step: TimeSpan,
    /// End of the run: later arrivals do not count, and the receiver returns.
    pub end: Timestamp,
    /// True: return now.
    pub halt: Arc<AtomicBool>,
    /// Number of flows to serve; further ones are refused.
    pub flows: usize,
}

/// Counts of one flow's receiver.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Served {
    /// Index of the flow, set by the sender.
    pub flow: u32,
    /// Address of the sender.
    pub peer: SocketAddr,
    /// Packets and bytes.
    pub received: Received,
    /// Packets that the sender reports as sent; `None` if it did not close the flow.
    pub sent_packets: Option<u64>,
    /// First arrival; [`Timestamp::NEVER`] if there was none.
    pub first: Timestamp,
    /// Last arrival; zero if there was none.
    pub last: Timestamp,
    /// Packets that arrived with a congestion-experienced mark.
    pub ce_packets: u64,
    /// Reason if the receiver ended the flow.
    pub refused: Option<String>,
}

/// Result of a receiver.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ReceiverResult {
    /// Sum over all flows.
    pub received: Received,
    /// Wire bytes received by each multiple of the step, copies included.
    pub received_bytes: Vec<u64>,
    /// Payload bytes received by then, without copies.
    pub received_unique_bytes: Vec<u64>,
    /// Payload bytes received in order by then.
    pub read_bytes: Vec<u64>,
    /// Datagrams that did not decode, carried another token or came from another address.
    pub rejected: u64,
    /// Datagrams that the kernel dropped because the receiver read too late: the machine is too slow.
    pub overflowed: u64,
    /// Flows that sent data.
    pub flows: Vec<Served>,
}

/// Rules for ending flows and the receiver. The default is that of [`run_receiver`].
#[derive(Clone, Copy, Debug)]
pub struct Service {
    /// Return after the max number of flows have ended.
    pub once: bool,
    /// True: accept a new flow in place of one that ended.
    pub again: bool,
    /// Time without arrivals that ends a flow.
    pub idle: TimeSpan,
    /// Interval between calls of the observer; zero: none.
    pub report: TimeSpan,
}

impl Default for Service {
    fn default() -> Self {
        Self { once: false, again: false, idle: TimeSpan::MAX, report: TimeSpan::ZERO }
    }
}

/// Event for an observer of a receiver.
pub enum Event<'a> {
    /// First data of a flow.
    Began(&'a Served),
    /// A regular report on all flows with data.
    Goes(Timestamp, &'a [&'a Served]),
    /// End of a flow.
    Ended(&'a Served),
}

/// Serve flows on `socket` until the run ends.
pub fn run_receiver(socket: UdpSocket, task: ReceiverTask) -> Result<ReceiverResult> {
    serve(socket, task, Service::default(), &mut |_| ())
}

/// Serve flows with rules for the end, and an observer.
pub fn serve(
    socket: UdpSocket,
    task: ReceiverTask,
    service: Service,
    observe: &mut dyn FnMut(Event<'_>),
) -> Result<ReceiverResult> {
    prepare(&socket)?;
    precise_timers();
    let local = socket.local_addr().context(|| "preparing a receiver".into())?;
    let report = if service.report.0 > 0 { task.clock.now() + service.report } else { Timestamp::NEVER };
    let mut server = Server {
        overhead: overhead(&local.ip()),
        flows: Vec::new(),
        departures: TxBatch::default(),
        cookies: Cookies::new(),
        rejected: 0,
        begun: 0,
        ended: 0,
        result: ReceiverResult::default(),
        report,
        socket,
        task,
        service,
        observe,
    };
    server.run()?;
    Ok(server.finish())
}

/// A flow after its Hello.
struct Flow {
    token: Token,
    header: u32,
    packet_size: u32,
    receiver: Receiver,
    /// Receiver side of the scheme, if it has one.
    half: Option<Box<FeedbackHost>>,
    /// Clock of the receiver: no event is earlier.
    now: Timestamp,
    /// Last arrival, later Hellos not included.
    last_arrival: Timestamp,
    /// True if data arrived: the flow counts against the max.
    begun: bool,
    over: bool,
    series: ReceiverSeries,
    served: Served,
}

struct Server<'a> {
    socket: UdpSocket,
    task: ReceiverTask,
    service: Service,
    observe: &'a mut dyn FnMut(Event<'_>),
    overhead: u32,
    flows: Vec<Flow>,
    departures: TxBatch,
    cookies: Cookies,
    rejected: u64,
    begun: usize,
    ended: usize,
    result: ReceiverResult,
    report: Timestamp,
}

impl Server<'_> {
    fn run(&mut self) -> Result<()> {
        let mut arrivals = RxBatch::default();
        let clock = self.task.clock;
        while !self.task.halt.load(Ordering::Relaxed) {
            let came = arrivals.receive(self.socket.as_fd(), &clock)?;
            for index in 0..came {
                self.take_arrival(&arrivals, index);
            }
            let now = arrivals.now();
            let mut due = self.fire_timers(now);
            let clear = self.departures.flush(self.socket.as_fd())?;
            if now > self.task.end || (self.service.once && self.ended >= self.task.flows) {
                return Ok(());
            }
            if self.report <= now {
                self.look(now);
            }
            if came == 0 {
                due = due.min(now + HALT_CHECK).min(self.task.end.saturating_add(TimeSpan(1)));
                wait(self.socket.as_fd(), !clear, None, &clock, due)?;
            }
        }
        Ok(())
    }

    /// Handle arrival `index` at its own time.
    #[inline]
    fn take_arrival(&mut self, arrivals: &RxBatch, index: usize) {
        let Some((incoming, at)) = arrivals.get(index, Timestamp::ZERO) else { return };
        let ecn = Ecn::of_traffic_class(incoming.class);
        for bytes in incoming.datagrams() {
            let taken = match decode(bytes, self.overhead) {
                Ok((token, Message::Data(packet))) => {
                    self.take_data(token, incoming.from, at, Packet { ecn, ..packet })
                }
                Ok((token, Message::Hello(hello))) => self.take_hello(token, incoming.from, at, &hello, bytes.len()),
                Ok((token, Message::Close(close))) => self.take_close(token, incoming.from, close.sent_packets),
                _ => false,
            };
            self.rejected += u64::from(!taken);
        }
    }

    #[inline]
    fn find(&self, token: Token, from: SocketAddr) -> Option<usize> {
        self.flows.iter().position(|f| f.token == token && f.served.peer == from)
    }

    #[inline]
    fn take_data(&mut self, token: Token, from: SocketAddr, at: Timestamp, mut packet: Packet) -> bool {
        let (end, overhead) = (self.task.end, self.overhead);
        let Some(i) = self.find(token, from) else { return false };
        let flow = &mut self.flows[i];
        if packet.size > flow.packet_size.max(overhead + 128) {
            return false;
        }
        let at = at.max(flow.now);
        flow.last_arrival = at;
        if at > end {
            return true;
        }
        if !flow.begun && !self.begin(i, packet.number) {
            return false;
        }
        let flow = &mut self.flows[i];
        if flow.receiver.segment_gaps() >= MOST_GAPS {
            return self.give_up(i);
        }
        // First run the receiver's timer if it was due before this arrival.
        if flow.next_timeout() <= at {
            flow.fire(at, overhead, &mut self.departures);
        }
        flow.now = at;
        packet.flow = flow.served.flow;
        let mut ack = Ack::new(0, &packet, at, 0);
        let arrival = match &mut flow.half {
            Some(half) if packet.number != HANDSHAKE => {
                let (new, feedback) = half.on_data(&mut flow.receiver, at, &packet);
                if let Some(feedback) = feedback {
                    flow.send_feedback(&feedback, overhead, &mut self.departures);
                }
                Arrival { new, acknowledge: false }
            }
            _ => flow.receiver.on_data_into(at, &packet, &mut ack),
        };
        // Count at least the header's bytes, even for a shorter packet.
        packet.size = packet.size.max(flow.header);
        flow.served.received.count(&packet, arrival.new, flow.header);
        flow.series.arrived(at, &packet, arrival.new, flow.header, flow.receiver.is_reliable());
        flow.served.first = flow.served.first.min(at);
        flow.served.last = at;
        flow.served.ce_packets += u64::from(packet.ecn == Ecn::Ce);
        if arrival.acknowledge {
            flow.acknowledge(&ack, overhead, &mut self.departures);
        }
        true
    }

    fn fire_timers(&mut self, now: Timestamp) -> Timestamp {
        let (mut due, mut over) = (Timestamp::NEVER, false);
        for flow in &mut self.flows {
            if flow.next_timeout() <= now {
                flow.fire(now, self.overhead, &mut self.departures);
            }
            due = due.min(flow.next_timeout());
            over |= flow.over || now.since(flow.last_arrival) >= self.service.idle;
        }
        if over {
            self.dismiss(now);
        }
        due
    }

    /// Remove flows that ended: those with data only if the service needs it, those without always.
    #[cold]
    fn dismiss(&mut self, now: Timestamp) {
        let leave = self.service.again || self.service.once;
        let mut i = 0;
        while i < self.flows.len() {
            let flow = &self.flows[i];
            let over = flow.over || now.since(flow.last_arrival) >= self.service.idle;
            if over && (leave || !flow.begun) {
                let flow = self.flows.remove(i);
                if !flow.begun {
                    continue;
                }
                (self.observe)(Event::Ended(&flow.served));
                self.ended += 1;
                if !self.service.again {
                    self.result.take(&flow, now.min(self.task.end));
                }
            } else {
                i += 1;
            }
        }
    }

    /// Return the number of flows that count against the max.
    fn places(&self) -> usize {
        if self.service.again {
            self.flows.iter().filter(|f| f.begun).count()
        } else {
            self.begun
        }
    }

    /// Return the reason to refuse further flows, if any.
    fn full(&self) -> Option<String> {
        let (max, plural) = (self.task.flows, if self.task.flows == 1 { "" } else { "s" });
        (self.places() >= max).then(|| format!("it serves {max} flow{plural}, and has as many"))
    }

    /// Handle the first packets of flow `i`: data makes it count against the max. False if the max is reached.
    #[cold]
    fn begin(&mut self, i: usize, number: u64) -> bool {
        if let Some(refusal) = self.full() {
            let flow = &self.flows[i];
            self.answer(flow.token, flow.served.peer, refusal, Vec::new(), usize::MAX);
            return false;
        }
        if number != HANDSHAKE {
            self.flows[i].begun = true;
            self.begun += 1;
            (self.observe)(Event::Began(&self.flows[i].served));
        }
        true
    }

    /// End flow `i` because of too many gaps.
    #[cold]
    fn give_up(&mut self, i: usize) -> bool {
        let why = format!("the flow has {MOST_GAPS} gaps, and no more are kept");
        let flow = &mut self.flows[i];
        flow.over = true;
        flow.served.refused = Some(why.clone());
        let (token, peer) = (flow.token, flow.served.peer);
        self.answer(token, peer, why, Vec::new(), usize::MAX);
        false
    }

    #[cold]
    fn take_hello(
        &mut self,
        token: Token,
        from: SocketAddr,
        at: Timestamp,
        hello: &datagram::Hello,
        long: usize,
    ) -> bool {
        let (mut refusal, mut cookie) = (String::new(), Vec::new());
        if self.find(token, from).is_none() {
            if self.flows.iter().any(|f| f.token == token) {
                // The token of a flow from another address: the sender should not know it.
                return false;
            }
            if hello.version != VERSION {
                refusal = format!("it speaks version {VERSION}, not {}", hello.version);
            } else if !self.cookies.prove(&hello.cookie, from, token, at) {
                cookie = self.cookies.make(from, token, at).to_vec();
            } else if let Err(why) = self.admit(token, from, at, hello) {
                refusal = why;
            }
        }
        let taken = refusal.is_empty();
        // No amplification: no answer longer than its Hello.
        self.answer(token, from, refusal, cookie, long) && taken
    }

    /// Answer unless that takes more than `max` bytes. True if it answered.
    fn answer(&mut self, token: Token, to: SocketAddr, refusal: String, cookie: Vec<u8>, max: usize) -> bool {
        let mut answer = datagram::HelloAck {
            version: VERSION,
            refusal,
            seen_from: to.to_string(),
            clock_ns: self.task.clock.now().0,
            cookie,
        };
        while answer.refusal.len() > REFUSAL_BYTES {
            answer.refusal.pop();
        }
        let mut bytes = Vec::new();
        encode(&mut bytes, token, Kind::HelloAck(Box::new(answer)), 0);
        let fits = bytes.len() <= max;
        if fits {
            self.departures.add(Some(to), |out| out.extend_from_slice(&bytes));
        }
        fits
    }

    /// Add a flow with a verified address. Errors: a refusal.
    fn admit(&mut self, token: Token, from: SocketAddr, at: Timestamp, hello: &datagram::Hello) -> Result<(), String> {
        if let Some(refusal) = self.full() {
            return Err(refusal);
        }
        let flow = Flow {
            token,
            header: hello.header_bytes,
            packet_size: hello.packet_bytes,
            receiver: Receiver::new(receiver_config(hello)),
            half: feedback_host(hello)?,
            now: Timestamp::ZERO,
            last_arrival: at,
            begun: false,
            over: false,
            series: ReceiverSeries::new(self.task.step),
            served: Served {
                flow: hello.flow,
                peer: from,
                received: Received::default(),
                sent_packets: None,
                first: Timestamp::NEVER,
                last: Timestamp::ZERO,
                ce_packets: 0,
                refused: None,
            },
        };
        if self.flows.iter().filter(|f| !f.begun).count() >= MAX_WAITING.max(self.task.flows) {
            if let Some(oldest) = self.flows.iter().position(|f| !f.begun) {
                self.flows.remove(oldest);
            }
        }
        self.flows.push(flow);
        Ok(())
    }

    #[cold]
    fn take_close(&mut self, token: Token, from: SocketAddr, sent: u64) -> bool {
        let Some(i) = self.find(token, from) else { return false };
        let flow = &mut self.flows[i];
        flow.served.sent_packets = Some(sent);
        flow.over = true;
        true
    }

    fn look(&mut self, now: Timestamp) {
        let served: Vec<&Served> = self.flows.iter().filter(|f| f.begun).map(|f| &f.served).collect();
        (self.observe)(Event::Goes(now, &served));
        while self.report <= now {
            self.report += self.service.report;
        }
    }

    fn finish(mut self) -> ReceiverResult {
        let end = self.task.clock.now().min(self.task.end);
        for flow in self.flows.iter().filter(|f| f.begun) {
            self.result.take(flow, end);
            (self.observe)(Event::Ended(&flow.served));
        }
        self.result.overflowed = u64::from(kernel_drops(self.socket.as_fd()));
        self.result.rejected = self.rejected;
        self.result
    }
}

impl Flow {
    /// Run the due timer.
    #[cold]
    fn fire(&mut self, now: Timestamp, overhead: u32, departures: &mut TxBatch) {
        self.now = now.max(self.now);
        match &mut self.half {
            Some(half) => {
                if let Some(feedback) = half.on_timeout(&self.receiver, self.now) {
                    self.send_feedback(&feedback, overhead, departures);
                }
            }
            None => {
                if let Some(ack) = self.receiver.on_timeout(self.now) {
                    self.acknowledge(&ack, overhead, departures);
                }
            }
        }
    }

    #[inline]
    fn next_timeout(&self) -> Timestamp {
        match &self.half {
            // Send nothing to a sender that closed the flow.
            Some(_) if self.over => Timestamp::NEVER,
            Some(half) => half.next_timeout(),
            None => self.receiver.next_timeout(),
        }
    }

    #[cold]
    fn send_feedback(&self, feedback: &Feedback, overhead: u32, departures: &mut TxBatch) {
        let (token, to) = (self.token, Some(self.served.peer));
        departures.add(to, |out| encode_feedback(out, token, feedback, overhead));
    }

    #[inline]
    fn acknowledge(&mut self, ack: &Ack, overhead: u32, departures: &mut TxBatch) {
        let (token, to) = (self.token, Some(self.served.peer));
        departures.add(to, |out| encode_ack(out, token, ack, overhead));
    }
}

impl ReceiverResult {
    /// Add the counts of a flow until `end`.
    fn take(&mut self, flow: &Flow, end: Timestamp) {
        let of = &flow.served.received;
        self.received.packets += of.packets;
        self.received.bytes += of.bytes;
        self.received.unique_bytes += of.unique_bytes;
        flow.series.add_to(end, [&mut self.received_bytes, &mut self.received_unique_bytes, &mut self.read_bytes]);
        self.flows.push(flow.served.clone());
    }
}
