//! Records of a simulation, and its outcome.

use ccgym_core::Timestamp;
use ccgym_path::{Chain, PathElement, Pipeline};
use ccgym_run::recorder::{PacketLog, Series};
use ccgym_run::send_buffer::SendBuffer;
use ccgym_run::{FlowOutcome, LinkOutcome, Outcome};

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
        for samples in &mut series.links {
            let link = &mut self.links[samples.direction];
            let (packets, bytes) = link.backlog(now);
            let chain = link.chain();
            let drops = chain.bottleneck.map_or(0, |b| chain.elements[b].counters().dropped);
            samples.queue_packets.push(packets);
            samples.queue_bytes.push(bytes);
            samples.drops.push(drops);
        }
        self.next_sample = now + series.step;
    }

    /// Return the outcome so far. The simulator may continue afterward.
    #[must_use]
    pub fn outcome(&mut self) -> Outcome {
        let logs = (self.data_log.clone(), self.ack_log.clone());
        let series = self.series.clone();
        self.leave(logs, series)
    }

    /// As [`Simulator::outcome`], without a copy of the records.
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
        let link = |(link, name): (&mut Pipeline<_>, &String)| {
            let chain: &mut Chain = link.chain_mut();
            let events = chain.bottleneck.map_or_else(Vec::new, |b| chain.elements[b].take_events(now));
            LinkOutcome { name: name.clone(), elements: chain.counters(), bottleneck: chain.bottleneck, events }
        };
        Outcome {
            end: now,
            hash: self.hash,
            flows: self
                .flows
                .iter()
                .map(|f| FlowOutcome {
                    name: f.scheme.clone(),
                    start: f.start,
                    sender: *f.sender.stats(),
                    received: f.received,
                    min_rtt: f.sender.rtt().min(),
                    finished: f.finished,
                    frames: f.source.frames().to_vec(),
                    transfers: f.source.transfers().to_vec(),
                    application: f.buffer.as_ref().map(SendBuffer::application),
                    bottleneck: f.route.bottleneck,
                })
                .collect(),
            links: self.links.iter_mut().zip(&self.names).map(link).collect(),
            data,
            acks,
            series,
        }
    }
}
