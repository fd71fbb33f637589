//! The event loop.
//!
//! Most packets need only one event. A path element answers at arrival when the packet will leave it, so the simulator
//! carries a packet through the whole path, the receiver and the way back in one call, and puts the acknowledgement
//! into the flow's inbox with its time of arrival: the one event. A packet in an element that cannot answer at arrival
//! (an active queue manager, reordering) waits in the [`Pipeline`] of its direction. Both give the same result, since
//! an element only processes packets in order of time.
//!
//! If packets of several origins meet on the way, because the path has several links or flows in both directions, each
//! direction of a link is a [`Pipeline`], and packets wait before it for their time.

use std::collections::VecDeque;

use ccgym_core::congestion_control::CongestionControl;
use ccgym_core::{cold_path, Error, FeedbackHost, MisbehavingReceiver, Receiver, Sender, TimeSpan, Timestamp};
use ccgym_path::{PathElement, Pipeline};
use ccgym_run::recorder::{PacketLog, Series};
use ccgym_run::requests::Requests;
use ccgym_run::send_buffer::SendBuffer;
use ccgym_run::source::Source;
use ccgym_run::spec::{limits_flows, SourceSpec};
use ccgym_run::truth::GroundTruthModel;
use ccgym_run::{FlowSpec, Outcome, Received, Route, RunSpec, Traces};

use crate::bounds::{opportunities_of, projected_link_events, Guard};
use crate::flow::{Flow, FlowRoute, Parcel};
use crate::host::Host;
use crate::inbox::Inbox;
use crate::tournament::{Tournament, MAX_SLOTS};

mod bounds;
mod carry;
mod plain;
mod record;
mod steering;
mod train;
mod transmit;

/// Makes the scheme of a flow.
pub type SchemeFactory<'a> = &'a dyn Fn(&FlowSpec) -> Result<Box<dyn CongestionControl>, Error>;

/// Max timers of each flow at one instant; with more of them time does not advance.
const MAX_TURNS: usize = 10_000;

/// A simulation. A clone is a snapshot of everything.
#[derive(Clone)]
pub struct Simulator {
    now: Timestamp,
    end: Timestamp,
    /// Each direction of each link ([`Route`] has their order), with each packet's record in the log.
    links: Vec<Pipeline<(Parcel, u32)>>,
    /// Directions in which packets may wait.
    waiting_links: Box<[usize]>,
    /// Names of the directions.
    names: Vec<String>,
    flows: Vec<Flow>,
    tournament: Tournament,
    sequence: u64,
    data_log: Option<PacketLog>,
    ack_log: Option<PacketLog>,
    series: Option<Series>,
    next_sample: Timestamp,
    /// A flow whose scheme waits for a decision from outside.
    waiting: Option<usize>,
    truth: GroundTruthModel,
    hash: u64,
    /// Packets and events until the next check of the limits; the simulation ends at 0.
    budget: u32,
    guard: Guard,
    /// Time of the latest timers, and their number since then.
    timers_at: Timestamp,
    turns: usize,
    /// Bytes known at the start: the logs' opportunities.
    projected: usize,
}

