//! RemyCC, the Tao senders of Sivaraman, Winstein, Thaker and Balakrishnan (SIGCOMM 2014), as genericCC runs them: for
//! each memory of the recent acknowledgements a table, found by an offline search, has the change of the window and the
//! time between packets. Written from a description of genericCC's behavior; neither its code nor its table is here.
//!
//! The table built in is our own (`ours.dna`, listed in `ours.txt`): a search over this simulator made it.

mod memory;
mod table;

use std::sync::Arc;

use ccgym_core::congestion_control::{Capabilities, Observables, SentEvent};
use ccgym_core::{AckEvent, CongestionControl, Control, Error, InitContext, Rate, TimeSpan, TimeoutEvent, Timestamp};

use crate::registry::{parameters, Parameters, Role, SchemeEntry, SchemeInfo, Transport};
use crate::send_gate::SendGate;
use memory::{Axis, Memory};
use table::Table;

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "taova",
        label: "TaoVA-100x (own table)",
        reference: "Sivaraman et al., SIGCOMM 2014; Winstein and Balakrishnan, SIGCOMM 2013; genericCC d0153f8",
        summary: "Sets window and packet spacing from a table that an automatic search made (Remy).",
        parameters: parameters! {
            /// File of a rule table in Remy's dna format; none: the built-in table, which is ours.
            table: file();
            /// Restart after this time without an ACK.
            silence: number(2.0, (0.1, 60.0), "s");
        },
        role: Role::OnRequest,
        implementation: "genericCC, GPL-2.0",
        // Datagrams of 1440 bytes with a header of 32 of its own (`packet_size` and `TCPHeader` in ctcp.hh).
        transport: Transport { mss: 1408, header: 60, initial_window: 2, ..Transport::UDP },
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| Ok(Box::new(TaoVa::new(p)?)),
};

/// Our own table.
const OURS: &[u8] = include_bytes!("ours.dna");
/// Packets that may leave before the first acknowledgement, unpaced (`remycc.hh`).
const FIRST_WINDOW: u64 = 2;
/// Max rate, bit/s: a smaller gap counts as none.
const MAX_RATE: f64 = 1e15;

#[derive(Clone, Debug)]
pub struct TaoVa {
    table: Arc<Table>,
    silence: TimeSpan,
    mss: u64,
    memory: Memory,
    gate: SendGate,
    /// Window of the rules, packets.
    window: u64,
    /// Min time between departures, milliseconds; zero before the first acknowledgement.
    intersend_ms: f64,
    /// Number of the latest rule.
    rule: usize,
    /// True after the first acknowledgement since the flow started.
    started: bool,
    last_ack: Timestamp,
}

impl TaoVa {
    fn new(p: &Parameters) -> Result<Self, Error> {
        let given = p.content("table");
        let table = Table::decode(if given.is_empty() { OURS } else { &given })
            .map_err(|error| p.refuse_file("table", error, "a rule table of Remy (dna)"))?;
        Ok(Self {
            table: Arc::new(table),
            silence: TimeSpan::from_secs_f64(p.number("silence")),
            mss: 1,
            memory: Memory::default(),
            gate: SendGate::default(),
            window: 0,
            intersend_ms: 0.0,
            rule: 0,
            started: false,
            last_ack: Timestamp::ZERO,
        })
    }

    /// Restart: an empty memory, a window that the rules compute from 0, and all packets sent count as delivered.
    fn restart(&mut self, now: Timestamp) {
        self.memory = Memory::default();
        self.gate.open();
        self.window = 0;
        self.intersend_ms = 0.0;
        self.started = false;
        self.last_ack = now;
    }
}

impl CongestionControl for TaoVa {
    fn capabilities(&self) -> Capabilities {
        Capabilities { packet_events: true, timers: true, prr: false, ..Capabilities::default() }
    }

    fn init(&mut self, context: InitContext) {
        self.mss = context.mss.max(1);
        self.gate = SendGate::new(self.mss);
        self.restart(context.now);
    }

    fn on_packet_sent(&mut self, event: &SentEvent) {
        self.gate.on_sent(event.number, event.in_flight);
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.gate.on_ack(event);
        for packet in event.acked {
            // For a lost acknowledgement only the arrival of its packet is known.
            let Some(received) = packet.received else { continue };
            self.memory.on_receipt(event.now, packet, received);
            let (number, rule) = self.table.look_up(&self.memory.point());
            self.window = rule.window(self.window);
            self.intersend_ms = rule.intersend_ms;
            self.rule = number;
            self.started = true;
        }
        if event.acked_packets > 0 {
            self.last_ack = event.now;
        }
    }

    fn on_timeout(&mut self, _event: &TimeoutEvent<'_>) {
        // The rules do not cover it: the gate waits for an acknowledgement or for silence.
        self.gate.on_timeout();
    }

    fn next_timer(&self) -> Timestamp {
        self.last_ack + self.silence
    }

    fn on_timer(&mut self, now: Timestamp) {
        if now >= self.next_timer() {
            self.restart(now);
        }
    }

