//! A scheme in the shadow: what it decides on hearing what the flow hears, although the flow does something else.

use serde_json::{Map, Value};

use super::super::memory::Memory;
use super::Aim;
use ccgym_core::congestion_control::Control;
use ccgym_core::units::Rate;

/// What the scheme's decision aims at. What it leaves open, window or pacing, follows from the other.
pub(super) fn aim(control: &Control, memory: &Memory) -> Option<Aim> {
    let rate = (control.pacing_rate != Rate::ZERO).then_some(control.pacing_rate.0 as f64);
    let window = (control.cwnd != u64::MAX).then_some(control.cwnd as f64 / memory.mss);
    match (rate, window) {
        (Some(rate), Some(window)) => Some(Aim::Both { rate, window }),
        (Some(rate), None) => Some(Aim::Rate(rate)),
        (None, Some(window)) => Some(Aim::Window(window)),
        (None, None) => None,
    }
}

pub(super) fn describe(scheme: &str, params: &Map<String, Value>) -> String {
    let params = if params.is_empty() { String::new() } else { format!(" with {}", Value::Object(params.clone())) };
    format!("what {scheme}{params} decides in the shadow of the flow, hearing what that hears")
}
