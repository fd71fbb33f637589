//! Prague (draft-briscoe-iccrg-prague-congestion-control-04), for L4S (RFC 9330, RFC 9331): DCTCP's response to marks,
//! paced; growth and responses are those of a flow with a typical RTT.

use ccgym_core::congestion_control::Observables;
use ccgym_core::{AckEvent, Ecn, TimeSpan, Timestamp};

use crate::loss_based::{Cause, Congestion, LossBased, MarkedShare, Rule, Window, START_UP};
use crate::registry::{parameters, Role, SchemeEntry, SchemeInfo};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "prague",
        label: "Prague",
        reference: "draft-briscoe-iccrg-prague-congestion-control-04; RFC 9331",
        summary: "Responds to marks as DCTCP, for L4S on the Internet: paced, with ECT(1) and less RTT bias.",
        parameters: parameters! {
            /// Weight of the latest window in the marked share.
            gain: number(1.0 / 16.0, (0.001, 1.0), "");
            /// Grow and respond at shorter round trips as at this one.
            reference_rtt: number(25.0, (0.1, 1000.0), "ms");
            START_UP;
        },
        role: Role::OnRequest,
        implementation: "L4STeam/linux tcp_prague.c, GPL-2.0 (behavior); L4STeam/udp_prague",
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| {
        let prague = Prague {
            reference_rtt: TimeSpan::from_secs_f64(p.number("reference_rtt") / 1e3),
            srtt: TimeSpan::ZERO,
            marks: MarkedShare::new(p.number("gain"), 0.0),
            marked: false,
            halved: false,
            rounds: 0,
            unmarked: 0,
            rest: 0.0,
        };
        Ok(Box::new(LossBased::new(p, prague)))
    },
};

/// Round trips after slow start before the reference RTT is used (`tcp_prague.c`).
const TRANSITION_ROUNDS: u32 = 4;

#[derive(Clone, Debug)]
struct Prague {
    reference_rtt: TimeSpan,
    srtt: TimeSpan,
    /// α.
    marks: MarkedShare,
    /// True after the first mark: the path has a queue that marks.
    marked: bool,
    /// True if the window was halved for the first of them.
    halved: bool,
    /// Observation windows after slow start.
    rounds: u32,
    /// Unmarked bytes of the current acknowledgement.
    unmarked: u64,
    /// Fraction of a byte of the growth to come.
    rest: f64,
}

impl Prague {
    /// Return the RTT for growth and responses (the draft's "Reduced RTT-Dependence").
    fn virtual_rtt(&self) -> TimeSpan {
        if self.rounds >= TRANSITION_ROUNDS {
            self.srtt.max(self.reference_rtt)
        } else {
            self.srtt
        }
    }

    /// Return the growth in packets per RTT. With (RTT/virtual RTT)², packets per second grow as with the virtual RTT.
    fn increase(&self) -> f64 {
        let ratio = self.srtt.as_secs_f64() / self.virtual_rtt().as_secs_f64().max(1e-9);
        ratio * ratio
    }
}

impl Rule for Prague {
    const CODEPOINT: Option<Ecn> = Some(Ecn::Ect1);
    const PACING_GAIN: Option<f64> = Some(1.0);

    #[inline]
    fn observe(&mut self, window: &Window, event: &AckEvent<'_>) {
        self.srtt = event.rtt.smoothed();
        self.marked |= event.ce_packets > 0;
        self.unmarked = event.acked_bytes.saturating_sub(event.ce_packets.saturating_mul(window.mss));
        let min = if self.rounds >= TRANSITION_ROUNDS { self.virtual_rtt() } else { TimeSpan::ZERO };
        // α stays until the first mark, but rounds count.
        let share = self.marks.share;
        if self.marks.observe(event, min) && window.cwnd >= window.ssthresh {
            self.rounds = self.rounds.saturating_add(1);
        }
        if !self.marked {
            self.marks.share = share;
        }
    }

    /// Add one packet per RTT, scaled, for unmarked bytes.
    #[inline]
    fn avoid(&mut self, window: &mut Window, _now: Timestamp, acked: u64) {
        let grown = self.rest + self.increase() * acked.min(self.unmarked) as f64;
        self.rest = grown.fract();
        window.add_per_window(grown as u64);
    }

