//! DCTCP (RFC 8257; Alizadeh et al., SIGCOMM 2010): a mark reduces the window by half of the share of marked packets.

use ccgym_core::congestion_control::Observables;
use ccgym_core::{AckEvent, Ecn, TimeSpan, Timestamp};

use crate::loss_based::{Cause, Congestion, LossBased, MarkedShare, Rule, Window, PACING, START_UP};
use crate::registry::{parameters, Role, SchemeEntry, SchemeInfo};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "dctcp",
        label: "DCTCP",
        reference: "RFC 8257; Alizadeh et al., SIGCOMM 2010",
        summary: "Grows as Reno, and reduces the window in proportion to the share of marked packets.",
        parameters: parameters! {
            /// Weight of the latest round trip in the marked share.
            gain: number(1.0 / 16.0, (0.001, 1.0), "");
            /// Marked share before the first round trip.
            first_share: number(1.0, (0.0, 1.0), "");
            START_UP;
            PACING;
        },
        role: Role::OnRequest,
        implementation: "Linux tcp_dctcp.c, GPL-2.0 (behavior)",
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| {
        let marks = MarkedShare::new(p.number("gain"), p.number("first_share"));
        Ok(Box::new(LossBased::new(p, Dctcp { marks })))
    },
};

#[derive(Clone, Debug)]
struct Dctcp {
    /// α.
    marks: MarkedShare,
}

impl Rule for Dctcp {
    const CODEPOINT: Option<Ecn> = Some(Ecn::Ect0);

    #[inline]
    fn observe(&mut self, _window: &Window, event: &AckEvent<'_>) {
        self.marks.observe(event, TimeSpan::ZERO);
    }

    #[inline]
    fn avoid(&mut self, window: &mut Window, _now: Timestamp, acked: u64) {
        window.add_per_window(acked);
    }

    /// Return W·(1 − α/2) at a mark (§3.3); at a loss as Reno (§3.5).
    fn reduce(&mut self, window: &Window, congestion: &Congestion) -> u64 {
        match congestion.cause {
            Cause::Mark => (window.cwnd as f64 * (1.0 - self.marks.share / 2.0)) as u64,
            Cause::Loss | Cause::Timeout => congestion.flight / 2,
        }
    }

    fn observables(&self, _mss: u64) -> Observables {
        vec![("marked_share", self.marks.share)]
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{MockTransport, TestEvent};
    use ccgym_core::{Ecn, TimeSpan};
    use serde_json::{json, Value};

    const RTT: TimeSpan = TimeSpan::from_millis(40);
    const MARKED: TestEvent = TestEvent { acked: 1, lost: 0, ce: 1, delayed: false };

    fn host(packets: u64, params: &Value) -> MockTransport {
        MockTransport::with_window("dctcp", packets, params)
    }

    /// §3.3: W·(1 − α/2). The first acknowledgement, with its mark, counts into α with the weight of the gain.
    #[test]
    fn a_mark_takes_half_of_the_share() {
        for (gain, first_share, left) in [
            (1.0 / 16.0, 1.0, 20.0),
            (0.5, 0.0, 40.0 * (1.0 - 0.5 / 2.0)),
            (0.001, 0.0, 40.0 * (1.0 - 0.001 / 2.0)),
            (1.0, 0.0, 20.0),
        ] {
            let mut host = host(40, &json!({"gain": gain, "first_share": first_share}));
            assert_eq!(host.scheme.capabilities().ecn, Ecn::Ect0);
            host.play(MARKED);
            assert!((host.window() - left).abs() < 1e-3, "{gain} {first_share}: {}", host.window());
            // Once per window of data (§3.3), for any number of marks.
            for _ in 0..5 {
                host.play(MARKED);
            }
            assert!((host.window() - left).abs() < 0.2, "{gain} {first_share}: {}", host.window());
        }
    }

    /// If all packets are marked it acts as Reno with ECN; at a low share the reduction is small.
    #[test]
    fn few_marks_take_little() {
        let mut host = host(40, &json!({}));
        host.cwnd_limited = false;
        for _ in 0..60 {
            host.ack_round(RTT, TimeSpan::ZERO);
        }
        // 61 windows without a mark, and then one of a single packet.
        let share = host.observable("marked_share");
        assert!(share < 0.03, "{share}");
        host.play(MARKED);
        assert!(host.window() > 40.0 * (1.0 - 0.1 / 2.0), "{}", host.window());
    }

    /// §3.5: a loss halves, a timeout leaves one packet, at any share.
    #[test]
    fn losses_reduce_as_reno() {
        let mut host = host(40, &json!({"first_share": 0.0}));
        host.lose();
        assert_eq!(host.window(), 20.0);
        host.time_out();
        assert_eq!(host.window(), 1.0);
    }
}
