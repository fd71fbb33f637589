//! Responses to a client's requests, one after the other in one flow: request and response, web pages, incast.

use ccgym_core::{Rng, Sender, TimeSpan, Timestamp};
use serde::{Deserialize, Serialize};

use crate::source::write_payload;
use crate::spec::RequestsSpec;

/// A response to a request, or another transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Transfer {
    /// Time of the request, or of arrival.
    pub asked: Timestamp,
    /// Its payload bytes.
    pub bytes: u64,
    /// Time at which it was acknowledged in full; [`Timestamp::NEVER`] if it was not.
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
    /// Time of the next request.
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

    /// Return the responses so far.
    #[must_use]
    pub fn transfers(&self) -> &[Transfer] {
        &self.transfers
    }

    /// Set the next request to `at`.
    pub fn ask(&mut self, at: Timestamp) {
        self.next = at;
    }

    /// Draw the time from a response to the next request.
    pub fn think(&mut self) -> TimeSpan {
        TimeSpan::from_secs_f64(self.rng.exponential(self.spec.think.as_secs_f64()))
    }

    /// Return the group whose flows must all answer before the next request, if there is a next one.
    #[must_use]
    pub fn group(&self) -> Option<u32> {
        self.spec.group.filter(|_| !self.is_over())
    }

    /// True if it has answered, and has no next request.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        !self.next.is_set() && self.transfers.last().is_none_or(|last| last.finished.is_set())
    }

    /// True if no further request will come.
    fn is_over(&self) -> bool {
        self.stopped || self.spec.count.is_some_and(|count| self.transfers.len() as u64 >= count)
    }

    /// Answer a request.
    pub(crate) fn on_event(&mut self, now: Timestamp, sender: &mut Sender) {
        self.next = Timestamp::NEVER;
        if self.is_over() {
            return;
        }
        let bytes = self.spec.size.draw(|| self.rng.uniform());
        self.transfers.push(Transfer { asked: now, bytes, finished: Timestamp::NEVER });
        write_payload(sender, bytes, self.mss, self.header);
    }

    /// Process newly acknowledged data. After a whole response the next request is known, except for a group.
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
