//! Estimate the relation of two machines' clocks from packets in both directions.
//!
//! Let B's clock read `a + offset + drift · a` when A's reads `a`. By B's clock, a packet from A to B arrives at this
//! time or later, and a packet from B to A was sent at this time or earlier. So the line lies below all packets of one
//! direction and above all of the other. For each slope, the two nearest packets bound a band. Its width is the min
//! delay there plus the min delay back. The right slope has the widest band, since any other one tilts some packet
//! into it. The offset is the middle of the band: right if both directions take equally long, otherwise wrong by max
//! half its width. More is impossible without a third clock (RFC 5905, section 8).

/// Max drift between machines' clocks: crystals are within 100 ppm, and adjusted by max 500 ppm.
const MAX_DRIFT: f64 = 1e-3;
/// Widths that differ by less count as equal, ns: timestamps of a busy machine are no better. Of slopes with equal
/// widths the flattest is chosen, so that jitter in a short run does not look like drift.
const SAME: f64 = 20_000.0;
/// Steps of a search: each keeps two thirds of the range.
const STEPS: usize = 90;

/// Packet: A's clock, and the lead of B's clock over it, at the two ends of its way, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Point {
    x: f64,
    y: f64,
}

/// Relation of B's clock to A's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClockRelation {
    /// B's clock minus A's when A's reads zero, ns.
    pub offset_ns: f64,
    /// Relative speed of B's clock minus 1.
    pub drift: f64,
    /// Max error of the offset, ns: half of the min RTT.
    pub bound_ns: f64,
}

impl ClockRelation {
    /// Return A's clock when B's reads `b`, ns.
    #[must_use]
    pub fn to_a(&self, b: f64) -> f64 {
        (b - self.offset_ns) / (1.0 + self.drift)
    }

    /// Replace the offset by one from elsewhere, such as a time server's.
    #[must_use]
    pub const fn with_offset(self, offset_ns: f64) -> Self {
        Self { offset_ns, ..self }
    }

    /// True if the offset is possible: with it no packet arrives before it was sent.
    #[must_use]
    pub fn admits(&self, offset_ns: f64) -> bool {
        (offset_ns - self.offset_ns).abs() <= self.bound_ns
    }
}

/// Estimate the relation of B's clock to A's.
///
/// # Arguments
/// * `there` - packets from A to B: sent by A's clock, arrived by B's, ns
/// * `back` - packets from B to A: sent by B's clock, arrived by A's, ns
///
/// `None` if one direction has no packet.
pub fn relate(
    there: impl IntoIterator<Item = (u64, u64)>,
    back: impl IntoIterator<Item = (u64, u64)>,
) -> Option<ClockRelation> {
    let point = |a: u64, b: u64| Point { x: a as f64, y: (i128::from(b) - i128::from(a)) as f64 };
    let above = lower_hull(there.into_iter().map(|(sent, arrived)| point(sent, arrived)).collect());
    // The upper hull is the mirrored lower hull of the mirrored points.
    let below = lower_hull(
        back.into_iter().map(|(sent, arrived)| point(arrived, sent)).map(|p| Point { x: p.x, y: -p.y }).collect(),
    );
    if above.is_empty() || below.is_empty() {
        return None;
    }
    let least = |hull: &[Point], slope: f64| hull.iter().map(|p| p.y - slope * p.x).fold(f64::INFINITY, f64::min);
    let band = |drift: f64| (least(&above, drift), -least(&below, -drift));
    let width = |drift: f64| {
        let (high, low) = band(drift);
        high - low
    };
    let drift = flattest_maximum(&width);
    let (high, low) = band(drift);
    Some(ClockRelation { offset_ns: (high + low) / 2.0, drift, bound_ns: ((high - low) / 2.0).max(0.0) })
}

/// Find the maximum of a concave function of the drift; of several equal maxima the one nearest to zero.
fn flattest_maximum(width: &impl Fn(f64) -> f64) -> f64 {
    let (mut low, mut high) = (-MAX_DRIFT, MAX_DRIFT);
    for _ in 0..STEPS {
        let third = (high - low) / 3.0;
        let (a, b) = (low + third, high - third);
        if width(a) < width(b) {
            low = a;
        } else {
            high = b;
        }
    }
    let best = (low + high) / 2.0;
    let enough = width(best) - SAME;
    if width(0.0) >= enough {
        return 0.0;
    }
    // Search between `far`, which is too far, and `near`, which is good enough.
    let (mut far, mut near) = (0.0, best);
    for _ in 0..STEPS {
        let middle = (far + near) / 2.0;
        if width(middle) >= enough {
            near = middle;
        } else {
            far = middle;
        }
    }
    near
}

