//! Real packets over the emulated path.
#![allow(missing_docs, clippy::print_stderr)]

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::Ordering::Relaxed;
use std::thread;
use std::time::Duration;

use crate::common::{chain, delay, link, loss, spec, Sandbox};
use ccgym_core::{Ecn, Timestamp};
use ccgym_net::shell::{PathEmulator, FIRST_PORT};
use ccgym_net::system::{capability, tun, DeviceKind, Endpoints, Placement};
use ccgym_net::Clock;
use ccgym_path::{ElementSpec, Exit, LinkEvent, Param, Pipeline, QueueSpec, ScheduleSpec};

fn fast_trace() -> ElementSpec {
    let schedule = ScheduleSpec::Trace { name: "t".into(), once: false };
    ElementSpec::Link { schedule, queue: QueueSpec::Infinite, overhead: 4, device_packets: 0 }
}

/// Make isolated endpoints over devices of a kind, if this machine has them.
fn ends(kind: DeviceKind) -> Option<Endpoints> {
    ends_at(Placement::Isolated, kind)
}

fn ends_at(placement: Placement, kind: DeviceKind) -> Option<Endpoints> {
    if capability::present().is_none() {
        eprintln!("SKIPPED: may not make namespaces");
        return None;
    }
    if kind == DeviceKind::Tun && tun::available().is_err() {
        eprintln!("SKIPPED: no TUN devices");
        return None;
    }
    Some(Endpoints::open_with(placement, kind).unwrap())
}

/// Start a path now.
fn start(ends: &Endpoints, up: &[ElementSpec], down: &[ElementSpec]) -> (Clock, PathEmulator) {
    let clock = Clock::start();
    (clock, PathEmulator::start(ends, spec(clock, up, down)).unwrap())
}

