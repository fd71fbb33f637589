//! What our UDP endpoints move over loopback: `cargo run --release --example udp_throughput -- [SCHEME] [SECONDS]`.
//!
//! One JSON line: wire rate at the receiver, processor time of both threads, packets and acknowledgements per second.
//! Two free cores are needed for a number that means something.
#![allow(clippy::print_stdout)]

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use ccgym_core::{InitContext, Rng, TimeSpan, Timestamp};
use ccgym_net::udp::{run_receiver, Connection, Hello, ReceiverTask, SenderTask};
use ccgym_net::Clock;
use ccgym_sim::FlowSpec;
use nix::time::{clock_gettime, ClockId};

fn processor_seconds() -> f64 {
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(0.0, |t| t.tv_sec() as f64 + t.tv_nsec() as f64 * 1e-9)
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let scheme = words.first().map_or("cubic", String::as_str);
    let seconds: f64 = words.get(1).map_or(3.0, |s| s.parse().expect("seconds"));
    let extra = words.get(2).map_or("", String::as_str);
    let (name, params) = scheme.split_once(':').unwrap_or((scheme, ""));
    let params = if params.is_empty() { "{}" } else { params };
    let spec: FlowSpec =
        serde_json::from_str(&format!("{{\"scheme\": \"{name}\", \"params\": {params}{extra}}}")).expect("a flow");

    let listener = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let peer = listener.local_addr().expect("an address");
    let clock = Clock::start();
    let halt = Arc::new(AtomicBool::new(false));
    let task = ReceiverTask { clock, step: TimeSpan::ZERO, end: Timestamp::NEVER, halt: halt.clone(), flows: 1 };
    let receiver = std::thread::spawn(move || (run_receiver(listener, task), processor_seconds()));

    let cca = ccgym_schemes::registry::create(&spec.scheme, &spec.params).expect("a scheme");
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
    let connection =
        Connection::open(socket, peer, &Hello::of(&spec).expect("a flow"), Duration::from_secs(2)).expect("an answer");
    let size = u64::from(spec.mss + spec.header);
    let context = InitContext {
        now: Timestamp::ZERO,
        mss: size,
        initial_window: 10 * size,
        flow: 0,
        rng: Rng::stream(1, "scheme", 0),
        path: None,
    };
    let start = clock.now();
    let task = SenderTask {
        flow: 0,
        spec,
        cca,
        context,
        clock,
        start,
        stop: start + TimeSpan::from_secs_f64(seconds),
        step: TimeSpan::ZERO,
        seed: 1,
        steering: None,
        halt: halt.clone(),
    };
    let before = processor_seconds();
    let sent = connection.run(task).expect("a flow");
    let sender_busy = processor_seconds() - before;
    halt.store(true, Ordering::Relaxed);
    let (received, receiver_busy) = receiver.join().expect("a receiver");
    let received = received.expect("a receiver");
    println!(
        "{{\"scheme\": \"{scheme}\", \"mbps\": {:.1}, \"packets_per_s\": {:.0}, \"lost\": {}, \"spurious\": {}, \"overflowed\": {}, \
         \"sender_core\": {:.2}, \"receiver_core\": {:.2}, \"min_rtt_us\": {:.1}}}",
        received.received.bytes as f64 * 8e-6 / seconds,
        received.received.packets as f64 / seconds,
        sent.stats.lost_packets,
        sent.stats.spurious_losses,
        received.overflowed,
        sender_busy / seconds,
        receiver_busy / seconds,
        sent.min_rtt.0 as f64 / 1e3,
    );
}