/// Return the corners of the lower convex hull, from left to right.
fn lower_hull(mut points: Vec<Point>) -> Vec<Point> {
    points.sort_by(|p, q| p.x.total_cmp(&q.x).then(p.y.total_cmp(&q.y)));
    let mut hull: Vec<Point> = Vec::new();
    for p in points {
        while let [.., a, b] = hull[..] {
            // True if b lies below the line from a to p.
            if (b.x - a.x) * (p.y - a.y) - (b.y - a.y) * (p.x - a.x) > 0.0 {
                break;
            }
            hull.pop();
        }
        // Of points with equal x, the lowest was added first.
        if hull.last().is_none_or(|last| last.x < p.x) {
            hull.push(p);
        }
    }
    hull
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;
    type Stamps = Vec<(u64, u64)>;

    /// Make packets every millisecond for some seconds, with the delays that `delay` returns, by two clocks.
    fn packets(offset: i64, drift: f64, seconds: u64, delay: impl Fn(u64) -> (u64, u64)) -> (Stamps, Stamps) {
        let b = |a: u64| (a as i64 + offset + (drift * a as f64) as i64) as u64;
        let sent = |k: u64| SECOND + k * 1_000_000;
        let count = seconds * 1000;
        let there = (0..count).map(|k| (sent(k), b(sent(k) + delay(k).0))).collect();
        let back = (0..count).map(|k| (b(sent(k)), sent(k) + delay(k).1)).collect();
        (there, back)
    }

    #[test]
    fn equal_delays_give_the_offset_and_the_drift() {
        // One direction has a queue that fills and empties; both have jitter.
        let delay = |k: u64| (20_000_000 + (k % 7) * 3000 + (k % 2000) * 10_000, 20_000_000 + (k % 5) * 2000);
        let (there, back) = packets(7_200_000_000_000, 50e-6, 20, delay);
        let found = relate(there, back).unwrap();
        assert!((found.offset_ns - 7_200e9).abs() < 20_000.0, "{found:?}");
        assert!((found.drift - 50e-6).abs() < 1.5e-6, "{found:?}");
        assert!((found.bound_ns - 20e6).abs() < 20_000.0, "{found:?}");
        assert!((found.to_a(7_205e9 + 5e9 * 50e-6) - 5e9).abs() < 30_000.0);
    }

    #[test]
    fn unequal_delays_shift_the_offset_by_half_of_the_difference() {
        let (there, back) = packets(-400_000_000, 0.0, 5, |_| (40_000_000, 10_000_000));
        let found = relate(there, back).unwrap();
        assert!((found.offset_ns - (-400e6 + 15e6)).abs() < 10.0, "{found:?}");
        assert_eq!(found.drift, 0.0);
        assert!((found.bound_ns - 25e6).abs() < 10.0);
        // A time server's offset is possible; an offset of an hour is not.
        assert!(found.admits(-400e6) && !found.admits(3600e9) && !found.admits(-400e6 - 11e6));
        assert!((found.with_offset(-400e6).to_a(600e6) - 1e9).abs() < 1.0);
    }

    #[test]
    fn one_direction_is_not_enough() {
        let (there, back) = packets(0, 0.0, 1, |_| (1, 1));
        assert_eq!(relate(there, []), None);
        assert_eq!(relate([], back), None);
    }

    #[test]
    fn a_few_packets_back_are_enough() {
        let (there, back) = packets(5_000_000, -100e-6, 10, |k| (9_000_000 + (k % 100) * 50_000, 9_000_000));
        let found = relate(there, back.into_iter().step_by(2500)).unwrap();
        assert!((found.offset_ns - 5e6).abs() < 200_000.0 && (found.drift + 100e-6).abs() < 20e-6, "{found:?}");
    }

    proptest! {
        #[test]
        fn the_offset_is_right_up_to_the_bound_and_no_packet_arrives_too_early(
            offset in -10_000_000_000_000_i64..10_000_000_000_000,
            ppm in -500.0..500.0,
            there in prop::collection::vec(1_000_u64..300_000_000, 20..60),
            back in prop::collection::vec(1_000_u64..300_000_000, 20..60),
        ) {
            let start = 20_000 * SECOND;
            let b = |a: u64| (a as i64 + offset + (ppm * 1e-6 * (a - start) as f64) as i64) as u64;
            let sent = |k: usize| start + k as u64 * 100_000_000;
            let forth: Vec<_> = there.iter().enumerate().map(|(k, d)| (sent(k), b(sent(k) + d))).collect();
            let home: Vec<_> = back.iter().enumerate().map(|(k, d)| (b(sent(k)), sent(k) + d)).collect();
            let found = relate(forth.clone(), home.clone()).unwrap();
            let least = |delays: &[u64]| *delays.iter().min().unwrap() as f64;
            prop_assert!(found.bound_ns * 2.0 + 2.0 >= least(&there) + least(&back) - 5e6);
            for (sent, arrived) in forth {
                prop_assert!(found.to_a(arrived as f64) - sent as f64 >= -20.0, "{found:?}");
            }
            for (sent, arrived) in home {
                prop_assert!(arrived as f64 - found.to_a(sent as f64) >= -20.0, "{found:?}");
            }
        }
    }
}
