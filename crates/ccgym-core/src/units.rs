//! Time, rate and size as integers.
//!
//! Times are unsigned nanoseconds, so that arithmetic is exact and equal on every machine; rates are bits per
//! second; sizes are bytes.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use schemars::{json_schema, JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

/// Nanoseconds in one second.
pub const NANOS_PER_SEC: u64 = 1_000_000_000;
/// Nanoseconds in one millisecond.
pub const NANOS_PER_MS: u64 = 1_000_000;

/// Convert an integer below 2⁶³: a signed conversion is one instruction, an unsigned one several.
#[must_use]
#[inline]
pub const fn float(value: u64) -> f64 {
    value as i64 as f64
}

/// Convert a number from 0 to below 2⁶³ to an integer, rounded down, as fast as [`float`].
#[must_use]
#[inline]
pub const fn whole(value: f64) -> u64 {
    value as i64 as u64
}

/// As [`whole`], rounded up: [`f64::ceil`] is a function of its own on older processors.
#[must_use]
#[inline]
pub const fn whole_up(value: f64) -> u64 {
    let truncated = whole(value);
    truncated + (float(truncated) < value) as u64
}

/// A point in time: nanoseconds since the start of the run (or of the endpoint's clock).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(pub u64);

/// A length of time in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct TimeSpan(pub u64);

/// A rate in bits per second.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Rate(pub u64);

/// Defines the JSON schema of a whole number in a base unit, which `format` names.
macro_rules! quantity_schema {
    ($quantity:ident, $format:literal) => {
        impl JsonSchema for $quantity {
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($quantity).into()
            }
            fn inline_schema() -> bool {
                true
            }
            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({"type": "integer", "format": $format})
            }
        }
    };
}

quantity_schema!(Timestamp, "time");
quantity_schema!(TimeSpan, "time");
quantity_schema!(Rate, "rate");

impl Timestamp {
    /// The start of the run.
    pub const ZERO: Self = Self(0);
    /// Later than every event: "no timer is set".
    pub const NEVER: Self = Self(u64::MAX);

    /// Return the time `ms` milliseconds after the start.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * NANOS_PER_MS)
    }
    /// Return the time `us` microseconds after the start.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }
    /// Return whole milliseconds since the start, truncated as mahimahi truncates its clock.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / NANOS_PER_MS
    }
    /// Return the seconds since the start.
    #[must_use]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }
    /// Return the time since `earlier`; zero if `earlier` is later.
    #[must_use]
    #[inline]
    pub const fn since(self, earlier: Self) -> TimeSpan {
        TimeSpan(self.0.saturating_sub(earlier.0))
    }
    /// True unless this is [`Timestamp::NEVER`].
    #[must_use]
    #[inline]
    pub const fn is_set(self) -> bool {
        self.0 != u64::MAX
    }
    /// Return `self + span`; [`Timestamp::NEVER`] on overflow.
    #[must_use]
    #[inline]
    pub const fn saturating_add(self, span: TimeSpan) -> Self {
        Self(self.0.saturating_add(span.0))
    }
}

impl TimeSpan {
    /// No time.
    pub const ZERO: Self = Self(0);
    /// Longer than every run.
    pub const MAX: Self = Self(u64::MAX);

    /// Return `ms` milliseconds.
    #[must_use]
    pub const fn from_millis(ms: u64) -> Self {
        Self(ms * NANOS_PER_MS)
    }
    /// Return whole milliseconds, truncated.
    #[must_use]
    pub const fn as_millis(self) -> u64 {
        self.0 / NANOS_PER_MS
    }
    /// Return `us` microseconds.
    #[must_use]
    pub const fn from_micros(us: u64) -> Self {
        Self(us * 1_000)
    }
    /// Return `secs` seconds, rounded to a nanosecond; negative values and NaN become zero.
    #[must_use]
    pub fn from_secs_f64(secs: f64) -> Self {
        Self((secs * NANOS_PER_SEC as f64).round().max(0.0) as u64)
    }
    /// Return the length in seconds.
    #[must_use]
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_SEC as f64
    }
    /// Return the length in milliseconds, with fraction.
    #[must_use]
    #[inline]
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / NANOS_PER_MS as f64
    }
    /// Return `self · num / den` in 128-bit arithmetic.
    #[must_use]
    #[inline]
    pub const fn mul_ratio(self, num: u64, den: u64) -> Self {
        match self.0.checked_mul(num) {
            Some(product) => Self(product / den),
            None => Self((self.0 as u128 * num as u128 / den as u128) as u64),
        }
    }
}

impl Rate {
    /// No rate.
    pub const ZERO: Self = Self(0);

