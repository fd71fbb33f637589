//! How fast and how punctual the emulated path is: JSON lines `{name, value, unit}`.
//!
//! `shell_throughput [SECONDS [RUNS [NAME]]]`: best of RUNS for throughput, the median for release errors. Needs root, or a
//! user namespace.

use std::io::{self, Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use ccgym_core::{Rate, TimeSpan, Timestamp};
use ccgym_link::{Chain, DeliveryTrace, ElementSpec, LimitSpec, Param, QueueSpec, ScheduleSpec};
use ccgym_net::shell::{emulator_limited, Ferry, FerryReport, FerrySpec, FIRST_PORT, USUAL_PACKET_MEMORY};
use ccgym_net::system::{become_capable, Ends, Placement};
use ccgym_net::Clock;

type Outcome<T> = Result<T, Box<dyn std::error::Error + Send + Sync>>;

/// A trace with so many opportunities in each millisecond.
fn per_ms(packets: usize) -> Arc<DeliveryTrace> {
    Arc::new(DeliveryTrace::from_ms("constant", vec![1; packets]).unwrap_or_else(|error| unreachable!("{error}")))
}

fn link_by_trace(queue: QueueSpec) -> ElementSpec {
    let schedule = ScheduleSpec::Trace { name: "constant".into(), once: false };
    ElementSpec::Link { schedule, queue, overhead: 4, device_packets: 0 }
}

fn delay(ms: u64) -> ElementSpec {
    ElementSpec::Delay { delay: Param::Constant(TimeSpan::from_millis(ms)), tick: TimeSpan::from_millis(1) }
}

fn exact_delay(ms: u64) -> ElementSpec {
    ElementSpec::Delay { delay: Param::Constant(TimeSpan::from_millis(ms)), tick: TimeSpan::ZERO }
}

fn link_at_rate(mbps: f64) -> ElementSpec {
    let limit = LimitSpec { packets: Some((mbps * 2.0) as u64), bytes: None };
    let schedule = ScheduleSpec::Rate { rate: Param::Constant(Rate::from_mbps(mbps)) };
    ElementSpec::Link { schedule, queue: QueueSpec::Droptail { limit }, overhead: 0, device_packets: 0 }
}

const LOSS: ElementSpec = ElementSpec::Loss { probability: Param::Constant(0.0) };

/// Who sends over the path.
#[derive(Clone, Copy)]
enum Load {
    /// One flow of the kernel's TCP.
    Tcp,
    /// Datagrams at a rate.
    Udp(Rate),
}

struct Scenario {
    up: Vec<ElementSpec>,
    down: Vec<ElementSpec>,
    /// Opportunities in each millisecond of the trace.
    packets_per_ms: usize,
    load: Load,
    record: bool,
}

/// Megabits per second that arrived, and the path's report.
fn run(scenario: &Scenario, seconds: f64) -> Outcome<(f64, FerryReport)> {
    let trace = per_ms(scenario.packets_per_ms);
    let traces = |_: &str| Some(Arc::clone(&trace));
    let chain =
        |specs: &[ElementSpec], first| Chain::new(specs, 1, first, &traces).map_err(|(i, e)| format!("{i}: {e}"));
    let ends = Ends::open(Placement::Isolated)?;
    let clock = Clock::starting_in(Duration::from_millis(50));
    let (up, down) = (chain(&scenario.up, 0)?, chain(&scenario.down, 100)?);
    let (packets, link_events, step) = (scenario.record, scenario.record, TimeSpan::from_millis(50));
    let ferry = Ferry::start(
        &ends,
        FerrySpec { up, down, clock, flows: 1, packets, link_events, step, packet_memory: USUAL_PACKET_MEMORY },
    )?;
    let peer = SocketAddrV4::new(ends.outside.address, FIRST_PORT);
    let halt = AtomicBool::new(false);
    let end = Timestamp::ZERO + TimeSpan::from_secs_f64(seconds);
    let load = scenario.load;
    let rate = thread::scope(|scope| -> Outcome<f64> {
        // Bound before anybody sends.
        let (listener, socket) = ends.outside.namespace.run(|| (TcpListener::bind(peer), UdpSocket::bind(peer)))?;
        let (listener, socket) = (listener?, socket?);
        let (ends, halt) = (&ends, &halt);
        let receiver = scope.spawn(move || -> io::Result<f64> {
            match load {
                Load::Tcp => receive_stream(&listener, clock, end),
                Load::Udp(_) => receive_datagrams(&socket, clock, end),
            }
        });
        let sender = scope.spawn(move || -> Outcome<()> {
            ends.inside.namespace.enter()?;
            match load {
                Load::Tcp => send_stream(peer, clock, halt),
                Load::Udp(rate) => send_datagrams(peer, rate, clock, end),
            }
        });
        let rate = receiver.join().map_err(|_| "the receiver panicked")?;
        halt.store(true, Relaxed);
        sender.join().map_err(|_| "the sender panicked")??;
        Ok(rate?)
    })?;
    Ok((rate, ferry.stop(clock.now())?))
}

fn send_stream(peer: SocketAddrV4, clock: Clock, halt: &AtomicBool) -> Outcome<()> {
    // A handshake over the path as it is before the start would tell the flow of a round trip that it never has again.
    clock.sleep_until(Timestamp::from_millis(1));
    let mut stream = TcpStream::connect(peer)?;
    stream.set_write_timeout(Some(Duration::from_millis(100)))?;
    let block = vec![7u8; 256 * 1024];
    while !halt.load(Relaxed) {
        match stream.write(&block) {
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => break,
            _ => {}
        }
    }
    Ok(())
}

/// Megabits per second that arrived after the first quarter of the time.
fn receive_stream(listener: &TcpListener, clock: Clock, end: Timestamp) -> io::Result<f64> {
    let (mut stream, _) = listener.accept()?;
    stream.set_read_timeout(Some(Duration::from_millis(100)))?;
    let mut block = vec![0u8; 256 * 1024];
    let (mut bytes, mut since) = (0usize, clock.now());
    let warm = Timestamp(end.0 / 4);
    while clock.now() < end {
        match stream.read(&mut block) {
            Ok(0) => break,
            Ok(read) => bytes += read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
        if since < warm && clock.now() >= warm {
            (bytes, since) = (0, clock.now());
        }
    }
    Ok(bytes as f64 * 8.0 / clock.now().since(since).as_secs_f64() / 1e6)
}

fn send_datagrams(peer: SocketAddrV4, rate: Rate, clock: Clock, end: Timestamp) -> Outcome<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    let datagram = [7u8; 1472];
    let gap = rate.time_for(1500);
    let mut next = Timestamp::ZERO;
    while next < end {
        clock.sleep_until(next);
        socket.send_to(&datagram, peer)?;
        next += gap;
    }
    Ok(())
}

fn receive_datagrams(socket: &UdpSocket, clock: Clock, end: Timestamp) -> io::Result<f64> {
    socket.set_read_timeout(Some(Duration::from_millis(100)))?;
    let mut datagram = [0; 2048];
    let mut bytes = 0;
    while clock.now() < end {
        match socket.recv(&mut datagram) {
            Ok(read) => bytes += read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
    Ok(bytes as f64 * 8.0 / clock.now().as_secs_f64() / 1e6)
}

fn main() -> Outcome<()> {
    let mut words = std::env::args().skip(1);
    let seconds: f64 = words.next().map_or(Ok(2.0), |word| word.parse())?;
    let runs: usize = words.next().map_or(Ok(3), |word| word.parse())?;
    let only = words.next().unwrap_or_default();
    become_capable()?;
    let mut out = io::stdout().lock();
    let infinite = || link_by_trace(QueueSpec::Infinite);
    let chain = |ms| vec![infinite(), LOSS, delay(ms)];
    let back = |ms| vec![delay(ms), LOSS, infinite()];
    let tcp = |up, down, record| Scenario { up, down, packets_per_ms: 833, load: Load::Tcp, record };
    for (name, scenario) in [
        ("shell.tcp.delay_loss_link", tcp(chain(1), back(1), false)),
        ("shell.tcp.delay_loss_link.recorded", tcp(chain(1), back(1), true)),
        ("shell.tcp.link", tcp(vec![infinite()], vec![infinite()], false)),
    ] {
        if !name.contains(&only) {
            continue;
        }
        let mut best = 0.0f64;
        for _ in 0..runs {
            let (rate, report) = run(&scenario, seconds)?;
            if let Some(reason) = emulator_limited(&report) {
                writeln!(io::stderr(), "{name}: {rate:.0} Mbit/s, {reason}")?;
            }
            best = best.max(rate);
        }
        writeln!(out, r#"{{"name": "{name}", "value": {best:.0}, "unit": "Mbit/s"}}"#)?;
    }
    let limit = LimitSpec { packets: Some(250), bytes: None };
    let by_trace = |packets_per_ms, ms, load| Scenario {
        up: vec![link_by_trace(QueueSpec::Droptail { limit }), delay(ms)],
        down: vec![delay(ms), infinite()],
        packets_per_ms,
        load,
        record: true,
    };
    let by_rate = |mbps| Scenario {
        up: vec![link_at_rate(mbps), exact_delay(5)],
        down: vec![exact_delay(5)],
        packets_per_ms: 1,
        load: Load::Tcp,
        record: true,
    };
    for (name, scenario) in [
        ("tcp.100mbps", by_trace(8, 20, Load::Tcp)),
        ("udp.100mbps", by_trace(8, 20, Load::Udp(Rate::from_mbps(95.0)))),
        ("tcp.700mbps", by_trace(58, 2, Load::Tcp)),
        ("tcp.rate_100mbps", by_rate(100.0)),
        ("tcp.rate_1gbps", by_rate(1000.0)),
        ("tcp.rate_3gbps", by_rate(3000.0)),
    ] {
        if !name.contains(&only) {
            continue;
        }
        let mut reports = Vec::new();
        for _ in 0..runs {
            reports.push(run(&scenario, seconds)?);
        }
        reports.sort_by_key(|(_, report)| report.up.release.quantile(0.99));
        let (rate, report) = reports.swap_remove(reports.len() / 2);
        let errors = &report.up.release;
        for (what, value, unit) in [
            ("rate", rate, "Mbit/s"),
            ("release_error_p50", errors.quantile(0.5) as f64 / 1e6, "ms"),
            ("release_error_p99", errors.quantile(0.99) as f64 / 1e6, "ms"),
            ("release_error_max", errors.max() as f64 / 1e6, "ms"),
        ] {
            writeln!(out, r#"{{"name": "shell.{name}.{what}", "value": {value:.3}, "unit": "{unit}"}}"#)?;
        }
    }
    Ok(())
}
