//! The decision that an object's attributes make, checked.

use ccgym_core::{Control, Rate, TimeSpan};
use pyo3::intern;
use pyo3::prelude::*;

/// Limits of a decision, far beyond the capacity of any path of a simulation: values above them are errors, such as a
/// window that doubles forever.
const MAX_CWND: f64 = 1e7;
const MAX_RATE: f64 = 1e12;
const MIN_RATE: f64 = 1.0;
const MAX_INTERVAL: f64 = 1e4;

/// Min interval.
pub(super) const MIN_INTERVAL: TimeSpan = TimeSpan::from_millis(1);

/// Length of the first interval, unless the object sets it: there is no RTT yet.
pub(super) const FIRST_INTERVAL: TimeSpan = TimeSpan::from_millis(100);

/// Values of the attributes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Decision {
    /// Window, packets.
    cwnd: Option<f64>,
    /// Zero if unpaced.
    pub pacing_rate: Rate,
    /// Length of intervals, if it does not follow sRTT.
    pub interval: Option<TimeSpan>,
}

/// An invalid attribute.
#[derive(Debug)]
pub(super) struct Bad {
    pub attribute: &'static str,
    pub value: String,
    pub cause: Option<PyErr>,
}

impl Decision {
    /// Read the attributes for the first time: missing ones are added, as None.
    pub fn read_first(object: &Bound<'_, PyAny>) -> Result<Self, Bad> {
        for name in ["cwnd", "pacing_rate_bps", "interval_s"] {
            let given = object.getattr_opt(name).and_then(|value| match value {
                Some(_) => Ok(()),
                None => object.setattr(name, object.py().None()),
            });
            given.map_err(|error| Bad { attribute: "", value: String::new(), cause: Some(error) })?;
        }
        Self::read(object)
    }

    pub fn read(object: &Bound<'_, PyAny>) -> Result<Self, Bad> {
        let py = object.py();
        let cwnd = number(object, intern!(py, "cwnd"), "cwnd", 0.0..=MAX_CWND)?;
        let rate = number(object, intern!(py, "pacing_rate_bps"), "pacing_rate_bps", MIN_RATE..=MAX_RATE)?;
        let interval =
            number(object, intern!(py, "interval_s"), "interval_s", MIN_INTERVAL.as_secs_f64()..=MAX_INTERVAL)?;
        if cwnd.is_none() && rate.is_none() {
            return Err(Bad { attribute: "cwnd", value: "None".to_owned(), cause: None });
        }
        Ok(Self {
            cwnd,
            pacing_rate: Rate(rate.unwrap_or(0.0) as u64),
            interval: interval.map(TimeSpan::from_secs_f64),
        })
    }

    /// Convert to the transport's decision. A window below one packet needs a timer.
    pub fn control(self, mss: u64, has_timer: bool) -> Result<Control, Bad> {
        let cwnd = match self.cwnd {
            Some(cwnd) if cwnd < 1.0 && !has_timer => {
                return Err(Bad { attribute: "cwnd", value: format!("{cwnd:?}"), cause: None });
            }
            Some(cwnd) => (cwnd * mss as f64) as u64,
            None => u64::MAX,
        };
        Ok(Control { pacing_rate: self.pacing_rate, ..Control::window(cwnd) })
    }
}

/// Return an attribute as a number within `range`; `None` if it is None.
fn number(
    object: &Bound<'_, PyAny>,
    name: &Bound<'_, pyo3::types::PyString>,
    attribute: &'static str,
    range: std::ops::RangeInclusive<f64>,
) -> Result<Option<f64>, Bad> {
    let bad = |value: &Bound<'_, PyAny>| Bad {
        attribute,
        value: value.repr().map_or_else(|_| "an object".to_owned(), |text| text.to_string()),
        cause: None,
    };
    let value =
        object.getattr(name).map_err(|error| Bad { attribute, value: "deleted".to_owned(), cause: Some(error) })?;
    if value.is_none() {
        return Ok(None);
    }
    match value.extract::<f64>() {
        Ok(found) if range.contains(&found) => Ok(Some(found)),
        _ => Err(bad(&value)),
    }
}
