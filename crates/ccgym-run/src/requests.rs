//! Responses to a client's requests, one after the other in one flow: request and response, web pages, incast.

use ccgym_core::{Rng, Sender, TimeSpan, Timestamp};
use serde::{Deserialize, Serialize};

use crate::spec::{RequestsSpec, SizeSpec};

/// A response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// When it was asked for, and began.
    pub asked: Timestamp,
    /// Its payload bytes.
    pub bytes: u64,
    /// When it was acknowledged in full; [`Timestamp::NEVER`] if it was not.
    pub finished: Timestamp,
}

/// The server of a flow.
#[derive(Clone, Debug)]
pub struct Requests {
    spec: RequestsSpec,
    /// Payload and header bytes of a full packet.
    mss: u32,
    header: u32,
    rng: Rng,
    /// When the next request comes.
    next: Timestamp,
    transfers: Vec<Transfer>,
    stopped: bool,
}

impl Requests {
    pub(crate) fn new(spec: RequestsSpec, mss: u32, header: u32, rng: Rng) -> Self {
        Self { spec, mss, header, rng, next: Timestamp::NEVER, transfers: Vec::new(), stopped: false }
    }

    pub(crate) fn stop(&mut self) {
        self.stopped = true;
        self.next = Timestamp::NEVER;
    }

    pub(crate) const fn next_event(&self) -> Timestamp {
        self.next
    }

    /// The responses so far.
    #[must_use]
    pub fn transfers(&self) -> &[Transfer] {
        &self.transfers
    }

    /// The next request comes at `at`.
    pub fn ask(&mut self, at: Timestamp) {
        self.next = at;
    }

    /// The time from a response to the next request.
    pub fn think(&mut self) -> TimeSpan {
        TimeSpan::from_secs_f64(self.rng.exponential(self.spec.think.as_secs_f64()))
    }

    /// The group whose flows all have to answer before the next request, if there is one to come.
    #[must_use]
    pub fn group(&self) -> Option<u32> {
        self.spec.group.filter(|_| !self.is_over())
    }

    /// Whether it has answered, and knows of no next request.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.next.is_set() && self.transfers.last().is_none_or(|last| last.finished.is_set())
    }

    /// Whether no further request will come.
    fn is_over(&self) -> bool {
        self.stopped || self.spec.count.is_some_and(|count| self.transfers.len() as u64 >= count)
    }

    /// A request has come: answer it.
    pub(crate) fn on_event(&mut self, now: Timestamp, sender: &mut Sender) {
        self.next = Timestamp::NEVER;
        if self.is_over() {
            return;
        }
        let bytes = draw(&self.spec.size, &mut self.rng);
        self.transfers.push(Transfer { asked: now, bytes, finished: Timestamp::NEVER });
        sender.write(bytes / u64::from(self.mss));
        let rest = (bytes % u64::from(self.mss)) as u32;
        if rest > 0 {
            sender.write_short(rest + self.header);
        }
    }

    /// Something was acknowledged: perhaps the whole response. Then the next request is known, but that of a group.
    pub(crate) fn on_settled(&mut self, now: Timestamp, sender: &Sender) {
        let Some(last) = self.transfers.last_mut().filter(|last| !last.finished.is_set()) else { return };
        if self.stopped || !sender.is_finished() {
            return;
        }
        last.finished = now;
        if self.spec.group.is_none() && !self.is_over() {
            self.next = now + self.think();
        }
    }
}

/// A size of one byte or more.
fn draw(size: &SizeSpec, rng: &mut Rng) -> u64 {
    let (drawn, max) = match *size {
        SizeSpec::Constant { bytes } => return bytes,
        SizeSpec::Exponential { mean, max } => (rng.exponential(mean as f64), max),
        SizeSpec::Pareto { min, shape, max } => (min as f64 * (1.0 - rng.uniform()).powf(-1.0 / shape), max),
        SizeSpec::Lognormal { median, sigma, max } => (median as f64 * (sigma * rng.normal()).exp(), max),
    };
    (drawn.round() as u64).clamp(1, max)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_follow_their_law() {
        let drawn = |size: &SizeSpec| {
            let mut rng = Rng::stream(1, "test", 0);
            let mut sizes: Vec<_> = (0..100_001).map(|_| draw(size, &mut rng)).collect();
            sizes.sort_unstable();
            sizes
        };
        let max = 1_000_000_000;
        let mean = |sizes: &[u64]| sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
        assert!(drawn(&SizeSpec::Constant { bytes: 7 }).iter().all(|size| *size == 7));
        assert!((mean(&drawn(&SizeSpec::Exponential { mean: 10_000, max })) / 1e4 - 1.0).abs() < 0.02);
        // Pareto: the median is min · 2^(1/shape), the mean min · shape / (shape − 1).
        let pareto = drawn(&SizeSpec::Pareto { min: 1000, shape: 2.5, max });
        assert_eq!(pareto[0], 1000);
        assert!((pareto[50_000] as f64 / (1000.0 * 2f64.powf(0.4)) - 1.0).abs() < 0.01);
        assert!((mean(&pareto) / (1000.0 * 2.5 / 1.5) - 1.0).abs() < 0.02);
        let lognormal = drawn(&SizeSpec::Lognormal { median: 5000, sigma: 1.0, max: 20_000 });
        assert!((lognormal[50_000] as f64 / 5000.0 - 1.0).abs() < 0.02);
        assert_eq!(lognormal[100_000], 20_000, "none is larger than the largest");
        // e^(−ln 4) = 1/4 of the sizes below the median's quarter at z = −ln 4: Φ(−1.386) = 8.3 %.
        assert!((lognormal.iter().filter(|size| **size < 1250).count() as f64 / 1e5 - 0.083).abs() < 0.005);
    }
}
