//! A probe: the flow removes packets of its own from the path and sees what happens to the queue.

/// Why it probes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Start-up ended.
    Started,
    /// A queue stands that is longer than the flow wants it.
    Standing,
    /// The base RTT was not seen for long.
    Age,
    /// It competes, and may be alone.
    Competing,
}

/// Part of the window that a probe leaves where it shall empty a queue that others hold, too.
pub const DEEP_PROBE_FACTOR: f64 = 0.7;
/// A queue that shrinks to this part is gone: it was the flow's own.
const OWN: f64 = 0.3;
/// Seconds of queue that are none.
const EMPTY: f64 = 0.001;
/// Probes after start-up, at most: others may need a while to make room.
const MAX_TRIES: u32 = 4;
/// Others make room if the queue has shrunk to this part since the last probe.
const SHRINKING: f64 = 0.75;
/// A path that became longer shows the same round trip, up to this part of the queue, before and during the probe.
const STEADY_AGE: f64 = 0.05;
const STEADY_STANDING: f64 = 0.1;
/// Two probes that leave the same round trip, up to this part, show the path itself, …
const SAME_RTT_TOLERANCE: f64 = 0.01;
/// … if it is well below the one before.
const WELL_BELOW: f64 = 0.8;

/// The window is reduced for some rounds, since what is acknowledged in the first one had left before.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    pub reason: Reason,
    /// The window meanwhile, packets; one to go on with if the queue is the flow's own; and one to compete with.
    pub reduced: f64,
    pub back: f64,
    pub competition: f64,
    /// Seconds of queue, and round trip, before.
    pub queue: f64,
    pub rtt: f64,
    /// How many there were before it for the same reason.
    pub tries: u32,
    /// Rounds since it began.
    pub rounds: u32,
}

/// What it showed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Verdict {
    /// The queue was the flow's own.
    Own,
    /// There is no queue: the path has become longer.
    Longer,
    /// Others hold the queue.
    Others,
    /// Nothing new.
    Nothing,
    /// Probe once more, with the window reduced from this, packets.
    Again(f64),
}

impl Probe {
    pub fn new(reason: Reason, reduced: f64, back: f64, queue: f64, rtt: f64) -> Self {
        Self { reason, reduced, back, competition: back, queue, rtt, tries: 0, rounds: 0 }
    }

    /// Whether it shall end with the round that has just ended, the n-th since it began.
    pub fn is_over(&self) -> bool {
        self.rounds > if self.reason == Reason::Age { 1 } else { 2 }
    }

    /// The judgment: `rtt` and `base` are seconds now, `noise` how much round trips differ anyway, `span` how far they
    /// were apart in the rounds before the probe, `unheeded` whether the flow's packets in the queue are few.
    pub fn judge(&self, now: &super::round::Seen, span: f64, unheeded: bool, floor: f64, window: f64) -> Verdict {
        let gone = now.queue <= OWN * self.queue || now.queue < EMPTY.max(now.noise);
        match self.reason {
            Reason::Age => {
                let steady = (now.queue - self.queue).abs().max(span) < STEADY_AGE * self.queue;
                if steady && self.queue > 0.05 * now.base {
                    Verdict::Longer
                } else {
                    Verdict::Nothing
                }
            }
            _ if gone => Verdict::Own,
            Reason::Started if unheeded => Verdict::Own,
            // Half of start-up's window may still be too much.
            Reason::Started if self.tries == 0 => Verdict::Again(window * now.base / now.rtt),
            Reason::Started if self.tries < MAX_TRIES && now.queue < SHRINKING * self.queue => {
                Verdict::Again(self.back)
            }
            Reason::Standing if span < STEADY_STANDING * self.queue => Verdict::Longer,
            Reason::Competing
                if now.rtt < WELL_BELOW * self.rtt && (now.rtt - floor).abs() < SAME_RTT_TOLERANCE * now.rtt =>
            {
                Verdict::Longer
            }
            _ => Verdict::Others,
        }
    }
}
