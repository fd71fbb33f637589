//! The physical limit: a sender that knows its path.
//!
//! It paces at its fair share of the current capacity. The queue then holds only what the link's granularity needs: a
//! link that releases packets on whole milliseconds (mahimahi) leaves the first few opportunities unused, and exactly
//! those packets stay in its queue from then on. The window is only a bound, for the time after a step down. If packets
//! are lost before they reach the link it sends as many more.

use ccgym_core::congestion_control::{Capabilities, KnownPath, Observables};
use ccgym_core::{AckEvent, CongestionControl, Control, InitContext, Rate, TimeSpan, TimeoutEvent, Timestamp};

use crate::registry::{parameters, SchemeEntry, SchemeInfo};

pub const ENTRY: SchemeEntry = SchemeEntry {
    info: SchemeInfo {
        name: "oracle",
        label: "Oracle",
        reference: "none: the upper bound by capacity and delay of the path",
        summary: "Sends its fair share of the capacity with an almost empty queue, from the description of the path.",
        parameters: parameters! {
            /// Sending rate; 0: the capacity divided by the number of flows.
            share: number(0.0, (0.0, 1.0), "of the capacity");
            /// Margin of the window above the bandwidth-delay product, for links that release packets on whole
            /// milliseconds.
            margin_ms: number(2.0, (0.0, 1000.0), "ms");
        },
        ..SchemeInfo::DEFAULT
    },
    build: |p, _| {
        Ok(Box::new(Oracle {
            share: p.number("share"),
            margin: TimeSpan::from_secs_f64(p.number("margin_ms") / 1e3),
            path: None,
            next_step: 0,
            mss: 0,
            min_rtt: TimeSpan::MAX,
            rate: Rate::ZERO,
            cwnd: 0,
        }))
    },
};

/// Packets in the window beyond the BDP and the margin: those in service and in assembly.
const MARGIN_PACKETS: u64 = 4;
/// Time between packets in an outage, so that the flow is active when the link returns (a rate of zero would mean
/// unpaced).
const OUTAGE_SPACING: TimeSpan = TimeSpan::from_millis(10);

#[derive(Clone, Debug)]
pub struct Oracle {
    share: f64,
    margin: TimeSpan,
    path: Option<KnownPath>,
    /// Index of the next capacity step.
    next_step: usize,
    mss: u64,
    /// RTT without a queue: the path's, or the min if that is larger, since on some links the wait for the end of a
    /// millisecond is part of every RTT.
    min_rtt: TimeSpan,
    rate: Rate,
    cwnd: u64,
}

impl Oracle {
    fn follow(&mut self, now: Timestamp) {
        let Some(path) = &self.path else { return };
        while path.capacity.get(self.next_step).is_some_and(|(from, _)| *from <= now) {
            self.next_step += 1;
        }
        // No rate fills a path that loses everything.
        let arriving = (1.0 - path.loss_before).max(0.01);
        let capacity = path.capacity[self.next_step.saturating_sub(1)].1.scaled(1.0 / arriving);
        let share = if self.share > 0.0 { self.share } else { 1.0 / f64::from(path.flows.max(1)) };
        self.rate = capacity.scaled(share).max(Rate::from_bytes_over(self.mss, OUTAGE_SPACING));
        let window = capacity.scaled(share).bytes_in(self.min_rtt + self.margin);
        self.cwnd = window + MARGIN_PACKETS * self.mss;
    }
}

impl CongestionControl for Oracle {
    fn capabilities(&self) -> Capabilities {
        Capabilities { prr: false, pacing_required: true, knows_path: true, timers: true, ..Capabilities::default() }
    }

    /// Panics without [`InitContext::path`]: a host without knowledge of its path rejects the scheme by
    /// [`Capabilities::knows_path`].
    fn init(&mut self, context: InitContext) {
        let path = context.path.expect("a host gives the path to a scheme whose capabilities say knows_path");
        self.mss = context.mss;
        self.min_rtt = path.base_rtt;
        self.path = Some(path);
        self.follow(context.now);
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        let base = self.path.as_ref().map_or(TimeSpan::ZERO, |path| path.base_rtt);
        let min_rtt = event.rtt.min().max(base);
        if min_rtt != self.min_rtt && event.rtt.samples() > 0 {
            self.min_rtt = min_rtt;
            self.follow(event.now);
        }
    }

    fn on_timeout(&mut self, _event: &TimeoutEvent<'_>) {}

    fn next_timer(&self) -> Timestamp {
        let step = self.path.as_ref().and_then(|path| path.capacity.get(self.next_step));
        step.map_or(Timestamp::NEVER, |(from, _)| *from)
    }

    fn on_timer(&mut self, now: Timestamp) {
        self.follow(now);
    }

    #[inline]
    fn control(&self) -> Control {
        Control { pacing_rate: self.rate, ..Control::window(self.cwnd) }
    }

    fn observables(&self) -> Observables {
        vec![("cwnd_packets", self.cwnd as f64 / self.mss as f64), ("rate_mbps", self.rate.as_mbps())]
    }
}

#[cfg(test)]
mod tests {
    use crate::testing::{context, path, scheme, MockTransport, MSS};
    use ccgym_core::congestion_control::KnownPath;
    use ccgym_core::{InitContext, Rate, TimeSpan, Timestamp};
    use serde_json::json;

    fn on(path: KnownPath) -> MockTransport {
        MockTransport::with_context(scheme("oracle", &json!({})), InitContext { path: Some(path), ..context() })
    }

    #[test]
    fn rate_is_the_capacity_and_window_the_bdp_and_a_margin() {
        let host = on(path());
        assert_eq!(host.scheme.control().pacing_rate, Rate(12_000_000));
        // 40 packets of product, 2 of margin (2 ms at 1 ms each), 4 of MARGIN_PACKETS.
        assert_eq!(host.scheme.control().cwnd, 46 * MSS);
    }

    #[test]
    fn sends_more_to_compensate_losses_before_the_link() {
        let plain = on(path()).scheme.control().pacing_rate.0 as f64;
        let lossy = on(KnownPath { loss_before: 0.2, ..path() }).scheme.control().pacing_rate.0 as f64;
        assert!((lossy / plain - 1.25).abs() < 1e-6);
        assert!(on(KnownPath { loss_before: 1.0, ..path() }).scheme.control().pacing_rate.0 > 0);
    }

    #[test]
    fn flows_share() {
        let host = on(KnownPath { flows: 4, ..path() });
        assert_eq!(host.scheme.control().pacing_rate, Rate(3_000_000));
    }

    #[test]
    fn follows_steps_and_sends_in_an_outage() {
        let at = Timestamp::from_millis;
        let steps = [(0, 12.0), (100, 24.0), (200, 0.0), (300, 6.0)];
        let capacity = steps.iter().map(|(ms, mbps)| (at(*ms), Rate::from_mbps(*mbps))).collect();
        let mut host = on(KnownPath { capacity, ..path() });
        let mut seen = Vec::new();
        for _ in 0..4 {
            host.advance(TimeSpan::from_millis(99));
            seen.push(host.scheme.control().pacing_rate.as_mbps());
            host.advance(TimeSpan::from_millis(1));
        }
        // In the outage: a packet each 10 ms.
        assert_eq!(seen, [12.0, 24.0, 1.2, 6.0]);
        assert_eq!(host.scheme.next_timer(), Timestamp::NEVER);
    }

    #[test]
    fn a_longer_min_rtt_widens_the_window() {
        let mut host = on(path());
        host.ack_after(TimeSpan::from_millis(42));
        assert_eq!(host.scheme.control().cwnd, 48 * MSS);
    }
}
