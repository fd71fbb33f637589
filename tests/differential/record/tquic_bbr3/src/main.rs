//! Drives tquic's BBRv3 controller, in virtual time, over one link with a drop-tail queue, and prints a line each 10 ms:
//! milliseconds, window, pacing rate (bit/s), bytes in flight, bytes acknowledged.
//!
//! The sender is the smallest one that the controller can drive: packets of 1500 bytes, always data, one acknowledgement
//! per packet, a packet lost when the third one after it has been acknowledged.

#![allow(dead_code, unused_variables, unused_imports)]

use std::collections::{BTreeMap, VecDeque};
use std::time::{Duration, Instant};

/// What tquic's files take from their crate.
const DEFAULT_SEND_UDP_PAYLOAD_SIZE: usize = 1500;
const INITIAL_RTT: Duration = Duration::from_millis(333);
const TIMER_GRANULARITY: Duration = Duration::from_millis(1);

pub struct RecoveryConfig {
    pub max_datagram_size: usize,
    pub min_congestion_window: u64,
    pub initial_congestion_window: u64,
    pub initial_rtt: Duration,
}

mod connection {
    include!(concat!(env!("OUT_DIR"), "/rtt.rs"));

    pub mod space {
        use std::time::{Duration, Instant};

        #[derive(Clone, Debug, Default)]
        pub struct RateSamplePacketState {
            pub delivered: u64,
            pub delivered_time: Option<Instant>,
            pub first_sent_time: Option<Instant>,
            pub is_app_limited: bool,
            pub tx_in_flight: u64,
            pub lost: u64,
        }

        #[derive(Clone, Debug)]
        pub struct SentPacket {
            pub pkt_num: u64,
            pub time_sent: Instant,
            pub time_acked: Option<Instant>,
            pub time_lost: Option<Instant>,
            pub sent_size: usize,
            pub rate_sample_state: RateSamplePacketState,
        }

        pub struct AckedPacket {
            pub pkt_num: u64,
            pub time_sent: Instant,
            pub rtt: Duration,
        }
    }
}

mod congestion_control {
    use crate::connection::{rtt::RttEstimator, space::SentPacket};
    use std::time::Instant;

    include!(concat!(env!("OUT_DIR"), "/controllers.rs"));

    #[derive(Debug, Default, Clone)]
    pub struct CongestionStats {
        pub bytes_in_flight: u64,
        pub bytes_sent_in_slow_start: u64,
        pub bytes_acked_in_slow_start: u64,
        pub bytes_lost_in_slow_start: u64,
        pub bytes_sent_in_total: u64,
        pub bytes_acked_in_total: u64,
        pub bytes_lost_in_total: u64,
    }

    pub trait CongestionController {
        fn name(&self) -> &str;
        fn on_sent(&mut self, now: Instant, packet: &mut SentPacket, in_flight: u64);
        fn begin_ack(&mut self, now: Instant, in_flight: u64);
        fn on_ack(
            &mut self,
            packet: &mut SentPacket,
            now: Instant,
            app_limited: bool,
            rtt: &RttEstimator,
            in_flight: u64,
        );
        fn end_ack(&mut self);
        fn on_congestion_event(
            &mut self,
            now: Instant,
            packet: &SentPacket,
            persistent: bool,
            lost: u64,
            in_flight: u64,
        );
        fn in_slow_start(&self) -> bool {
            true
        }
        fn in_recovery(&self, _sent: Instant) -> bool {
            false
        }
        fn congestion_window(&self) -> u64;
        fn pacing_rate(&self) -> Option<u64> {
            None
        }
        fn initial_window(&self) -> u64;
        fn minimal_window(&self) -> u64;
        fn stats(&self) -> &CongestionStats;
    }
}

use congestion_control::bbr3::{Bbr3, Bbr3Config};
use congestion_control::CongestionController;
use connection::rtt::RttEstimator;
use connection::space::{RateSamplePacketState, SentPacket};

const PACKET: u64 = 1500;
const ONE_WAY: u64 = 20_000_000;
const SECONDS: u64 = 20;