    /// Return W·(1 − α/2) at a mark, half at the very first one, when α is unknown; at a loss as Reno.
    fn reduce(&mut self, window: &Window, congestion: &Congestion) -> u64 {
        if congestion.cause != Cause::Mark {
            return congestion.flight / 2;
        }
        let share = if self.halved { self.marks.share } else { 1.0 };
        self.halved = true;
        (window.cwnd as f64 * (1.0 - share / 2.0)) as u64
    }

    fn mark_spacing(&self) -> TimeSpan {
        if self.rounds >= TRANSITION_ROUNDS {
            self.virtual_rtt()
        } else {
            TimeSpan::ZERO
        }
    }

    fn observables(&self, _mss: u64) -> Observables {
        vec![("marked_share", self.marks.share), ("virtual_rtt_ms", self.virtual_rtt().as_millis_f64())]
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{MockTransport, TestEvent, MSS};
    use ccgym_core::{Ecn, Rate, TimeSpan};
    use serde_json::{json, Value};

    const MARKED: TestEvent = TestEvent { acked: 1, lost: 0, ce: 1, delayed: false };

    fn host(packets: u64, params: &Value) -> MockTransport {
        MockTransport::with_window("prague", packets, params)
    }

    /// Run congestion avoidance for `rounds` round trips of `rtt`, from a window of 100 packets on.
    fn settled(rtt: TimeSpan, rounds: usize) -> MockTransport {
        let mut host = host(200, &json!({}));
        host.advance(rtt);
        host.play(MARKED);
        for _ in 0..rounds {
            host.ack_round(rtt, TimeSpan::ZERO);
        }
        host
    }

    #[test]
    fn is_paced_and_carries_ect1() {
        let mut host = host(10, &json!({}));
        let capabilities = host.scheme.capabilities();
        assert_eq!((capabilities.ecn, capabilities.pacing_required), (Ecn::Ect1, true));
        // 11 packets in 20 ms in slow start, then half of 11 in 40 ms; the window is rounded up to a whole packet.
        host.ack_after(TimeSpan::from_millis(40));
        assert_eq!(host.scheme.control().pacing_rate, Rate(11 * MSS * 8 * 50));
        host.play(MARKED);
        assert_eq!((host.window(), host.scheme.control().pacing_rate), (6.0, Rate(11 * MSS * 8 * 25 / 2)));
    }

    /// The first mark halves; then α counts, from zero.
    #[test]
    fn first_mark_halves() {
        let host = settled(TimeSpan::from_millis(40), 0);
        assert_eq!(host.window(), 100.0);
        assert!(host.observable("marked_share") <= 1.0 / 16.0);
    }

    /// A packet per round trip from the reference on; below it one per 25 ms in rate, which is (RTT/25 ms)² per round trip.
    #[test]
    fn growth_depends_little_on_the_round_trip() {
        for (rtt_ms, per_round) in [(50, 1.0), (25, 1.0), (10, 0.16), (5, 0.04), (1, 0.0016)] {
            let rtt = TimeSpan::from_millis(rtt_ms);
            // Windows of observation are 25 ms long by then.
            let mut host = settled(rtt, 140);
            let before = host.observable("cwnd_packets");
            for _ in 0..40 {
                host.ack_round(rtt, TimeSpan::ZERO);
            }
            let found = (host.observable("cwnd_packets") - before) / 40.0;
            assert!((found - per_round).abs() < 0.03, "{rtt_ms} ms: {found} instead of {per_round}");
        }
    }

    /// Marks in each round trip of 5 ms reduce once in 25 ms only.
    #[test]
    fn responses_are_spaced_by_the_reference() {
        let rtt = TimeSpan::from_millis(5);
        let mut host = settled(rtt, 60);
        host.cwnd_limited = false;
        let (mut window, mut cuts) = (host.observable("cwnd_packets"), 0);
        for _ in 0..100 {
            host.advance(rtt);
            let packets = host.packets_in_flight();
            host.play(TestEvent { acked: packets, ce: 1, ..TestEvent::default() });
            let after = host.observable("cwnd_packets");
            cuts += i32::from(after < window);
            window = after;
        }
        assert!((19..=21).contains(&cuts), "{cuts} in 500 ms");
    }

    /// Without a queue that marks it is Reno, paced.
    #[test]
    fn losses_reduce_as_reno() {
        let mut host = host(40, &json!({}));
        host.lose();
        assert_eq!(host.window(), 20.0);
        host.time_out();
        assert_eq!(host.window(), 1.0);
    }
}
