//! A probe: the flow removes packets of its own from the path and measures the queue.

/// Reason of a probe.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reason {
    /// Start-up ended.
    Started,
    /// A standing queue is longer than the flow wants.
    Standing,
    /// The base RTT was not measured for long.
    Age,
    /// The flow competes, and may be alone.
    Competing,
}

/// Factor of a probe on the window, to empty a queue that other flows share.
pub const DEEP_PROBE_FACTOR: f64 = 0.7;
/// A queue that shrinks to this part was the flow's own.
const OWN: f64 = 0.3;
/// Queue that counts as empty, seconds.
const EMPTY: f64 = 0.001;
/// Max probes after start-up: other flows may need time to reduce their windows.
const MAX_TRIES: u32 = 4;
/// Others yield if the queue has shrunk to this part since the last probe.
const SHRINKING: f64 = 0.75;
/// On a path that became longer, the RTT before and during a probe differ by at most this part of the queue.
const STEADY_AGE: f64 = 0.05;
const STEADY_STANDING: f64 = 0.1;
/// If the RTTs of two probes differ by at most this part, they show the path itself, …
const SAME_RTT_TOLERANCE: f64 = 0.01;
/// … if they are below this part of the one before.
const WELL_BELOW: f64 = 0.8;

/// The window is reduced for some rounds, since packets acknowledged in the first one had left before.
#[derive(Clone, Copy, Debug)]
pub struct Probe {
    pub reason: Reason,
    /// Windows during the probe, after it if the queue is the flow's own, and to compete with, packets.
    pub reduced: f64,
    pub back: f64,
    pub competition: f64,
    /// Queue and RTT before the probe, seconds.
    pub queue: f64,
    pub rtt: f64,
    /// Number of previous probes for the same reason.
    pub tries: u32,
    /// Rounds since it began.
    pub rounds: u32,
}

/// Result of a probe.
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

    /// True if it must end with the round that has just ended, the n-th since it began.
    pub fn is_over(&self) -> bool {
        self.rounds > if self.reason == Reason::Age { 1 } else { 2 }
    }

    /// Judge the round `now`: `span` is the spread of RTTs before the probe; `unheeded`: few of the flow's packets wait.
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
