//! Limits: time, memory, interrupt. Checked at intervals while events are handled.

use super::Simulator;
use crate::bounds::{before_next_count, Interrupt, MemoryUse, STRIDE};
use crate::flow::{Flow, Reply};
use ccgym_core::Error;
use ccgym_run::recorder::Series;

impl Simulator {
    /// Set a function that is polled at intervals and stops the simulation.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.guard.set_interrupt(interrupt);
    }

    /// Check the limits, and set the number of events until the next check.
    #[cold]
    #[inline(never)]
    pub(super) fn check_limits(&mut self) -> Result<(), Error> {
        let flows = self.flows.len();
        let goes_on = match self.guard.check(self.now, flows) {
            None => false,
            Some(false) => true,
            Some(true) => self.count(before_next_count(flows)),
        };
        if !goes_on {
            self.budget = 0;
            return self.guard.stopped.clone().map_or(Ok(()), Err);
        }
        self.budget = STRIDE;
        Ok(())
    }

    /// Stop after a failed allocation: stop sending, and check the limits at once.
    #[cold]
    pub(super) fn starve(&mut self) -> bool {
        self.guard.starved = true;
        self.budget = 0;
        false
    }

    /// Count the bytes in use, and for `more` further packets; make room for their log. False ends the simulation.
    fn count(&mut self, more: usize) -> bool {
        let memory_use = self.memory_after(more);
        if !self.guard.admit(&memory_use, self.now, self.end) {
            return false;
        }
        let logs = [&mut self.data_log, &mut self.ack_log];
        if logs.into_iter().flatten().all(|log| log.make_room(more)) {
            return true;
        }
        self.guard.starved = true;
        self.guard.admit(&memory_use, self.now, self.end)
    }

    /// Bytes that the simulation holds, and may come to hold before they are counted again.
    pub fn memory_use(&self) -> MemoryUse {
        self.memory_after(before_next_count(self.flows.len()))
    }

    /// Return the memory in use, and needed for `more` further packets.
    fn memory_after(&self, more: usize) -> MemoryUse {
        let held = self.links.iter().map(ccgym_path::Pipeline::held_bytes);
        let (waiting, events) = held.fold((0, 0), |(p, e), (q, f)| (p + q, e + f));
        // Replies that cannot cross a direction at once are boxed.
        let replies = [0, 1].map(|way| self.flows.iter().any(|flow| flow.route.back % 2 == way));
        let boxed = self.links.iter().enumerate().filter(|(link, _)| replies[link % 2]);
        let boxed = boxed.map(|(_, link)| link.under_way()).sum::<usize>() * std::mem::size_of::<Reply>();
        let logs = [&self.data_log, &self.ack_log].into_iter().flatten().map(|log| log.held_bytes(more));
        let series =
            self.series.as_ref().map_or(0, |s| Series::bytes_of(s.t.capacity(), self.flows.len(), s.links.len()));
        // While a ring grows, its old and new copies exist. One ring grows at a time, so the largest counts.
        let rings = self.flows.iter().map(|flow| flow.held_bytes(0)).sum::<usize>();
        let growth = self.flows.iter().map(|flow| flow.held_bytes(more) - flow.held_bytes(0)).max();
        MemoryUse {
            flows: self.flows.len() * std::mem::size_of::<Flow>(),
            in_flight: rings + growth.unwrap_or(0) + waiting + boxed,
            packets: logs.sum(),
            series,
            link_events: events + self.projected,
        }
    }
}
