//! FQ-CoDel (RFC 8290): deficit round robin over flow queues, new flows first, each under CoDel.
//!
//! Flows are the datagrams' flow indices, hashed with a perturbation drawn from the seed.

use std::collections::VecDeque;

use ccgym_core::rng::Rng;
use ccgym_core::units::Timestamp;

use crate::link::waiting::Limits;
use crate::queue::control_law::ControlLaw;
use crate::queue::store::Store;
use crate::queue::{QueueDiscipline, Queued};
use crate::spec::LimitSpec;

/// Max packets dropped at once over the limit (RFC 8290 §4.1).
const DROP_BATCH: usize = 64;

#[derive(Clone, Debug)]
struct FlowQueue {
    store: Store,
    law: ControlLaw,
    deficit: i64,
    /// True if in the list of new or old flows.
    listed: bool,
}

/// Flow queues under one limit.
#[derive(Clone, Debug)]
pub struct FqCodel {
    flows: Vec<FlowQueue>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    limits: Limits,
    quantum: i64,
    perturbation: u64,
    packets: u64,
    bytes: u64,
}

impl FqCodel {
    /// Make it empty, with `flows` queues (at least one), each under a clone of `law`.
    pub fn new(limit: &LimitSpec, law: ControlLaw, quantum: u32, flows: u32, seed: u64, index: u64) -> Self {
        let queue = FlowQueue { store: Store::default(), law, deficit: 0, listed: false };
        Self {
            flows: vec![queue; flows.max(1) as usize],
            new: VecDeque::new(),
            old: VecDeque::new(),
            limits: limit.into(),
            quantum: i64::from(quantum.max(1)),
            perturbation: Rng::stream(seed, "queue/fq_codel", index).next_u64(),
            packets: 0,
            bytes: 0,
        }
    }

    fn bucket(&self, flow: u32) -> usize {
        // Two rounds of multiply and fold spread consecutive flow indices.
        let mut h = u64::from(flow) ^ self.perturbation;
        for _ in 0..2 {
            h = (h ^ (h >> 32)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
        ((u128::from(h) * self.flows.len() as u128) >> 64) as usize
    }

    fn forget(&mut self, packet: &Queued) {
        self.packets -= 1;
        self.bytes -= u64::from(packet.wire);
    }

    /// Drop from the head of the queue with the most bytes: half of its bytes, at most a batch.
    fn shed(&mut self, dropped: &mut Vec<Queued>) {
        let Some(fattest) = (0..self.flows.len()).max_by_key(|&i| (self.flows[i].store.bytes(), usize::MAX - i)) else {
            return;
        };
        let enough = self.flows[fattest].store.bytes() / 2;
        for _ in 0..DROP_BATCH {
            let Some(packet) = self.flows[fattest].store.pop() else { return };
            self.forget(&packet);
            dropped.push(packet);
            if self.flows[fattest].store.bytes() <= enough {
                return;
            }
        }
    }
}

impl QueueDiscipline for FqCodel {
    fn enqueue(&mut self, _now: Timestamp, packet: Queued, dropped: &mut Vec<Queued>) -> bool {
        let index = self.bucket(packet.datagram.flow);
        let flow = &mut self.flows[index];
        flow.law.observe(packet.wire);
        flow.store.push(packet);
        self.packets += 1;
        self.bytes += u64::from(packet.wire);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.quantum;
            self.new.push_back(index);
        }
        while !self.limits.hold(self.packets, self.bytes) {
            self.shed(dropped);
            // Heads are dropped first: the arrival was dropped exactly if its queue is empty.
            if self.flows[index].store.is_empty() {
                let gone = dropped.iter().rposition(|p| p.datagram.id == packet.datagram.id);
                if let Some(position) = gone {
                    dropped.remove(position);
                }
                while !self.limits.hold(self.packets, self.bytes) {
                    self.shed(dropped);
                }
                return false;
            }
        }
        true
    }

    fn dequeue(&mut self, now: Timestamp, dropped: &mut Vec<Queued>) -> Option<Queued> {
        loop {
            let from_new = !self.new.is_empty();
            let index = *self.new.front().or_else(|| self.old.front())?;
            let flow = &mut self.flows[index];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                if from_new {
                    self.new.pop_front()
                } else {
                    self.old.pop_front()
                };
                self.old.push_back(index);
                continue;
            }
            let dropped_before = dropped.len();
            let packet = flow.law.next(now, &mut flow.store, dropped);
            if let Some(p) = &packet {
                flow.deficit -= i64::from(p.wire);
            }
            for lost in &dropped[dropped_before..] {
                self.packets -= 1;
                self.bytes -= u64::from(lost.wire);
            }
            if let Some(p) = packet {
                self.forget(&p);
                return Some(p);
            }
            if from_new {
                // An emptied new flow must wait one round, so that it cannot starve the old ones.
                self.new.pop_front();
                self.old.push_back(index);
            } else {
                self.old.pop_front();
                self.flows[index].listed = false;
            }
        }
    }

    fn backlog(&self) -> (u64, u64) {
        (self.packets, self.bytes)
    }

    fn marked(&self) -> u64 {
        self.flows.iter().map(|flow| flow.store.marked).sum()
    }
}
