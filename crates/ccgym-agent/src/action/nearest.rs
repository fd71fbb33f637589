//! The inverse of an action: finds the one nearest to a target rate or window.

use super::super::expressions::Values;
use super::super::memory::Memory;
use super::super::spec::Distance;
use super::map::Quantity;
use super::{Actions, Actuator, Map};

/// A target pacing rate and window, both positive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ControlTarget {
    /// bit/s.
    pub rate: f64,
    /// Packets.
    pub window: f64,
}

/// A quantity that an action changes.
struct Part {
    quantity: Quantity,
    low: f64,
    high: f64,
    target: f64,
}

impl Part {
    /// Return the part with the target of the map for which the smoothed result is the target.
    fn before_smoothing(&self, keep: f64) -> Self {
        Self { target: (self.target - keep * self.quantity.value) / (1.0 - keep), ..*self }
    }
}

impl Actions {
    /// Return the numbers of the action whose result is nearest to `target`, which is clamped to the limits. If limits
    /// make several actions equal, the one that exceeds them least is taken, then the first.
    pub(crate) fn nearest(
        &self,
        actuator: &Actuator,
        target: ControlTarget,
        distance: Distance,
        memory: &Memory,
        values: &Values,
    ) -> [f64; 2] {
        let parts = self.parts(actuator, target, memory);
        let Some(choices) = self.map.choices() else {
            let mut numbers = [0.0; 2];
            let keep = self.keep(memory);
            for part in &parts {
                let part = &part.before_smoothing(keep);
                let number = invert(&self.map, part).clamp(self.bounds[0], self.bounds[1]);
                numbers[if self.map.size() > 1 { part.quantity.component } else { 0 }] = number;
            }
            return numbers;
        };
        let mut best = (f64::INFINITY, f64::INFINITY, 0);
        for (choice, (clamped, raw)) in self.distances(choices, &parts, distance, memory, values).enumerate() {
            // Results that differ only by rounding are equal.
            let slack = 1e-9 * best.0;
            if clamped < best.0 - slack || (clamped <= best.0 + slack && raw < best.1) {
                best = (clamped, raw, choice);
            }
        }
        [best.2 as f64, 0.0]
    }

    /// Return the distance from `target` to the result of each listed action, both clamped to the limits; empty for
    /// actions that are real numbers.
    pub(crate) fn each_distance(
        &self,
        actuator: &Actuator,
        target: ControlTarget,
        distance: Distance,
        memory: &Memory,
        values: &Values,
    ) -> Vec<f64> {
        let parts = self.parts(actuator, target, memory);
        let choices = self.map.choices().unwrap_or(0);
        self.distances(choices, &parts, distance, memory, values).map(|(clamped, _)| clamped).collect()
    }

    /// Return the distance of each choice's result from the target, clamped to the limits and unclamped.
    fn distances<'a>(
        &'a self,
        choices: usize,
        parts: &'a [Part],
        distance: Distance,
        memory: &'a Memory,
        values: &'a Values,
    ) -> impl Iterator<Item = (f64, f64)> + 'a {
        (0..choices).map(move |choice| {
            parts.iter().fold((0.0, 0.0), |(clamped, raw), part| {
                let result = self.outcome([choice as f64, 0.0], part.quantity, memory, values);
                (
                    clamped + distance_between(distance, result.clamp(part.low, part.high), part.target),
                    raw + distance_between(distance, result, part.target),
                )
            })
        })
    }

    /// Return the quantities that an action changes, each with its target.
    fn parts(&self, actuator: &Actuator, target: ControlTarget, memory: &Memory) -> Vec<Part> {
        let part = |value: f64, packet: f64, component: usize, [low, high]: [f64; 2], target| {
            let quantity = Quantity { value, packet, component };
            Part { quantity, low, high, target: f64::clamp(target, low, high) }
        };
        let rates = [self.rate_floor(memory), self.limits.rate[1]];
        let packet = memory.packet_per_min_rtt();
        let rate = self.target.has_rate().then(|| part(actuator.rate, packet, 0, rates, target.rate));
        let before = if self.overwrites { memory.inner_window } else { actuator.window };
        let window = self.target.has_window().then(|| part(before, 1.0, 1, self.limits.window, target.window));
        rate.into_iter().chain(window).collect()
    }
}