    /// Return `mbps` megabits (10⁶ bits) per second.
    #[must_use]
    pub fn from_mbps(mbps: f64) -> Self {
        Self((mbps * 1e6).round().max(0.0) as u64)
    }
    /// Return megabits (10⁶ bits) per second.
    #[must_use]
    pub fn as_mbps(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// Return the rate that moves `bytes` in `span`; zero if `span` is zero.
    #[must_use]
    #[inline]
    pub fn from_bytes_over(bytes: u64, span: TimeSpan) -> Self {
        if span.0 == 0 {
            return Self::ZERO;
        }
        // Two gigabytes fit into 64 bits, whose division is many times faster.
        match bytes.checked_mul(8 * NANOS_PER_SEC) {
            Some(work) => Self(work / span.0),
            None => Self((u128::from(bytes) * 8 * u128::from(NANOS_PER_SEC) / u128::from(span.0)) as u64),
        }
    }
    /// Return the time to send `bytes` at this rate, rounded up to a nanosecond; [`TimeSpan::MAX`] at rate zero.
    #[must_use]
    #[inline]
    pub fn time_for(self, bytes: u64) -> TimeSpan {
        if self.0 == 0 {
            return TimeSpan::MAX;
        }
        // The 64-bit path holds up to 2.3 GB, the 128-bit one beyond.
        match (bytes * 8).checked_mul(NANOS_PER_SEC) {
            Some(n) => TimeSpan(n.div_ceil(self.0)),
            None => TimeSpan((u128::from(bytes) * 8 * u128::from(NANOS_PER_SEC)).div_ceil(u128::from(self.0)) as u64),
        }
    }
    /// Return the bytes that this rate moves in `span`, rounded down.
    #[must_use]
    #[inline]
    pub fn bytes_in(self, span: TimeSpan) -> u64 {
        (u128::from(self.0) * u128::from(span.0) / (8 * u128::from(NANOS_PER_SEC))) as u64
    }
    /// Return this rate times `gain`.
    #[must_use]
    #[inline]
    pub fn scaled(self, gain: f64) -> Self {
        Self((self.0 as f64 * gain) as u64)
    }
}

impl Add<TimeSpan> for Timestamp {
    type Output = Self;
    #[inline]
    fn add(self, rhs: TimeSpan) -> Self {
        self.saturating_add(rhs)
    }
}
impl AddAssign<TimeSpan> for Timestamp {
    #[inline]
    fn add_assign(&mut self, rhs: TimeSpan) {
        *self = self.saturating_add(rhs);
    }
}
impl Sub<TimeSpan> for Timestamp {
    type Output = Self;
    #[inline]
    fn sub(self, rhs: TimeSpan) -> Self {
        Self(self.0.saturating_sub(rhs.0))
    }
}
impl Add for TimeSpan {
    type Output = Self;
    #[inline]
    fn add(self, rhs: Self) -> Self {
        Self(self.0.saturating_add(rhs.0))
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_set() {
            write!(f, "{:.6}s", self.as_secs_f64())
        } else {
            f.write_str("never")
        }
    }
}
impl fmt::Debug for TimeSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}ms", self.as_millis_f64())
    }
}
impl fmt::Debug for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6}Mbit/s", self.as_mbps())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialization_time_rounds_up() {
        // 1500 bytes at 12 Mbit/s is exactly 1 ms; at 7 bit/s it is 12000/7 s, rounded up.
        assert_eq!(Rate(12_000_000).time_for(1500), TimeSpan::from_millis(1));
        assert_eq!(Rate(7).time_for(1500).0, (12_000u64 * NANOS_PER_SEC).div_ceil(7));
        assert_eq!(Rate::ZERO.time_for(1), TimeSpan::MAX);
        // Beyond the 64-bit product.
        assert_eq!(Rate(8).time_for(4_000_000_000).0, 4_000_000_000 * NANOS_PER_SEC);
    }

    #[test]
    fn rate_and_bytes_are_inverse() {
        let rate = Rate::from_mbps(77.72);
        let span = rate.time_for(1500);
        assert_eq!(rate.bytes_in(span), 1500);
        assert_eq!(Rate::from_bytes_over(1500, TimeSpan::from_millis(1)), Rate(12_000_000));
    }

    #[test]
    fn never_stays_never() {
        assert_eq!(Timestamp::NEVER.saturating_add(TimeSpan(5)), Timestamp::NEVER);
        assert_eq!(Timestamp::NEVER + TimeSpan(5), Timestamp::NEVER);
        let mut late = Timestamp(u64::MAX - 1);
        late += TimeSpan::MAX;
        assert!(!late.is_set() && !Timestamp::NEVER.is_set());
        assert_eq!(Timestamp(3).since(Timestamp(5)), TimeSpan::ZERO);
    }
}
