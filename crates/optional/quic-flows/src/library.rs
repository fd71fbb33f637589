//! Congestion controllers of the library by name, and their visible state.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ccgym_net::error::{Error, Result};
use quinn_proto::congestion::{
    BbrConfig, Controller, ControllerFactory, ControllerMetrics, CubicConfig, NewRenoConfig,
};
use quinn_proto::RttEstimator;

/// Factory of controllers, as a transport configuration takes it.
pub type Factory = Arc<dyn ControllerFactory + Send + Sync>;

/// Function that makes a factory.
pub type Make = fn() -> Factory;

/// Controllers of flows `quic:NAME`: name, label, factory. The library's own have their default settings.
/// To add a controller, add one line; no other code has a list of them (`docs/guides/quic.md`).
pub const CONTROLLERS: &[(&str, &str, Make)] = &[
    ("cubic", "Cubic", || Arc::new(CubicConfig::default())),
    ("bbr", "BBR", || Arc::new(BbrConfig::default())),
    ("reno", "Reno", || Arc::new(NewRenoConfig::default())),
];

/// Make the factory of the controller called `name`.
///
/// # Errors
/// No controller has this name.
pub fn find(name: &str) -> Result<Factory> {
    let found = CONTROLLERS.iter().find(|(known, ..)| *known == name);
    found.map(|(.., make)| make()).ok_or_else(|| {
        let names: Vec<_> = CONTROLLERS.iter().map(|(name, ..)| *name).collect();
        Error::of("unknown-choice", "choosing a congestion controller of QUIC", format!("{name:?}"))
            .expected(format!("one of {}", names.join(", ")))
    })
}

/// Counts of what the connection reported to its controller. Bytes are those of datagrams.
#[derive(Clone, Copy, Debug, Default)]
pub struct Counts {
    /// Packets acknowledged.
    pub acked_packets: u64,
    /// Bytes acknowledged.
    pub acked_bytes: u64,
    /// Bytes in flight.
    pub in_flight: u64,
    /// Completed recovery periods (RFC 9002 §7.3.2).
    pub recoveries: u64,
    /// Time spent in them.
    pub recovery_time: Duration,
    /// Times that persistent congestion was established (RFC 9002 §7.6); TCP would have had a timeout.
    pub persistent: u64,
    recovering_since: Option<Instant>,
}

/// Counts that a connection's controller writes and its owner reads.
#[derive(Clone, Default)]
pub struct Watch(Arc<Mutex<Counts>>);

impl Watch {
    /// Make a factory whose controllers are counted here.
    #[must_use]
    pub fn over(&self, factory: Factory) -> Factory {
        Arc::new(WatchedFactory { factory, watch: self.clone() })
    }

    /// Return the current counts.
    #[must_use]
    pub fn counts(&self) -> Counts {
        *self.lock()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        // Counts are never partly written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct WatchedFactory {
    factory: Factory,
    watch: Watch,
}

impl ControllerFactory for WatchedFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        Box::new(Watched { inner: self.factory.clone().build(now, current_mtu), watch: self.watch.clone() })
    }
}

struct Watched {
    inner: Box<dyn Controller>,
    watch: Watch,
}

impl Controller for Watched {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.watch.lock().in_flight += bytes;
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        let mut counts = self.watch.lock();
        counts.acked_packets += 1;
        counts.acked_bytes += bytes;
        if let Some(since) = counts.recovering_since.filter(|&since| sent > since) {
            counts.recovering_since = None;
            counts.recoveries += 1;
            counts.recovery_time += now.saturating_duration_since(since);
        }
        drop(counts);
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, largest: Option<u64>) {
        self.watch.lock().in_flight = in_flight;
        self.inner.on_end_acks(now, in_flight, app_limited, largest);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent_congestion: bool, lost_bytes: u64) {
        let mut counts = self.watch.lock();
        counts.in_flight = counts.in_flight.saturating_sub(lost_bytes);
        counts.persistent += u64::from(is_persistent_congestion);
        counts.recovering_since.get_or_insert(now);
        drop(counts);
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { inner: self.inner.clone_box(), watch: self.watch.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
