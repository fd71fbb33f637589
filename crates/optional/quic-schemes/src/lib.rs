//! Congestion controllers of quinn that run our schemes and trained policies.
//!
//! ```no_run
//! # use std::sync::Arc;
//! # use ccgym_quinn::SchemeFactory;
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut transport = quinn_proto::TransportConfig::default();
//! transport.congestion_controller_factory(Arc::new(SchemeFactory::new("copa", &Default::default())?));
//! transport.congestion_controller_factory(Arc::new(SchemeFactory::policy("agents/eagle".as_ref())?));
//! # Ok(())
//! # }
//! ```
//!
//! The library reads only a window from a controller, and paces by it. `docs/guides/quic.md` describes the consequences for
//! schemes, and lists the schemes on offer.
//!
//! | module | content |
//! |---|---|
//! | `offer` | check that the library can run a scheme |
//! | `host` | scheme inside a controller |
//! | `departures` | packets in flight, of which the library reports only bytes |
//!
//! Start with [`SchemeFactory`]. May import `ccgym-schemes`, `ccgym-net` for its error and to load policies, and what
//! these may; no crate imports it.
#![cfg(target_os = "linux")]

mod departures;
mod host;
mod offer;

use std::any::Any;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use ccgym_core::{CongestionControl, InitContext, Rng, Timestamp};
use ccgym_net::error::{Error, Result};
use ccgym_net::run::{load_policies, PolicyFiles};
use ccgym_schemes::registry::find;
use ccgym_schemes::{create_with, Resources, SchemeInfo};
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use quinn_proto::RttEstimator;
use serde_json::{Map, Value};

use host::Host;

pub use offer::{offer, Offer, Refusal};

/// Factory of controllers, one for each connection, all of one scheme.
pub struct SchemeFactory {
    scheme: Box<dyn CongestionControl>,
    /// Initial cwnd, packets.
    initial_window: u64,
    connections: AtomicU32,
}

impl SchemeFactory {
    /// Make a factory of the scheme called `name`. Missing parameters have their defaults.
    ///
    /// # Errors
    /// The scheme is unknown, a parameter is wrong, or the library cannot run the scheme.
    pub fn new(name: &str, params: &Map<String, Value>) -> Result<Self> {
        Self::with(name, params, &Resources::default())
    }

    /// Make a factory of the policy in `folder`: `policy.onnx` and `card.json`.
    ///
    /// # Errors
    /// The folder has no policy.
    pub fn policy(folder: &Path) -> Result<Self> {
        let name = folder.display().to_string();
        let files = PolicyFiles { onnx: folder.join("policy.onnx"), card: folder.join("card.json") };
        let resources = load_policies(&[(name.clone(), files)].into())?;
        Self::with("learned", &Map::from_iter([("policy".to_owned(), Value::from(name))]), &resources)
    }

    /// Make a factory as [`SchemeFactory::new`] does, with resources that the host has loaded.
    ///
    /// # Errors
    /// As [`SchemeFactory::new`].
    pub fn with(name: &str, params: &Map<String, Value>, resources: &Resources) -> Result<Self> {
        let place = || format!("choosing {name:?} as a congestion controller of QUIC");
        let mut scheme = create_with(name, params, resources).map_err(|error| error.within(place()))?;
        if let Err(refusal) = offer(&mut *scheme) {
            return Err(Error::of("scheme-unsuitable", place(), format!("a scheme that {refusal}"))
                .expected(format!("one for which {} are enough", refusal.has))
                .hint("docs/guides/quic.md lists the schemes that quinn can run"));
        }
        let info = find(name).map_or(SchemeInfo::DEFAULT, |entry| entry.info);
        let initial_window = u64::from(info.transport.initial_window);
        Ok(Self { scheme, initial_window, connections: AtomicU32::new(0) })
    }
}

impl ControllerFactory for SchemeFactory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let flow = self.connections.fetch_add(1, Ordering::Relaxed);
        let mss = u64::from(current_mtu);
        let context = InitContext {
            now: Timestamp::ZERO,
            mss,
            initial_window: self.initial_window * mss,
            flow,
            rng: Rng::stream(0, "scheme", u64::from(flow)),
            path: None,
        };
        Box::new(SchemeController { origin: now, host: Mutex::new(Host::new(self.scheme.clone(), context)) })
    }
}

/// Scheme as the controller of one connection.
///
/// The library reports an ACK, then the losses that it revealed; a scheme gets both at once. When the library asks for
/// the window, the reports are complete; therefore that call changes the state.
struct SchemeController {
    origin: Instant,
    host: Mutex<Host>,
}

impl SchemeController {
    fn at(&self, instant: Instant) -> Timestamp {
        Timestamp(instant.saturating_duration_since(self.origin).as_nanos() as u64)
    }

    fn host(&mut self) -> &mut Host {
        self.host.get_mut().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, Host> {
        self.host.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Controller for SchemeController {
    fn on_sent(&mut self, now: Instant, bytes: u64, _last_packet_number: u64) {
        let now = self.at(now);
        self.host().on_sent(now, bytes);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, _rtt: &RttEstimator) {
        let (now, sent) = (self.at(now), self.at(sent));
        self.host().on_acked(now, sent, bytes, app_limited);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, app_limited: bool, _largest: Option<u64>) {
        let now = self.at(now);
        self.host().on_end_acks(now, in_flight, app_limited);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, is_persistent_congestion: bool, lost_bytes: u64) {
        let (now, sent) = (self.at(now), self.at(sent));
        self.host().on_congestion(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.host().set_mtu(u64::from(new_mtu));
    }

    fn window(&self) -> u64 {
        self.lock().window()
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut host = self.lock();
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = host.window();
        metrics.ssthresh = host.ssthresh();
        metrics.pacing_rate = host.pacing_rate().map(|rate| rate.0);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { origin: self.origin, host: Mutex::new(self.lock().clone()) })
    }

    fn initial_window(&self) -> u64 {
        self.window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests;