fn distance_between(distance: Distance, result: f64, target: f64) -> f64 {
    match distance {
        Distance::Linear => (result - target).abs(),
        Distance::Log => (result.max(f64::MIN_POSITIVE) / target).ln().abs(),
    }
}

/// Return the real number with which `map` takes a quantity to its target; 0 if none does.
fn invert(map: &Map, part: &Part) -> f64 {
    let ratio = part.target / part.quantity.value;
    let number = match map {
        _ if ratio <= 0.0 => f64::NEG_INFINITY,
        Map::SignedMultiply(delta) | Map::Pair(delta) if ratio >= 1.0 => (ratio - 1.0) / delta,
        Map::SignedMultiply(delta) | Map::Pair(delta) => (1.0 - 1.0 / ratio) / delta,
        Map::Exponential(base) => ratio.ln() / base.ln(),
        Map::Discrete(_) | Map::GainOnEstimate { .. } | Map::Passive => 0.0,
    };
    if number.is_nan() {
        0.0
    } else {
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::expressions::Expressions;
    use serde_json::{json, Value};

    /// Make actions of `spec`, and an actuator at 10 Mbit/s and 40 packets.
    fn made(spec: Value) -> (Actions, Actuator, Values) {
        let mut expressions = Expressions::default();
        let spec = serde_json::from_value(spec).expect("an action");
        let actions = Actions::new(&spec, &mut expressions).expect("a valid action");
        let actuator = Actuator { rate: 1e7, window: 40.0, ..Actuator::new() };
        (actions, actuator, Values::new(&expressions))
    }

    fn nearest(spec: Value, target: ControlTarget, distance: Distance) -> [f64; 2] {
        let (actions, actuator, values) = made(spec);
        let mut memory = Memory::new(1500);
        (memory.min_rtt, memory.inner_window) = (0.1, 50.0);
        actions.nearest(&actuator, target, distance, &memory, &values)
    }

    fn window(packets: f64) -> ControlTarget {
        ControlTarget { rate: 1e6, window: packets }
    }

    fn rate(mbps: f64) -> ControlTarget {
        ControlTarget { rate: mbps * 1e6, window: 1.0 }
    }

    #[test]
    fn listed_operations() {
        let operations = json!({"kind": "discrete", "operations": ["/2", "-10", "+0", "+10", "*2"]});
        let spec = json!({"map": operations, "target": "cwnd"});
        for (wanted, linear, log) in
            [(20.0, 0, 0), (26.0, 1, 1), (44.0, 2, 2), (46.0, 3, 3), (64.0, 3, 4), (66.0, 4, 4)]
        {
            let found = |distance| nearest(spec.clone(), window(wanted), distance)[0] as i32;
            assert_eq!((found(Distance::Linear), found(Distance::Log)), (linear, log), "{wanted}");
        }
        // Limits make the first three equal: the one that exceeds them least is taken.
        let floor = json!({"map": operations, "target": "cwnd", "limits": {"window": [40, 100]}});
        assert_eq!(nearest(floor, window(7.0), Distance::Linear)[0], 2.0);
        // Amounts of a rate are packets per minimum RTT: 10 are 1.2 Mbit/s.
        let rates = json!({"map": operations, "target": "rate"});
        assert_eq!(nearest(rates.clone(), rate(11.0), Distance::Log)[0], 3.0);
        // Both: the sum of the distances decides.
        let both = json!({"map": operations, "target": "both"});
        let target = ControlTarget { rate: 3e7, window: 50.0 };
        assert_eq!(nearest(both, target, Distance::Log)[0], 4.0);
    }

    #[test]
    fn smoothing_counts() {
        // At a minimum RTT of 100 ms three quarters of the 40 packets are kept: doubling makes 50, halving 35.
        let map = json!({"kind": "discrete", "operations": ["/2", "+0", "*2"]});
        let smoothing = json!([{"min_rtt": 0, "keep": 0.0}, {"min_rtt": 100_000_000, "keep": 0.75},
                               {"min_rtt": 200_000_000, "keep": 0.9}]);
        let spec = json!({"map": map, "target": "cwnd", "smoothing": smoothing});
        for (wanted, choice) in [(37.0, 0.0), (38.0, 1.0), (44.0, 1.0), (46.0, 2.0)] {
            assert_eq!(nearest(spec.clone(), window(wanted), Distance::Linear)[0], choice, "{wanted}");
        }
        let (actions, actuator, values) = made(spec);
        let mut memory = Memory::new(1500);
        memory.min_rtt = 0.1;
        let found = actions.each_distance(&actuator, window(50.0), Distance::Linear, &memory, &values);
        assert_eq!(found, [15.0, 10.0, 0.0]);
        let real = json!({"kind": "exponential", "base": 2.0});
        let spec = json!({"map": real, "target": "cwnd", "bounds": [-3, 3], "smoothing": smoothing});
        assert!((nearest(spec, window(50.0), Distance::Linear)[0] - 1.0).abs() < 1e-9);
    }

    #[test]
    fn gains_on_an_estimate() {
        let map = json!({"kind": "gain_on_estimate", "gains": [0.75, 1.0, 1.25], "estimate": "max(delivery_rate, 10)"});
        let (actions, actuator, mut values) = made(json!({"map": map, "target": "rate"}));
        let memory = Memory::new(1500);
        let found = |values: &Values, mbps| actions.nearest(&actuator, rate(mbps), Distance::Log, &memory, values)[0];
        // An unknown estimate changes nothing, at any gain.
        assert_eq!(found(&values, 50.0), 0.0);
        values = values.with(0, 4e7);
        for (mbps, index) in [(1.0, 0.0), (34.0, 0.0), (35.0, 1.0), (44.0, 1.0), (45.0, 2.0), (900.0, 2.0)] {
            assert_eq!(found(&values, mbps), index, "{mbps}");
        }
    }

    #[test]
    fn real_numbers_by_inversion() {
        let near = |spec: Value, target: ControlTarget, wanted: [f64; 2]| {
            let found = nearest(spec.clone(), target, Distance::Log);
            assert!(found.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-9), "{spec}: {found:?}, not {wanted:?}");
        };
        let spec = |map: Value| json!({"map": map, "target": "rate", "bounds": [-2, 3]});
        let signed = spec(json!({"kind": "signed_multiply", "delta": 0.5}));
        near(signed.clone(), rate(20.0), [2.0, 0.0]);
        near(signed.clone(), rate(5.0), [-2.0, 0.0]);
        near(signed.clone(), rate(10.0), [0.0, 0.0]);
        near(signed.clone(), rate(900.0), [3.0, 0.0]);
        near(signed, rate(0.1), [-2.0, 0.0]);
        let exponential = spec(json!({"kind": "exponential", "base": 2.0}));
        near(exponential.clone(), rate(20.0), [1.0, 0.0]);
        near(exponential, rate(2.5), [-2.0, 0.0]);
        let pair = json!({"map": {"kind": "pair", "delta": 0.5}, "target": "both", "bounds": [-4, 4]});
        near(pair, ControlTarget { rate: 2e7, window: 20.0 }, [2.0, -2.0]);
    }

    #[test]
    fn the_window_of_a_base_scheme() {
        let map = json!({"kind": "exponential", "base": 2.0});
        let spec = json!({"map": map, "target": "cwnd", "bounds": [-4, 4], "inner": {"scheme": "cubic"}});
        // The base scheme has 50 packets.
        assert_eq!(nearest(spec, window(100.0), Distance::Log)[0], 1.0);
        let passive = json!({"map": {"kind": "passive"}, "target": "cwnd", "inner": {"scheme": "cubic"}});
        assert_eq!(nearest(passive, window(100.0), Distance::Log), [0.0, 0.0]);
    }
}