fn main() {
    let argument = |n: usize| std::env::args().nth(n).and_then(|a| a.parse::<f64>().ok());
    let (Some(mbps), Some(buffer)) = (argument(1), argument(2)) else {
        eprintln!("usage: record-tquic-bbr3 MBPS BUFFER_PACKETS [MILLISECONDS_ADDED_AFTER_2_S]");
        std::process::exit(2);
    };
    let added = (argument(3).unwrap_or(0.0) * 1e6) as u64;
    let service = (PACKET as f64 * 8e3 / mbps) as u64;
    let start = Instant::now();
    let at = |nanos: u64| start + Duration::from_nanos(nanos);
    let config = RecoveryConfig {
        max_datagram_size: PACKET as usize,
        min_congestion_window: 4,
        initial_congestion_window: 10,
        // What a handshake measures.
        initial_rtt: Duration::from_nanos(2 * ONE_WAY),
    };
    let mut controller = Bbr3::new(Bbr3Config::from(&config));
    let mut rtt = RttEstimator::new(INITIAL_RTT);

    let (mut now, mut next_send, mut number, mut in_flight, mut acked) = (0u64, 0u64, 0u64, 0u64, 0u64);
    let mut link_free = 0u64;
    let mut flying: BTreeMap<u64, SentPacket> = BTreeMap::new();
    let mut home: VecDeque<(u64, u64)> = VecDeque::new();
    let mut row = 0u64;
    println!("ms,cwnd,pacing_bps,in_flight,acked");
    while now < SECONDS * 1_000_000_000 {
        // The next thing to happen: an acknowledgement, or a packet that window and pacing allow.
        let can_send = in_flight + PACKET <= controller.congestion_window();
        let send_at = if can_send { next_send.max(now) } else { u64::MAX };
        let ack_at = home.front().map_or(u64::MAX, |&(t, _)| t);
        let next = send_at.min(ack_at);
        assert!(next != u64::MAX, "nothing will ever happen again");
        while row * 10_000_000 <= next {
            let pacing = controller.pacing_rate().unwrap_or(0) * 8;
            println!("{},{},{pacing},{in_flight},{acked}", row * 10, controller.congestion_window());
            row += 1;
        }
        now = next;
        if ack_at <= send_at {
            let Some((_, acked_number)) = home.pop_front() else { continue };
            controller.begin_ack(at(now), in_flight);
            let lost: Vec<u64> = flying.range(..acked_number.saturating_sub(2)).map(|(&n, _)| n).collect();
            for n in lost {
                if let Some(mut packet) = flying.remove(&n) {
                    in_flight -= PACKET;
                    packet.time_lost = Some(at(now));
                    controller.on_congestion_event(at(now), &packet, false, PACKET, in_flight);
                }
            }
            if let Some(mut packet) = flying.remove(&acked_number) {
                in_flight -= PACKET;
                acked += PACKET;
                packet.time_acked = Some(at(now));
                rtt.update(Duration::ZERO, at(now) - packet.time_sent);
                controller.on_ack(&mut packet, at(now), false, &rtt, in_flight);
            }
            controller.end_ack();
        } else {
            let mut packet = SentPacket {
                pkt_num: number,
                time_sent: at(now),
                time_acked: None,
                time_lost: None,
                sent_size: PACKET as usize,
                rate_sample_state: RateSamplePacketState::default(),
            };
            controller.on_sent(at(now), &mut packet, in_flight);
            in_flight += PACKET;
            flying.insert(number, packet);
            // Drop-tail: the packet in transmission is not waiting.
            if link_free.saturating_sub(now) <= (buffer as u64) * service {
                link_free = link_free.max(now) + service;
                let longer = if now >= 2_000_000_000 { added } else { 0 };
                home.push_back((link_free + 2 * ONE_WAY + longer, number));
            }
            number += 1;
            let rate = controller.pacing_rate().unwrap_or(0).max(1);
            next_send = next_send.max(now) + PACKET * 1_000_000_000 / rate;
        }
    }
}