/// Send `length` bytes through TCP from inside to outside, and check that they arrive unchanged.
fn stream_arrives(ends: &Endpoints, length: u32) {
    let peer = SocketAddrV4::new(ends.outside.address, FIRST_PORT);
    let listener = ends.outside.namespace.run(|| TcpListener::bind(peer).unwrap()).unwrap();
    let content: Vec<u8> = (0..length).map(|i| (i.wrapping_mul(i) >> 9) as u8).collect();
    thread::scope(|scope| {
        let content = &content;
        scope.spawn(move || {
            ends.inside.namespace.enter().unwrap();
            TcpStream::connect(peer).unwrap().write_all(content).unwrap();
        });
        let (mut stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        assert!(received == *content, "{} of {length} bytes arrived, or others", received.len());
    });
}

fn tcp_survives_loss_and_delay(kind: DeviceKind) {
    let Some(ends) = ends(kind) else { return };
    let up = [link(80.0, 100), loss(0.005), delay(3000)];
    let (clock, emulator) = start(&ends, &up, &[delay(3000), loss(0.005)]);
    stream_arrives(&ends, 2_000_000);
    let end = clock.now();
    let report = emulator.stop(end).unwrap();
    let log = report.up.log.clone().unwrap();
    assert!(log.size.iter().all(|&size| size <= 1500), "a segment larger than the MTU");
    let bytes: u64 = log.size.iter().map(|&size| u64::from(size)).sum();
    assert!(bytes > 2_000_000, "{bytes}");
    // All packets took at least the delay; the release errors are the additional time.
    let left: Vec<usize> = (0..log.left.len()).filter(|&i| log.left[i] != u64::MAX).collect();
    assert!(left.iter().all(|&i| log.left[i] >= log.entered[i] + 3_000_000));
    assert!(log.entered.windows(2).all(|pair| pair[0] <= pair[1]));
    let (errors, lost) = (&report.up.release, report.up.counters[1].1.dropped);
    assert!(errors.count >= left.len() as u64 && errors.max > 0 && errors.quantile(0.5) <= errors.max);
    assert!(lost > 0, "nothing was lost");
    assert_eq!(report.up.counters[0].0, "link");
    assert_eq!(report.up.queue.queue_packets.len() as u64, end.0 / 100_000_000);
    assert_eq!((report.up.device_drops, report.down.device_drops), (0, 0));
    assert!(report.up.events(report.up.bottleneck).iter().any(|event| matches!(event, LinkEvent::Departure(..))));
}

#[test]
fn tcp_survives_loss_and_delay_over_tun() {
    tcp_survives_loss_and_delay(DeviceKind::Tun);
}

#[test]
fn tcp_survives_loss_and_delay_over_veth() {
    tcp_survives_loss_and_delay(DeviceKind::Veth);
}

/// Devices in a namespace with other users vanish with the path.
#[test]
fn packets_reach_an_existing_namespace() {
    for kind in [DeviceKind::Tun, DeviceKind::Veth] {
        let Some(place) = Sandbox::open() else { return };
        let Some(ends) = place.namespace.run(|| ends_at(Placement::HostOutside, kind)).unwrap() else { return };
        let (clock, emulator) = start(&ends, &[delay(1000)], &[]);
        stream_arrives(&ends, 3_000_000);
        assert!(place.devices() == [&*ends.outside.device], "{:?}", place.devices());
        let report = emulator.stop(clock.now()).unwrap();
        assert_eq!((report.up.device_drops, report.down.device_drops), (0, 0));
        drop(ends);
        place.assert_clean(&[], "a path");
    }
}

/// Every packet leaves twice, on time and unchanged, and later elements process both: a stream survives this.
#[test]
fn copies_arrive() {
    let Some(ends) = ends(DeviceKind::Tun) else { return };
    let twice = ElementSpec::Duplicate { probability: Param::Constant(1.0) };
    let up = [twice, delay(2000)];
    let (clock, emulator) = start(&ends, &up, &[]);
    let peer = SocketAddrV4::new(ends.outside.address, FIRST_PORT);
    let socket = ends.outside.namespace.run(|| UdpSocket::bind(peer).unwrap()).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    let sender = ends.inside.namespace.run(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
    // In groups of ten, since 200 datagrams at once overflow a small receive buffer.
    let mut datagram = [0; 2000];
    for ten in 0..10 {
        for i in 0..10 {
            sender.send_to(&[10 * ten + i; 300], peer).unwrap();
        }
        for i in 0..20 {
            assert_eq!((socket.recv(&mut datagram).unwrap(), datagram[299]), (300, 10 * ten + i / 2));
        }
    }
    drop(socket);
    let report = emulator.stop(clock.now()).unwrap();
    let (log, counters) = (report.up.log.clone().unwrap(), report.up.counters[0].1);
    assert_eq!((counters.arrived, counters.duplicated, counters.forwarded), (100, 100, 200));
    // One entry per packet: the time at which its first copy left.
    assert!(log.entered.len() == 100 && (0..100).all(|i| log.left[i] >= log.entered[i] + 2_000_000));

    let often = ElementSpec::Duplicate { probability: Param::Constant(0.3) };
    let up = [link(80.0, 100), often.clone(), delay(3000)];
    let emulator = PathEmulator::start(&ends, spec(Clock::start(), &up, &[delay(3000), often])).unwrap();
    stream_arrives(&ends, 2_000_000);
    let report = emulator.stop(Timestamp::ZERO).unwrap();
    assert!(report.up.counters[1].1.duplicated > 100 && report.down.counters[1].1.duplicated > 10);
}

/// Run fast enough that packets arrive and leave in large ones.
#[test]
fn a_fast_stream_arrives_intact() {
    for kind in [DeviceKind::Tun, DeviceKind::Veth] {
        let Some(ends) = ends(kind) else { continue };
        let (clock, emulator) = start(&ends, &[fast_trace(), delay(1000)], &[delay(1000)]);
        stream_arrives(&ends, 60_000_000);
        let report = emulator.stop(clock.now()).unwrap();
        assert!(report.up.log.unwrap().size.iter().all(|&size| size <= 1500));
    }
}

#[test]
fn an_overloaded_queue_drops_what_a_pipeline_with_the_same_arrivals_drops() {
    let Some(ends) = ends(DeviceKind::Tun) else { return };
    let up = [link(8.0, 10), delay(2000)];
    let clock = Clock::starting_in(Duration::from_secs(1));
    let emulator = PathEmulator::start(&ends, spec(clock, &up, &[])).unwrap();
    let backlog = emulator.backlog();
    let peer = SocketAddrV4::new(ends.outside.address, FIRST_PORT);
    let socket = ends.outside.namespace.run(|| UdpSocket::bind(peer).unwrap()).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(700))).unwrap();
    // Before the start: forwarded at once, never logged.
    let sender = ends.inside.namespace.run(|| UdpSocket::bind("0.0.0.0:0").unwrap()).unwrap();
    let mut datagram = [0; 2000];
    sender.send_to(&[1; 100], peer).unwrap();
    assert_eq!(socket.recv(&mut datagram).unwrap(), 100);
    let receiver = thread::spawn(move || {
        clock.sleep_until(Timestamp::ZERO);
        std::iter::from_fn(|| socket.recv(&mut datagram).ok()).count()
    });
    let mut largest = 0;
    let end = Timestamp::from_millis(1200);
    emulator.end_at(end);
    ends.inside
        .namespace
        .run(|| {
            for i in 0..600u64 {
                clock.sleep_until(Timestamp::from_micros(1000 * i + 5000));
                sender.send_to(&[0; 1472], peer).unwrap();
                // A packet that belongs to no flow.
                if i % 50 == 0 {
                    sender.send_to(&[0; 10], SocketAddrV4::new(*peer.ip(), 9)).unwrap();
                }
                largest = largest.max(backlog.load(Relaxed));
            }
        })
        .unwrap();
    let report = emulator.stop(end).unwrap();
    let log = report.up.log.clone().unwrap();
    assert_eq!(log.entered.len(), 600);
    assert!(log.flow.iter().all(|&flow| flow == 0));
    assert!((9..=10).contains(&largest), "a backlog of {largest}");

    // The link's events include packets of no flow.
    let mut pipeline = Pipeline::new(chain(&up, 0));
    let mut number = 0;
    for event in report.up.events(report.up.bottleneck) {
        if let LinkEvent::Arrival(at, wire, flow) = *event {
            pipeline.enter(at, flow, wire - 4, Ecn::NotEct, (flow == 0).then_some(number));
            number += usize::from(flow == 0);
        }
    }
    let mut exits = Vec::new();
    pipeline.advance(end, &mut exits);
    let mut dropped = Vec::new();
    for exit in exits {
        match exit {
            Exit::Left { at, packet: Some(i), .. } => {
                assert!(log.left[i] >= at.0, "packet {i} left at {} instead of {at:?}", log.left[i]);
            }
            Exit::Dropped { packet: Some(i), .. } => dropped.push(i),
            _ => {}
        }
    }
    let logged: Vec<usize> = (0..log.left.len()).filter(|&i| log.left[i] == u64::MAX).collect();
    assert_eq!(logged, dropped);
    // A third of the packets does not fit. While a stalled sender leaves the link idle, its capacity is lost.
    let idle: u64 = log.entered.windows(2).map(|pair| (pair[1] - pair[0]).saturating_sub(15_000_000)).sum();
    assert!((150..250 + idle as usize / 1_500_000).contains(&dropped.len()), "{}, idle {idle} ns", dropped.len());
    assert_eq!(report.up.counters[0].1.arrived, 612);
    assert!(report.up.queue.drops.last().is_some_and(|&drops| drops >= 150));

    assert_eq!(receiver.join().unwrap(), 600 - dropped.len());
}

