//! Limits: time, memory, interrupt. Looks at them now and then while events are handled.

use super::Simulator;
use crate::bounds::{before_next_count, Interrupt, MemoryUse, STRIDE};
use crate::flow::{Flow, Reply};
use ccgym_core::SpecError;
use ccgym_run::recorder::Series;

impl Simulator {
    /// Ask `interrupt` now and then whether to stop.
    pub fn set_interrupt(&mut self, interrupt: Interrupt) {
        self.guard.set_interrupt(interrupt);
    }

    /// See whether to go on, and for how long.
    #[cold]
    #[inline(never)]
    pub(super) fn look(&mut self) -> Result<(), SpecError> {
        let flows = self.flows.len();
        let goes_on = match self.guard.look(self.now, flows) {
            None => false,
            Some(false) => true,
            Some(true) => self.count(before_next_count(flows)),
        };
        if !goes_on {
            self.fuel = 0;
            return self.guard.stopped.clone().map_or(Ok(()), Err);
        }
        self.fuel = STRIDE;
        Ok(())
    }

    /// Memory was refused: stop sending, and stop at the next look, which is now.
    #[cold]
    pub(super) fn starve(&mut self) -> bool {
        self.guard.starved = true;
        self.fuel = 0;
        false
    }

    /// Count what is held, and what will be before `more` further packets; make room for their log. False ends it all.
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

    /// What is held, and what will be while it grows before `more` further packets.
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
        // A ring that grows is there twice for a moment. One does at a time, and the largest counts.
        let rings = self.flows.iter().map(|flow| flow.held_bytes(0)).sum::<usize>();
        let growth = self.flows.iter().map(|flow| flow.held_bytes(more) - flow.held_bytes(0)).max();
        MemoryUse {
            flows: self.flows.len() * std::mem::size_of::<Flow>(),
            in_flight: rings + growth.unwrap_or(0) + waiting + boxed,
            packets: logs.sum(),
            series,
            link_events: events + self.foreseen,
        }
    }
}
