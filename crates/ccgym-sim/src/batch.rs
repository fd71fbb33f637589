//! Many simulators stepped together, on all cores.

use ccgym_core::congestion_control::CongestionControl;
use ccgym_core::{MonitorInterval, TimeSpan};

use crate::bounds::{Interrupt, Stopped};
use crate::pool::Pool;
use crate::simulator::Simulator;

/// N independent simulators. Each owns its random streams, so the outcome does not depend on the number of threads.
pub struct BatchSimulator {
    simulators: Vec<Simulator>,
    pool: Pool,
}

impl BatchSimulator {
    /// A batch on `threads` threads (0: one per core; 1: the calling thread).
    ///
    /// # Errors
    /// The threads cannot be started.
    pub fn new(simulators: Vec<Simulator>, threads: usize) -> Result<Self, rayon::ThreadPoolBuildError> {
        Ok(Self { simulators, pool: Pool::new(threads)? })
    }

    /// Ask `interrupt` now and then, in the thread that waits and in those that simulate, whether to stop.
    pub fn set_interrupt(&mut self, interrupt: &Interrupt) {
        self.simulators.iter_mut().for_each(|s| s.set_interrupt(interrupt.clone()));
        self.pool.set_interrupt(interrupt.clone());
    }

    /// Number of simulators.
    #[must_use]
    pub fn len(&self) -> usize {
        self.simulators.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.simulators.is_empty()
    }

    /// The simulators.
    #[must_use]
    pub fn simulators(&self) -> &[Simulator] {
        &self.simulators
    }

    /// The simulators, to replace or steer one by one.
    pub fn simulators_mut(&mut self) -> &mut [Simulator] {
        &mut self.simulators
    }

    /// Call `f` with each simulator, its index and its own part of `out` (`out` is divided evenly), in parallel.
    ///
    /// # Panics
    /// `out` must be a multiple of the number of simulators.
    pub fn for_each<T: Send>(&mut self, out: &mut [T], f: impl Fn(usize, &mut Simulator, &mut [T]) + Sync + Send) {
        if self.simulators.is_empty() {
            return;
        }
        assert_eq!(out.len() % self.simulators.len(), 0, "the output must divide evenly over the simulators");
        let width = out.len() / self.simulators.len();
        // An empty chunk size is refused, so an output without cells is divided by hand.
        let parts = out.chunks_mut(width.max(1)).map(Some).chain(std::iter::repeat_with(|| None));
        let work = self.simulators.iter_mut().zip(parts).enumerate();
        self.pool.for_each(work, |(i, (s, o))| f(i, s, o.unwrap_or_default()));
    }

    /// Advance each simulator by `step` (one length for each) and return the monitor interval of each one's `flow`.
    ///
    /// # Errors
    /// Of the first simulator that could not: see [`Simulator::run_until`].
    pub fn step(&mut self, steps: &[TimeSpan], flow: usize) -> Result<Vec<MonitorInterval>, Stopped> {
        let mut out: Vec<Option<Result<MonitorInterval, Stopped>>> = vec![None; self.simulators.len()];
        self.for_each(&mut out, |i, s, o| {
            let until = s.now() + steps[i];
            o[0] = Some(s.run_until(until).map(|()| s.take_interval(flow)));
        });
        out.into_iter().flatten().collect()
    }

    /// Steer the scheme of `flow` in simulator `index` from outside.
    pub fn with_cca(&mut self, index: usize, flow: usize, f: impl FnOnce(&mut dyn CongestionControl)) {
        self.simulators[index].with_cca(flow, f);
    }
}