impl Simulator {
    /// Build the simulation that `spec` describes.
    ///
    /// # Errors
    /// A value out of range, an element or a scheme that cannot be built: [`Error`] says where.
    pub fn new(spec: &RunSpec, traces: Traces<'_>, schemes: SchemeFactory<'_>) -> Result<Self, Error> {
        spec.validate()?;
        Error::ensure(spec.flows.len() <= MAX_SLOTS, "flows", spec.flows.len(), format!("at most {MAX_SLOTS}"))?;
        let end = Timestamp::ZERO + spec.duration;
        let projected = projected_link_events(spec, traces)?;
        let mut chains = spec.chains(traces)?;
        if spec.record.link_events {
            for chain in &mut chains {
                chain.elements.iter_mut().for_each(PathElement::record_events);
            }
        }
        let routes = (0..spec.flows.len()).map(|i| spec.route(i)).collect::<Result<Vec<Route>, _>>()?;
        let capacities = if spec.is_network() { opportunities_of(spec, traces) } else { vec![0.0; chains.len()] };
        let mut guard = Guard::new(spec.max_memory);
        let mut flows: Vec<Flow> = Vec::new();
        for (i, f) in spec.flows.iter().enumerate() {
            let mut cca = schemes(f).map_err(|error| error.within(format_args!("flows[{i}]")))?;
            let unlimited = |route: &Route| !limits_flows(spec.elements(&route.there), spec.elements(&route.back));
            if f.is_greedy() && !cca.capabilities().bounded && unlimited(&routes[i]) {
                let found = format!("{:?} on a path without a link", f.scheme);
                return Err(Error::of("path-without-link", format!("flows[{i}]"), found)
                    .expected("a link: otherwise the window of a greedy flow grows until memory ends")
                    .hint("add mm-link (or rate=…), or choose a bounded scheme or source"));
            }
            if spec.facts_of(i).is_none() && cca.capabilities().knows_path {
                let place = format!("flows[{i}]: scheme {}", f.scheme);
                return Err(Error::of("scheme-unsuitable", place, "a path without a link").expected("one to know"));
            }
            let config = f.sender_config(i as u32);
            let context = spec.init_context(i, &*cca);
            let mss = u64::from(config.packet_size);
            let feedback_host = cca.receiver_side().map(|scheme| Box::new(FeedbackHost::new(scheme.receiver(), mss)));
            let misbehaving = MisbehavingReceiver::new(f.misbehavior()).map(Box::new);
            if feedback_host.is_some() && misbehaving.is_some() {
                let place = format!("flows[{i}]: a receiver that misbehaves");
                return Err(Error::of("scheme-unsuitable", place, "a scheme that needs a part at the receiver")
                    .expected("one that needs acknowledgements alone"));
            }
            let receiver = f.receiver_config();
            flows.push(Flow {
                scheme: f.scheme.clone(),
                sender: Sender::new(config, cca, context),
                receiver: Receiver::new(receiver),
                host: Host::new(&f.host, spec.seed, i as u64).map(Box::new),
                source: Source::new(&f.source, f.mss, f.header, spec.seed, i as u64),
                start: f.start,
                stop: f.stop.unwrap_or(Timestamp::NEVER),
                started: false,
                mss: f.mss,
                header: f.header,
                forward_extra: TimeSpan(f.extra_rtt.0 / 2),
                extra_rtt: f.extra_rtt,
                route: FlowRoute::new(&routes[i], &capacities),
                receiver_timers: receiver.policy.every > 1 || feedback_host.is_some(),
                feedback_host,
                misbehaving,
                eager: false,
                plain: false,
                trains: false,
                watched: f.send_buffer.is_some() || !matches!(f.source, SourceSpec::Greedy | SourceSpec::Media(_)),
                buffer: f.send_buffer.map(|bytes| SendBuffer::new(bytes, f.mss)),
                inbox: Inbox::default(),
                feedback: VecDeque::new(),
                received: Received::default(),
                finished: Timestamp::NEVER,
                acked_at_decision: Vec::new(),
            });
            if i == 0 && !guard.admit(&flows[0].memory_use_of(spec.flows.len()), Timestamp::ZERO, end) {
                break;
            }
        }
        if let Some(stopped) = guard.stopped {
            return Err(stopped);
        }
        // Packets that several flows' receivers send by timers leave in order of those, not of the data's departure.
        // And packets that reach a link by several ways arrive in order of time, not of the calls that carry them.
        let timers = flows.len() > 1 && flows.iter().any(|flow| flow.receiver_timers);
        let meeting = if spec.is_network() { 0 } else { 1 };
        for chain in chains.iter_mut().skip(meeting) {
            if (timers || meeting == 0) && !chain.elements.is_empty() {
                chain.synchronise[0] = true;
                chain.eager = false;
            }
        }
        let eager = !spec.is_network() && chains.iter().all(|chain| chain.eager);
        let behind_held = !spec.is_network() && chains[0].is_held_link() && chains[1].eager;
        for flow in &mut flows {
            flow.eager =
                (eager || behind_held) && !flow.receiver_timers && flow.buffer.is_none() && flow.misbehaving.is_none();
            let host = flow.host.is_some() || flow.feedback_host.is_some();
            flow.plain = flow.eager && !flow.watched && !host && flow.sender.is_plain();
        }
        if let ([flow], true) = (&mut flows[..], eager) {
            flow.allow_trains(&spec.flows[0], &spec.record, &chains[1]);
        }
        let mut tournament = Tournament::new(flows.len());
        for (i, flow) in flows.iter().enumerate() {
            tournament.update(i, flow.next_event(i as u64));
        }
        let step = spec.record.series;
        let sampling = step.0 > 0;
        // Sample the links that data crosses, or, on a path without any, the empty first one.
        let mut sampled: Vec<usize> = routes.iter().flat_map(|route| &route.there).copied().collect();
        sampled.sort_unstable();
        sampled.dedup();
        sampled.retain(|&direction| chains[direction].bottleneck.is_some());
        if sampled.is_empty() {
            sampled.push(0);
        }
        let bottlenecks: Vec<usize> = flows.iter().map(|flow| flow.route.bottleneck).collect();
        Ok(Self {
            now: Timestamp::ZERO,
            end,
            waiting_links: (0..chains.len()).filter(|&link| !chains[link].eager).collect(),
            links: chains.into_iter().map(Pipeline::new).collect(),
            names: spec.directions().into_iter().map(|(name, _)| name).collect(),
            tournament,
            sequence: 0,
            data_log: spec.record.packets.then(PacketLog::default),
            ack_log: (spec.record.packets && spec.record.acks).then(PacketLog::default),
            series: sampling.then(|| Series::new(step, flows.len(), &sampled)),
            next_sample: if sampling { Timestamp::ZERO + step } else { Timestamp::NEVER },
            waiting: None,
            truth: GroundTruthModel::of(spec, &bottlenecks),
            flows,
            hash: 0xcbf2_9ce4_8422_2325,
            budget: 0,
            guard,
            timers_at: Timestamp::NEVER,
            turns: 0,
            projected,
        })
    }

