//! A round trip's worth of acknowledgements.

use ccgym_core::{AckEvent, PacketNumber, TimeSpan, Timestamp};

/// A round has at least this many round-trip samples, …
pub const MIN_SAMPLES: u32 = 16;
/// … or lasts this many round trips.
const MAX_PASSES: u32 = 4;
/// Min length of a block. Longer than most bursts of acknowledgements, since its minimum shall show none; but not much longer
/// than short round trips, whose rounds are a block each: the minimum over a longer time is lower.
const BLOCK: TimeSpan = TimeSpan::from_millis(30);

/// Round trips that differ by more than this part of the base RTT come in lumps, of which only the shortest show the queue.
const LUMPY: f64 = 0.5;

/// The round under way.
///
/// Its blocks have equal lengths in time, whatever the round trip: flows of different round trips on one link then see the
/// same queue.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// A packet number: acknowledging it ends a round trip.
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
    /// Whether the window limited sending at some time.
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
    /// A round whose first round trip ends with packet `end`.
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

    /// Take a round trip, in seconds.
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

    /// Let it end with this acknowledgement, with `rtt` for its round trip.
    pub fn cut(&mut self, rtt: f64) {
        self.end = 0;
        self.min = rtt;
    }

    /// The round that this acknowledgement ends, if it does; `any`: also one of few samples.
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

    /// The round trip without what comes and goes, in seconds: the mean over blocks of their minima, or the minimum of all
    /// where they come in lumps.
    pub fn standing(&self, base: f64) -> f64 {
        if self.blocks == 0 || self.max - self.min > LUMPY * base {
            self.min
        } else {
            self.sum / f64::from(self.blocks)
        }
    }
}

/// Packets that a flow wants in the queue.
#[derive(Clone, Copy, Debug)]
pub struct Wants {
    /// With its gain and the queue raise.
    pub now: f64,
    /// When the queue raise is over.
    pub lasting: f64,
    /// With a gain of 1, before any loss.
    pub own: f64,
}

/// What a round showed.
#[derive(Clone, Copy, Debug)]
pub struct Seen {
    pub now: Timestamp,
    /// Base RTT, seconds.
    pub base: f64,
    /// Round trip, seconds: the standing one where the flow is alone, else the minimum.
    pub rtt: f64,
    /// How far the round trips of the round are apart, seconds.
    pub spread: f64,
    /// `rtt` − `base`.
    pub queue: f64,
    /// The window that the round's packets left with, packets.
    pub window: f64,
    /// Delivery rate that this makes, packets/s.
    pub rate: f64,
    /// Packets of the flow in the queue.
    pub waiting: f64,
    pub wants: Wants,
    /// Fraction of packets lost, and packets.
    pub loss: f64,
    pub lost: u64,
    /// More than the path usually loses.
    pub excess: bool,
    /// Whether the window limited sending.
    pub limited: bool,
    /// How much round trips differ from round to round, seconds.
    pub noise: f64,
}

impl Seen {
    /// The window without what waits, packets: the bandwidth-delay product, or the flow's part of it.
    pub fn without_queue(&self) -> f64 {
        self.window * self.base / self.rtt
    }
}

/// What to do next.
#[derive(Clone, Copy, Debug)]
pub enum Next {
    /// Nothing.
    Hold,
    /// Go to this window, packets.
    Window(f64),
    /// Remove packets to see whose queue it is.
    Probe(super::probe::Probe),
    /// Compete, from this window.
    Compete(f64),
    /// Compete no longer; with `longer`, the base RTT has become the present round trip.
    Leave { longer: bool },
}
