//! Sending end of a flow: connects when the flow starts, writes as its application does, and samples the connection.

use std::net::{Ipv4Addr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ccgym_core::{SenderStats, TimeSpan, Timestamp};
use ccgym_net::application::Application;
use ccgym_net::error::{Context, Error, Result};
use ccgym_net::quic::QuicSenderJob;
use ccgym_net::sample_times::SampleTimes;
use ccgym_net::udp::{overhead, SenderResult};
use ccgym_run::recorder::FlowSeries;
use quinn_proto::{Connection, ConnectionStats, Dir, EndpointConfig, Event, StreamEvent, StreamId};

use crate::identity::Identity;
use crate::library::{find, Watch};
use crate::peer::{transport, Machine, Peer};

/// Max time for the handshake.
const CONNECT_TIMEOUT: TimeSpan = TimeSpan::from_millis(10_000);
/// Interval at which `halt` is checked.
const HALT_CHECK: TimeSpan = TimeSpan::from_millis(50);
/// Max bytes that wait in the connection beyond its window: an application that stops has not written seconds ahead.
const MAX_UNSENT: u64 = 128 << 10;
/// Max bytes passed to the connection at a time.
const CHUNK: usize = 64 << 10;
static ZEROS: [u8; CHUNK] = [0; CHUNK];

/// Run a flow; call `ready` before it connects. It ends at its stop, or when `halt` is set.
///
/// A flow without a connection until its stop has sent nothing, which is not an error.
///
/// # Errors
/// The library has no such congestion controller; no connection within ten seconds; a connection that fails.
pub fn run(job: &QuicSenderJob, halt: &AtomicBool, ready: impl FnOnce()) -> Result<SenderResult> {
    let ends = &job.ends;
    let watch = Watch::default();
    let mut transport = transport(ends.packet_bytes)?;
    transport.congestion_controller_factory(watch.over(find(&job.algorithm)?));
    let identity = Identity::new(&ends.secret)?;
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).context(|| format!("{}: a socket", name(job)))?;
    ready();
    let mut flow = Flow::new(job, watch, halt);
    let mut over = false;
    while !(over || ends.clock.has_started() && ends.clock.now() >= job.start) {
        over = flow.is_over();
        std::thread::sleep(flow.until(job.start));
    }
    if !over {
        let settings = EndpointConfig::default();
        let mut peer =
            Peer::new(socket, Machine::connect(settings, ends.receiver.into(), &identity, transport, Instant::now())?)?;
        flow.run(&mut peer)?;
    }
    Ok(flow.finish())
}

fn name(job: &QuicSenderJob) -> String {
    format!("flow {} (quic:{})", job.ends.flow, job.algorithm)
}

/// Running flow.
struct Flow<'a> {
    job: &'a QuicSenderJob,
    halt: &'a AtomicBool,
    watch: Watch,
    source: Application,
    stream: Option<StreamId>,
    closed: bool,
    finished: Timestamp,
    times: SampleTimes,
    series: FlowSeries,
    last: ConnectionStats,
}

impl<'a> Flow<'a> {
    fn new(job: &'a QuicSenderJob, watch: Watch, halt: &'a AtomicBool) -> Self {
        Self {
            job,
            halt,
            watch,
            source: Application::new(&job.source, job.mss, job.start, job.seed, job.ends.flow),
            stream: None,
            closed: false,
            finished: Timestamp::NEVER,
            times: SampleTimes::new(job.ends.step, job.start),
            series: FlowSeries::default(),
            last: ConnectionStats::default(),
        }
    }

    fn now(&self) -> Timestamp {
        self.job.ends.clock.now()
    }

    fn is_over(&self) -> bool {
        self.halt.load(Ordering::Relaxed) || self.now() >= self.job.stop
    }

    /// Return the time to wait for something to do at `at`, bounded so that `halt` is checked.
    fn until(&self, at: Timestamp) -> Duration {
        // The clock reads zero until it starts.
        let left = self.job.ends.clock.until(at).unwrap_or(HALT_CHECK);
        Duration::from_nanos(left.min(HALT_CHECK).0)
    }

    fn run(&mut self, peer: &mut Peer) -> Result<()> {
        let deadline = self.job.start.saturating_add(CONNECT_TIMEOUT);
        while !self.is_over() {
            peer.receive()?;
            while let Some(event) = peer.event() {
                self.on_event(peer, event)?;
            }
            let now = self.now();
            if self.stream.is_none() && now >= deadline {
                return Err(self.failed(format!("no connection within {} s", CONNECT_TIMEOUT.as_secs_f64())));
            }
            self.source.advance(now);
            if let Some(connection) = peer.connection() {
                self.write(connection);
                self.last = connection.stats();
            }
            peer.transmit()?;
            self.sample(now);
            let next = self.job.stop.min(self.times.next()).min(self.source.next_event());
            peer.wait(self.until(next))?;
        }
        if let Some(connection) = peer.connection() {
            self.last = connection.stats();
        }
        peer.close()
    }