#[test]
fn four_paths_at_once_leave_nothing_behind() {
    if ends(DeviceKind::Tun).is_none() {
        return;
    }
    // Other tests of this process open and close descriptors: compare the targets of the descriptors.
    let paths: Vec<Endpoints> = (0..4).map(|_| ends(DeviceKind::Tun).unwrap()).collect();
    let namespaces: Vec<_> = paths
        .iter()
        .map(|ends| ends.inside.namespace.run(|| fs::read_link("/proc/thread-self/ns/net").unwrap()).unwrap())
        .collect();
    let held = || -> usize {
        let mut all: Vec<_> = fs::read_dir("/proc/self/fd").unwrap().flatten().map(|entry| entry.path()).collect();
        all.extend(fs::read_dir("/proc/self/task").unwrap().flatten().map(|task| task.path().join("ns/net")));
        all.iter().filter_map(|path| fs::read_link(path).ok()).filter(|link| namespaces.contains(link)).count()
    };
    assert!(held() >= 4);
    thread::scope(|scope| {
        for ends in &paths {
            scope.spawn(move || {
                let (clock, emulator) = start(ends, &[link(50.0, 50), delay(1000)], &[delay(1000)]);
                stream_arrives(ends, 500_000);
                assert!(emulator.is_running());
                let report = emulator.stop(clock.now()).unwrap();
                assert!(report.up.release.count > 300);
            });
        }
    });
    drop(paths);
    assert!((0..50).any(|_| {
        thread::sleep(Duration::from_millis(10));
        held() == 0
    }));
}

#[test]
fn a_path_ends_when_dropped_and_on_request() {
    let Some(ends) = ends(DeviceKind::Tun) else { return };
    let clock = Clock::start();
    drop(PathEmulator::start(&ends, spec(clock, &[], &[])).unwrap());
    let emulator = PathEmulator::start(&ends, spec(clock, &[], &[])).unwrap();
    let end = Timestamp(clock.now().0 + 200_000_000);
    let report = emulator.stop(end).unwrap();
    assert!(clock.now() >= end, "it did not wait");
    assert_eq!((report.up.release.count, report.up.bottleneck), (0, None));
}