    /// Return the simulation's clock.
    #[must_use]
    pub const fn now(&self) -> Timestamp {
        self.now
    }

    /// Return the end of the run.
    #[must_use]
    pub const fn end(&self) -> Timestamp {
        self.end
    }

    /// Return the number of flows.
    #[must_use]
    pub fn flow_count(&self) -> usize {
        self.flows.len()
    }

    /// Return a hash over the times and packets of all acknowledgements so far.
    #[must_use]
    pub const fn trajectory_hash(&self) -> u64 {
        self.hash
    }

    /// Return the sender of a flow.
    #[must_use]
    pub fn sender(&self, flow: usize) -> &Sender {
        &self.flows[flow].sender
    }

    /// Run to the end.
    ///
    /// # Errors
    /// As [`Simulator::run_to_decision`].
    pub fn run(&mut self) -> Result<(), Error> {
        self.run_until(self.end)
    }

    /// Run until `until` (at most the end), including events at that time. A scheme that waits for a decision from
    /// outside gets none: its last one stays valid.
    ///
    /// # Errors
    /// As [`Simulator::run_to_decision`].
    pub fn run_until(&mut self, until: Timestamp) -> Result<(), Error> {
        while let Some(flow) = self.run_to_decision(until)? {
            self.hold_decision(flow);
        }
        Ok(())
    }