    fn on_idle_restart(&mut self, now: Timestamp) {
        // In genericCC, and in the training of tables, each period of sending is a flow of its own.
        self.restart(now);
    }

    fn control(&self) -> Control {
        let packets = if self.started { self.window } else { FIRST_WINDOW };
        let rate = self.mss as f64 * 8e3 / self.intersend_ms;
        Control {
            cwnd: self.gate.cwnd(packets),
            pacing_rate: if rate < MAX_RATE { Rate(rate as u64) } else { Rate::ZERO },
        }
    }

    fn observables(&self) -> Observables {
        vec![
            ("cwnd_packets", self.window as f64),
            ("intersend_ms", self.intersend_ms),
            ("send_ewma_ms", self.memory.get(Axis::Send)),
            ("receive_ewma_ms", self.memory.get(Axis::Received)),
            ("slow_receive_ewma_ms", self.memory.get(Axis::SlowReceived)),
            ("rtt_ratio", self.memory.get(Axis::RttRatio)),
            ("rule", self.rule as f64),
        ]
    }
}

#[cfg(test)]
mod tests {
    use ccgym_core::Rate;
    use serde_json::{json, Value};

    use super::table::tests::hand_made;
    use crate::registry::hexadecimal;
    use crate::testing::{ms, MockTransport, MSS};

    fn with(table: &[u8]) -> Value {
        json!({"table": hexadecimal(table)})
    }
    fn host() -> MockTransport {
        MockTransport::of("taova", &with(&hand_made()))
    }
    fn rate_of(gap_ms: f64) -> Rate {
        Rate((MSS as f64 * 8e3 / gap_ms) as u64)
    }

    /// Two packets leave unpaced; the first acknowledgement sets the window to 60 and the gap to 0.292 ms, with any
    /// other leaves in the table.
    #[test]
    fn the_first_acknowledgement() {
        let mut h = host();
        assert_eq!((h.window(), h.scheme.control().pacing_rate), (2.0, Rate::ZERO));
        h.ack_after(ms(100));
        assert_eq!((h.window(), h.scheme.control().pacing_rate), (60.0, rate_of(0.292)));
        assert_eq!(h.observable("rule"), 0.0);
        // The second packet left with the first: no gap, the ratio 1, the same rule, now for a window of 60.
        h.ack_after(ms(100));
        assert_eq!(h.window(), 60.0);
        assert_eq!(h.observable("rtt_ratio"), 1.0);
    }

    /// 60 packets that left together after 100 ms: the smoothed gap is 100/8 ms, and the rules for a queue follow.
    #[test]
    fn rules_follow_the_memory() {
        let mut h = host();
        h.ack_after(ms(100));
        h.ack_after(ms(100));
        h.ack_after(ms(100));
        assert_eq!((h.observable("send_ewma_ms"), h.observable("rule")), (12.5, 1.0));
        assert_eq!(h.window(), (60.0f64 * 0.92 + 165.0).trunc());
        assert_eq!(h.scheme.control().pacing_rate, rate_of(0.1112));
        h.ack_after(ms(106));
        assert_eq!(h.observable("rule"), 2.0);
        assert_eq!(h.observable("cwnd_packets"), (220.0f64 * 0.85 - 3.0).trunc());
        // More is in flight: nothing leaves until the window allows it again.
        assert_eq!(h.window(), h.packets_in_flight() as f64);
    }

    /// Losses have no effect; a gap frees the window; after a timeout the gate stays shut until the silence is over.
    #[test]
    fn losses_and_silence() {
        let mut h = host();
        h.ack_after(ms(100));
        h.ack_after(ms(100));
        assert_eq!(h.packets_in_flight(), 60);
        h.lose();
        let beyond = h.packets_in_flight();
        assert_eq!(beyond as f64, h.observable("cwnd_packets"));
        h.time_out();
        assert_eq!((h.packets_in_flight(), h.scheme.control().cwnd), (0, 0));
        let due = h.scheme.next_timer();
        h.advance(due.since(h.now));
        assert_eq!((h.window(), h.scheme.control().pacing_rate), (2.0, Rate::ZERO));
        for name in ["send_ewma_ms", "receive_ewma_ms", "slow_receive_ewma_ms", "rtt_ratio"] {
            assert_eq!(h.observable(name), 0.0, "{name}");
        }
        h.send();
        h.ack_after(ms(100));
        assert_eq!(h.window(), 60.0);
    }

    #[test]
    fn silence_is_a_parameter() {
        for (params, seconds) in [(json!({}), 2.0), (json!({"silence": 0.5}), 0.5)] {
            let h = MockTransport::of("taova", &params);
            assert_eq!(h.scheme.next_timer().0, (seconds * 1e9) as u64);
        }
    }

    #[test]
    fn a_damaged_table_is_refused() {
        let params = with(b"not a table\n");
        let error = crate::create("taova", params.as_object().unwrap()).err().unwrap();
        assert_eq!((&*error.code, &*error.place), ("parameter-invalid", "scheme taova, parameter table"));
    }
}