    fn on_event(&mut self, peer: &mut Peer, event: Event) -> Result<()> {
        match event {
            Event::Connected => self.stream = peer.connection().and_then(|one| one.streams().open(Dir::Uni)),
            Event::Stream(StreamEvent::Finished { .. }) => self.finished = self.now(),
            Event::ConnectionLost { reason } => return Err(self.failed(reason)),
            _ => {}
        }
        Ok(())
    }

    fn failed(&self, found: impl std::fmt::Display) -> Error {
        let at = self.now().as_secs_f64();
        Error::of("run-failed", format!("{} to {} at {at:.3} s", name(self.job), self.job.ends.receiver), found)
            .expected("a receiver of this run that the path leads to")
            .hint("does the path lose everything?")
    }

    /// Pass on the bytes that the application wants to send, while there is room.
    fn write(&mut self, connection: &mut Connection) {
        let Some(stream) = self.stream.filter(|_| !self.closed) else { return };
        connection.set_send_window(connection.stats().path.cwnd.saturating_add(MAX_UNSENT));
        while self.source.wants() > 0 {
            let bytes = self.source.wants().min(CHUNK as u64) as usize;
            match connection.send_stream(stream).write_chunks(&mut [Bytes::from_static(&ZEROS[..bytes])]) {
                Ok(written) => self.source.wrote(written.bytes as u64),
                // The buffer is full: an ACK makes room.
                Err(_) => return,
            }
        }
        if self.source.is_done() {
            self.closed = connection.send_stream(stream).finish().is_ok();
        }
    }

    fn header(&self) -> u64 {
        u64::from(overhead(&(*self.job.ends.receiver.ip()).into()))
    }

    /// Return the wire bytes of these bytes of full datagrams.
    fn wire(&self, datagrams: u64) -> u64 {
        let packet = u64::from(self.job.ends.packet_bytes);
        (u128::from(datagrams) * u128::from(packet) / u128::from(packet - self.header())) as u64
    }

    fn sent_bytes(&self) -> u64 {
        self.last.udp_tx.bytes + self.header() * self.last.udp_tx.datagrams
    }

    fn acked_bytes(&self) -> u64 {
        let counts = self.watch.counts();
        counts.acked_bytes + self.header() * counts.acked_packets
    }

    /// Take the samples that are due.
    fn sample(&mut self, now: Timestamp) {
        while self.times.take(now) {
            let (path, counts) = (self.last.path, self.watch.counts());
            let srtt = if counts.acked_packets == 0 { 0 } else { path.rtt.as_nanos() as u64 };
            let (cwnd, in_flight) = (self.wire(path.cwnd), self.wire(counts.in_flight));
            let (sent, acked) = (self.sent_bytes(), self.acked_bytes());
            let series = &mut self.series;
            series.cwnd_bytes.push(cwnd);
            series.in_flight_bytes.push(in_flight);
            series.srtt_ns.push(srtt);
            // The library's pacer allows 5/4 of a window per RTT (RFC 9002 §7.7).
            let pacing = if srtt == 0 { 0 } else { u128::from(cwnd) * 10 * 1_000_000_000 / u128::from(srtt) };
            series.pacing_bps.push(pacing as u64);
            series.sent_bytes.push(sent);
            series.sent_packets.push(self.last.udp_tx.datagrams);
            series.acked_bytes.push(acked);
            series.lost_packets.push(path.lost_packets);
        }
    }

    fn finish(mut self) -> SenderResult {
        self.sample(self.now().min(self.job.stop));
        let (counts, path) = (self.watch.counts(), self.last.path);
        let stats = SenderStats {
            sent_packets: self.last.udp_tx.datagrams,
            sent_bytes: self.sent_bytes(),
            acked_packets: counts.acked_packets,
            acked_bytes: self.acked_bytes(),
            lost_packets: path.lost_packets,
            // The library reports no spurious losses, and retransmits the data of each lost packet.
            spurious_losses: 0,
            retransmissions: path.lost_packets,
            rtos: counts.persistent,
            probes: 0,
            recoveries: counts.recoveries,
            recovery_time: TimeSpan(counts.recovery_time.as_nanos() as u64),
        };
        SenderResult {
            name: format!("quic:{}", self.job.algorithm),
            stats,
            min_rtt: if counts.acked_packets == 0 { TimeSpan::MAX } else { TimeSpan(path.min_rtt.as_nanos() as u64) },
            finished: self.finished,
            series: self.series,
            first_sample: self.times.first(),
            ..SenderResult::default()
        }
    }
}