    /// As [`Simulator::run_until`], but stop when a scheme waits for a decision, and return its flow. Pass it to
    /// [`Simulator::decide`], at once or never: without it the last decision stays valid.
    ///
    /// # Errors
    /// The memory limit, or an interrupt. Then the simulation is over, and every later call returns the error again.
    pub fn run_to_decision(&mut self, until: Timestamp) -> Result<Option<usize>, Error> {
        if let Some(flow) = self.waiting {
            self.hold_decision(flow);
        }
        let until = until.min(self.end);
        loop {
            if self.budget == 0 {
                cold_path();
                self.check_limits()?;
            }
            if self.waiting.is_some() {
                cold_path();
                return Ok(self.waiting);
            }
            let (slot, due) = self.tournament.first();
            let other = self.other_due();
            if due > until && other > until {
                break;
            }
            // Packets move before endpoints act at the same time.
            if other <= due {
                self.now = other;
                self.handle_other(other);
            } else {
                self.now = due;
                // A flow alone continues until another event is due.
                let limit = if self.flows.len() == 1 { until } else { due };
                if self.flows[slot].host.is_some() {
                    self.handle_turn(slot);
                } else {
                    self.handle_flow(slot, limit);
                }
            }
        }
        self.now = until;
        Ok(None)
    }

    #[inline]
    fn other_due(&self) -> Timestamp {
        self.waiting_links.iter().fold(self.next_sample, |due, &link| due.min(self.links[link].due()))
    }

    #[cold]
    #[inline(never)]
    fn handle_other(&mut self, now: Timestamp) {
        self.budget = self.budget.saturating_sub(1);
        if let Some(&link) = self.waiting_links.iter().find(|&&link| self.links[link].due() <= now) {
            self.step(link);
        } else if self.next_sample <= now {
            self.sample(now);
        }
    }

    /// Handle the current event of flow `index`, and those that follow up to `limit`.
    fn handle_flow(&mut self, index: usize, limit: Timestamp) {
        loop {
            if self.flows[index].plain && self.handle_plain_flow(index, limit) {
                return;
            }
            let now = self.now;
            let flow = &mut self.flows[index];
            match flow.inbox.front() {
                Some((key, _)) if key.0 <= now => self.take_ack(index),
                _ if flow.is_release_due(now) => {}
                _ => {
                    cold_path();
                    self.handle_timers(index);
                }
            }
            if self.flows[index].sender.awaits_decision() {
                cold_path();
                self.waiting = Some(index);
                return self.reschedule(index);
            }
            self.transmit(index);
            if self.flows[index].trains {
                self.carry_train(index, limit);
            }
            let key = self.flows[index].next_event(index as u64);
            if self.is_last(key.0, limit) {
                self.tournament.update(index, key);
                return;
            }
            self.now = key.0;
        }
    }

    /// True if a flow that may go on up to `limit` must not handle its next event, at `next`, now.
    #[inline]
    fn is_last(&self, next: Timestamp, limit: Timestamp) -> bool {
        next > limit || limit == self.now || self.other_due() <= next || self.budget == 0
    }

    /// Handle an event of flow `index`, whose host has latency: its receiver acts at once. When the host wakes, its
    /// sender processes all arrivals, then timers, and sends.
    #[cold]
    #[inline(never)]
    fn handle_turn(&mut self, index: usize) {
        let now = self.now;
        if !self.flows[index].wake(now) {
            self.fire_receiver(index, now);
            return self.reschedule(index);
        }
        while self.flows[index].inbox.front().is_some_and(|(key, _)| key.0 <= now) {
            self.take_ack(index);
            if self.flows[index].sender.awaits_decision() {
                self.waiting = Some(index);
                return self.reschedule(index);
            }
        }
        self.handle_timers(index);
        if self.flows[index].sender.awaits_decision() {
            self.waiting = Some(index);
        } else {
            self.transmit(index);
        }
        self.reschedule(index);
    }

    /// Process the first acknowledgement for flow `index`, or, if it is over by then, the end of its decision interval.
    #[inline(always)]
    fn take_ack(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        let Some((_, ack)) = flow.inbox.front() else { return };
        if flow.sender.is_interval_over(now) {
            cold_path();
            self.budget = self.budget.saturating_sub(1);
            return flow.sender.end_interval(now);
        }
        self.hash = (self.hash ^ now.0 ^ ack.trigger.rotate_left(40)).wrapping_mul(0x0000_0100_0000_01b3);
        flow.sender.on_ack(now, ack);
        flow.inbox.pop();
        if flow.watched {
            cold_path();
            self.settle(index);
        }
    }

