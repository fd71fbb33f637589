//! The acknowledgements of one round trip.

use ccgym_core::{AckEvent, PacketNumber, TimeSpan, Timestamp};

/// Min RTT samples of a round, …
pub const MIN_SAMPLES: u32 = 16;
/// … unless it lasts this many round trips.
const MAX_PASSES: u32 = 4;
/// Min length of a block. Longer than most bursts of acknowledgements, so that its min excludes them; not much longer
/// than short RTTs, whose rounds are a block each: the min over a longer time is lower.
const BLOCK: TimeSpan = TimeSpan::from_millis(30);

/// If RTTs differ by more than this part of the base RTT, ACKs come in bursts, and only the shortest RTTs count.
const LUMPY: f64 = 0.5;

/// The current round. Its blocks have equal lengths at any RTT: flows of different RTTs on one link then measure the
/// same queue.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Packet number whose acknowledgement ends a round trip.
    end: PacketNumber,
    /// Round trips in it so far.
    passes: u32,
    /// Number of samples.
    pub samples: u32,
    /// Min and max round trip, seconds.
    pub min: f64,
    pub max: f64,
    block: Block,
    blocks: u32,
    /// Sum of the minima of all blocks.
    sum: f64,
    /// Packets acknowledged and lost.
    pub acked: u64,
    pub lost: u64,
    /// True if the window limited sending at some time.
    pub limited: bool,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    began: Timestamp,
    samples: u32,
    min: f64,
}

impl Block {
    fn new(began: Timestamp) -> Self {
        Self { began, samples: 0, min: f64::INFINITY }
    }
}

impl Round {
    /// Begin a round whose first round trip ends with packet `end`.
    pub fn new(now: Timestamp, end: PacketNumber) -> Self {
        let block = Block::new(now);
        Self {
            end,
            passes: 0,
            samples: 0,
            min: f64::INFINITY,
            max: 0.0,
            block,
            blocks: 0,
            sum: 0.0,
            acked: 0,
            lost: 0,
            limited: false,
        }
    }

    /// Add an RTT sample, seconds.
    pub fn sample(&mut self, now: Timestamp, rtt: f64) {
        self.min = self.min.min(rtt);
        self.max = self.max.max(rtt);
        self.samples += 1;
        if self.block.samples >= MIN_SAMPLES && now.since(self.block.began) >= BLOCK {
            self.sum += self.block.min;
            self.blocks += 1;
            self.block = Block::new(now);
        }
        self.block.samples += 1;
        self.block.min = self.block.min.min(rtt);
    }

    /// Count an acknowledgement.
    pub fn count(&mut self, event: &AckEvent<'_>) {
        self.acked += event.acked_packets;
        self.lost += event.lost.len() as u64;
        self.limited |= event.cwnd_limited;
    }

    /// End the round with this acknowledgement, with `rtt` as its RTT.
    pub fn cut(&mut self, rtt: f64) {
        self.end = 0;
        self.min = rtt;
    }

    /// Return the round if this acknowledgement ends it; `any`: also with few samples.
    pub fn ended_by(&mut self, event: &AckEvent<'_>, any: bool) -> Option<Self> {
        if event.largest_acked < self.end || event.acked_packets == 0 {
            return None;
        }
        self.passes += 1;
        self.end = event.next_packet_number;
        let enough = self.samples >= MIN_SAMPLES || self.passes >= MAX_PASSES || any;
        (enough && self.min.is_finite())
            .then(|| std::mem::replace(self, Self::new(event.now, event.next_packet_number)))
    }

    /// Return the standing RTT, seconds: the mean over blocks of their minima, or the min if ACKs come in bursts.
    pub fn standing(&self, base: f64) -> f64 {
        if self.blocks == 0 || self.max - self.min > LUMPY * base {
            self.min
        } else {
            self.sum / f64::from(self.blocks)
        }
    }
}

/// Number of packets that a flow wants in the queue.
#[derive(Clone, Copy, Debug)]
pub struct Wants {
    /// With its gain and the queue raise.
    pub now: f64,
    /// After the queue raise.
    pub lasting: f64,
    /// With a gain of 1, before losses.
    pub own: f64,
}

/// Measurements of a round.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub now: Timestamp,
    /// Base RTT, seconds.
    pub base: f64,
    /// RTT, seconds: the standing one if the flow is alone, else the min.
    pub rtt: f64,
    /// Max less min RTT of the round, seconds.
    pub spread: f64,
    /// `rtt` − `base`.
    pub queue: f64,
    /// The window that the round's packets left with.
    pub window: f64,
    /// Delivery rate, packets/s.
    pub rate: f64,
    /// Packets of the flow in the queue.
    pub waiting: f64,
    pub wants: Wants,
    /// Fraction of packets lost, and packets.
    pub loss: f64,
    pub lost: u64,
    /// True if more packets were lost than the path usually loses.
    pub excess: bool,
    /// True if the window limited sending.
    pub limited: bool,
    /// Mean difference of the RTT from round to round, seconds.
    pub noise: f64,
}

impl Seen {
    /// Return the window without the waiting packets, packets: the BDP, or the flow's part of it.
    pub fn without_queue(&self) -> f64 {
        self.window * self.base / self.rtt
    }
}

/// The next action.
#[derive(Clone, Copy, Debug)]
pub enum Next {
    /// Keep the window.
    Hold,
    /// Set this window, packets.
    Window(f64),
    /// Remove packets to find out whose queue it is.
    Probe(super::probe::Probe),
    /// Compete from this window, packets.
    Compete(f64),
    /// Stop competing; with `longer`, the current RTT becomes the base RTT.
    Leave { longer: bool },
}
