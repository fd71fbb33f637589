//! What a simulation records on its way, and leaves behind.

use ccgym_core::Timestamp;
use ccgym_link::{Chain, PathElement};
use ccgym_run::recorder::{PacketLog, Series};
use ccgym_run::{FlowOutcome, Outcome};

use super::Simulator;

impl Simulator {
    /// Add a sample to the series.
    pub(super) fn sample(&mut self, now: Timestamp) {
        let Some(series) = &mut self.series else { return };
        if !series.make_room() {
            self.starve();
            return;
        }
        series.t.push(now.0);
        for (i, flow) in self.flows.iter().enumerate() {
            series.sample_flow(i, &flow.sender);
        }
        let (packets, bytes) = self.up.backlog(now);
        let chain = self.up.chain();
        let drops = chain.bottleneck.map_or(0, |b| chain.elements[b].counters().dropped);
        series.link.queue_packets.push(packets);
        series.link.queue_bytes.push(bytes);
        series.link.drops.push(drops);
        self.next_sample = now + series.step;
    }

    /// What the run left behind. The simulator may go on afterward.
    #[must_use]
    pub fn outcome(&mut self) -> Outcome {
        let logs = (self.data_log.clone(), self.ack_log.clone());
        let series = self.series.clone();
        self.leave(logs, series)
    }

    /// As [`Simulator::outcome`], without a copy of what was recorded.
    #[must_use]
    pub fn finish(mut self) -> Outcome {
        let logs = (self.data_log.take(), self.ack_log.take());
        let series = self.series.take();
        self.leave(logs, series)
    }

    fn leave(&mut self, logs: (Option<PacketLog>, Option<PacketLog>), mut series: Option<Series>) -> Outcome {
        let now = self.now;
        let (mut data, mut acks) = logs;
        for log in [&mut data, &mut acks].into_iter().flatten() {
            log.cut(now);
        }
        if let Some(s) = &mut series {
            s.finish();
        }
        let (up, down) = (self.up.chain_mut(), self.down.chain_mut());
        let events = |chain: &mut Chain| chain.bottleneck.map_or_else(Vec::new, |b| chain.elements[b].take_events(now));
        Outcome {
            end: now,
            hash: self.hash,
            flows: self
                .flows
                .iter()
                .map(|f| FlowOutcome {
                    name: f.sender.cca().name().to_owned(),
                    start: f.start,
                    sender: *f.sender.stats(),
                    received: f.received,
                    min_rtt: f.sender.rtt().min(),
                    finished: f.finished,
                    frames: f.source.frames().to_vec(),
                })
                .collect(),
            up_events: events(up),
            down_events: events(down),
            uplink: up.counters(),
            downlink: down.counters(),
            bottleneck: up.bottleneck,
            data,
            acks,
            series,
        }
    }
}