    #[inline(never)]
    fn handle_timers(&mut self, index: usize) {
        self.budget = self.budget.saturating_sub(1);
        let now = self.now;
        self.turns = if self.timers_at == now { self.turns + 1 } else { 0 };
        self.timers_at = now;
        if self.turns >= MAX_TURNS.saturating_mul(self.flows.len()) {
            let found = format!("timers without end at {} s of simulated time", now.as_secs_f64());
            self.guard.stopped = Some(Error::of("run-stalled", "time", found).expected("time to go on"));
            self.budget = 0;
        }
        let flow = &mut self.flows[index];
        if !flow.started {
            flow.started = true;
            match &mut flow.buffer {
                Some(buffer) => buffer.fill(now, &mut flow.sender),
                None => flow.source.start(now, &mut flow.sender, flow.mss, flow.header),
            }
        }
        if flow.stop <= now {
            flow.stop = Timestamp::NEVER;
            let group = flow.source.requests().and_then(|requests| requests.group());
            flow.source.stop();
            flow.sender.stop();
            // The others need not wait for it.
            if let Some(group) = group {
                self.ask_group(group);
            }
        }
        let flow = &mut self.flows[index];
        let mut settled = false;
        if flow.source.next_event() <= now {
            flow.source.on_event(now, &mut flow.sender);
        }
        while flow.feedback_due() <= now {
            let Some((_, feedback)) = flow.feedback.pop_front() else { break };
            let newest = feedback.arrivals.last().map_or(0, |arrived| arrived.number);
            self.hash = (self.hash ^ now.0 ^ newest.rotate_left(40)).wrapping_mul(0x0000_0100_0000_01b3);
            flow.sender.on_feedback(now, &feedback);
            settled = true;
        }
        if flow.sender.next_timeout() <= now {
            flow.sender.on_timeout(now);
            // The last packets of an unreliable flow may be settled as lost.
            settled = true;
        }
        if settled && flow.watched {
            self.settle(index);
        }
        let flow = &mut self.flows[index];
        if flow.receiver_timers && flow.receiver_due() <= now {
            self.fire_receiver(index, now);
        }
    }

    /// Tell the application of flow `index` about settled packets.
    fn settle(&mut self, index: usize) {
        let now = self.now;
        let flow = &mut self.flows[index];
        if let Some(buffer) = flow.buffer.as_mut().filter(|_| !flow.sender.is_stopped()) {
            buffer.fill(now, &mut flow.sender);
        }
        if !flow.finished.is_set() && flow.source.is_done() && flow.sender.is_finished() {
            flow.finished = now;
        }
        flow.source.on_settled(now, &flow.sender);
        if let Some(group) = flow.source.requests().filter(|requests| requests.is_idle()).and_then(|r| r.group()) {
            self.ask_group(group);
        }
    }

    /// If all flows of a group have answered, send each its next request at the same time.
    fn ask_group(&mut self, group: u32) {
        let all = 0..self.flows.len();
        let mut members: Vec<usize> = Vec::new();
        for index in all {
            let flow = &mut self.flows[index];
            let Some(requests) = flow.source.requests().filter(|requests| requests.group() == Some(group)) else {
                continue;
            };
            if !requests.is_idle() || !flow.started {
                return;
            }
            members.push(index);
        }
        let Some(&first) = members.first() else { return };
        let think = self.flows[first].source.requests().map_or(TimeSpan::ZERO, Requests::think);
        for index in members {
            if let Some(requests) = self.flows[index].source.requests() {
                requests.ask(self.now + think);
            }
            self.reschedule(index);
        }
    }

    #[inline]
    fn reschedule(&mut self, index: usize) {
        let key = self.flows[index].next_event(index as u64);
        self.tournament.update(index, key);
    }
}

/// Run a simulation from its description.
///
/// # Errors
/// As [`Simulator::new`].
pub fn simulate(spec: &RunSpec, traces: Traces<'_>, schemes: SchemeFactory<'_>) -> Result<Outcome, Error> {
    let mut simulator = Simulator::new(spec, traces, schemes)?;
    simulator.run()?;
    Ok(simulator.finish())
}
