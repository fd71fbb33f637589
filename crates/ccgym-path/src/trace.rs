//! Mahimahi delivery traces: one delivery opportunity of 1504 bytes per line, in whole milliseconds.
//!
//! Source: mahimahi `traces/README` and `link_queue.cc`. The parser is as strict as mahimahi, so
//! that a trace which loads here also loads there: no comments, no blank lines, no Windows line endings.

use std::fmt;
use std::sync::Arc;

use ccgym_core::units::TimeSpan;
use ccgym_core::Error;

/// Bytes of one delivery opportunity: a 1500-byte IP packet and the 4-byte prefix of mahimahi's TUN device.
pub const OPPORTUNITY_BYTES: u32 = 1504;

/// Bytes of a full IP packet, one per delivery opportunity.
pub const PACKET_BYTES: u32 = 1500;

/// Max time in a trace, in milliseconds (about 115 days), so that times in nanoseconds cannot overflow.
pub const MAX_TIME_MS: u64 = 10_000_000_000;

/// A delivery trace, shared cheaply between links. Invariant: non-empty, non-decreasing, last value above zero.
#[derive(Clone, PartialEq, Eq)]
pub struct DeliveryTrace {
    name: String,
    times_ms: Arc<[u64]>,
}

const EXPECTED: &str = "one whole number of milliseconds";

impl DeliveryTrace {
    /// Read a trace file. `name` is used in messages and logs.
    ///
    /// # Errors
    /// Everything that mahimahi would reject, with the line and a remedy.
    pub fn parse(text: &[u8], name: &str) -> Result<Self, Error> {
        let fail = |code, line, found, expected, hint| Err(refused(name, line, found, expected, hint).coded(code));
        if text.is_empty() {
            return fail("trace-empty", 1, "an empty file".into(), EXPECTED, "give at least one delivery opportunity");
        }
        // A newline ends a line: the one at the end of the file does not begin another.
        let body = text.strip_suffix(b"\n").unwrap_or(text);
        let mut times = Vec::with_capacity(body.len() / 5);
        let mut last = 0;
        for (index, raw) in body.split(|&b| b == b'\n').enumerate() {
            let line = index + 1;
            let Some(ms) = parse_integer(raw) else {
                let (expected, hint) = diagnose(raw, line);
                return fail("trace-malformed", line, quote(raw), expected, hint);
            };
            if ms > MAX_TIME_MS {
                let hint = "times count from 0 at the trace's start";
                return fail("trace-too-long", line, ms.to_string(), "at most 10000000000 ms", hint);
            }
            if ms < last {
                let found = format!("{ms} after {last}");
                return fail("trace-unsorted", line, found, "a time not before the previous line's", "sort the trace");
            }
            last = ms;
            times.push(ms);
        }
        if last == 0 {
            let hint = "the last line is the period of the trace: append one";
            return fail("trace-empty", times.len(), "0 as last time".into(), "a last time above 0", hint);
        }
        Ok(Self { name: name.to_owned(), times_ms: times.into() })
    }

    /// Make a trace from times in milliseconds.
    ///
    /// # Errors
    /// As [`DeliveryTrace::parse`].
    pub fn from_ms(name: &str, times_ms: impl Into<Arc<[u64]>>) -> Result<Self, Error> {
        let times_ms: Arc<[u64]> = times_ms.into();
        let fail = |code, line, found, expected, hint| Err(refused(name, line, found, expected, hint).coded(code));
        if let Some(i) = times_ms.windows(2).position(|w| w[0] > w[1]) {
            let found = format!("{} after {}", times_ms[i + 1], times_ms[i]);
            return fail("trace-unsorted", i + 2, found, "a time not before the previous line's", "sort the trace");
        }
        match times_ms.last() {
            None => fail("trace-empty", 1, "no times".into(), EXPECTED, "give at least one delivery opportunity"),
            Some(0) => fail(
                "trace-empty",
                times_ms.len(),
                "0 as last time".into(),
                "a last time above 0",
                "the last line is the period of the trace: append one",
            ),
            Some(&last) if last > MAX_TIME_MS => fail(
                "trace-too-long",
                times_ms.len(),
                last.to_string(),
                "at most 10000000000 ms",
                "times count from 0 at the trace's start",
            ),
            Some(_) => Ok(Self { name: name.to_owned(), times_ms }),
        }
    }

    /// Return the name given at construction.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Return the times of the opportunities of one period, in milliseconds.
    #[must_use]
    pub fn times_ms(&self) -> &[u64] {
        &self.times_ms
    }

    pub(crate) fn shared_times(&self) -> Arc<[u64]> {
        Arc::clone(&self.times_ms)
    }

    /// Return the number of opportunities per period.
    #[must_use]
    #[allow(clippy::len_without_is_empty)] // never empty
    pub fn len(&self) -> usize {
        self.times_ms.len()
    }

    /// Return the time after which the trace repeats: its last value.
    #[must_use]
    pub fn period(&self) -> TimeSpan {
        TimeSpan::from_millis(self.times_ms[self.times_ms.len() - 1])
    }
}

impl fmt::Debug for DeliveryTrace {
    // The times would be half a million numbers.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DeliveryTrace({:?}, {} opportunities per {:?})", self.name, self.len(), self.period())
    }
}

fn refused(name: &str, line: usize, found: String, expected: &str, hint: &str) -> Error {
    Error::new(format!("{name}:{line}"), found, expected).hint(hint)
}

fn parse_integer(raw: &[u8]) -> Option<u64> {
    if raw.is_empty() {
        return None;
    }
    raw.iter().try_fold(0u64, |value, &b| {
        let digit = b.is_ascii_digit().then(|| u64::from(b - b'0'))?;
        Some(value.saturating_mul(10).saturating_add(digit))
    })
}

/// Guess the cause of a line that is not an integer.
fn diagnose(raw: &[u8], line: usize) -> (&'static str, &'static str) {
    let text = raw.trim_ascii();
    let numeric = |field: &[u8]| std::str::from_utf8(field).is_ok_and(|s| s.trim().parse::<f64>().is_ok());
    let hint = if raw.starts_with(b"\xef\xbb\xbf") {
        "remove the byte-order mark"
    } else if raw.ends_with(b"\r") && parse_integer(&raw[..raw.len() - 1]).is_some() {
        "Windows line endings, which mahimahi refuses too: convert with `ccgym paths convert` or `dos2unix`"
    } else if text.is_empty() {
        "remove the blank line, which mahimahi refuses too"
    } else if text.starts_with(b"#") || text.starts_with(b"//") {
        "remove the comment: traces have none"
    } else if text.split(|&b| matches!(b, b' ' | b'\t' | b',' | b';')).filter(|f| !f.is_empty()).count() > 1
        && text.split(|&b| matches!(b, b' ' | b'\t' | b',' | b';')).all(|f| f.is_empty() || numeric(f))
    {
        "a second column: time and bytes? convert with `ccgym paths convert`"
    } else if text.starts_with(b"-") && numeric(text) {
        "times count from 0 at the trace's start: shift them"
    } else if numeric(text) {
        if parse_integer(text).is_some() {
            "remove the spaces"
        } else {
            "decimals: seconds or fractions of a millisecond? convert with `ccgym paths convert`"
        }
    } else if line == 1 && text.iter().any(u8::is_ascii_alphabetic) {
        "a header line? remove it"
    } else {
        "see mahimahi's traces/README for the format"
    };
    (EXPECTED, hint)
}

/// Return a short, printable form of a line.
fn quote(raw: &[u8]) -> String {
    if raw.is_empty() {
        return "an empty line".to_owned();
    }
    let shown = &raw[..raw.len().min(40)];
    let dots = if raw.len() > shown.len() { "…" } else { "" };
    format!("{:?}{dots}", String::from_utf8_lossy(shown))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn good_traces() {
        let trace = DeliveryTrace::parse(b"5\n10\n10\n20\n", "demo").expect("good");
        assert_eq!(trace.times_ms(), [5, 10, 10, 20]);
        assert_eq!((trace.len(), trace.period()), (4, TimeSpan::from_millis(20)));
        assert_eq!(DeliveryTrace::from_ms("demo", vec![5, 10, 10, 20]).expect("good"), trace);
    }

    #[test]
    fn bad_traces_say_what_to_do() {
        for (text, line, code) in [
            (&b""[..], 1, "trace-empty"),
            (b"\n", 1, "trace-malformed"),
            (b"1\n\n2\n", 2, "trace-malformed"),
            (b"1\n2\n\n", 3, "trace-malformed"),
            (b"0\n0\n", 2, "trace-empty"),
            (b"5\n4\n", 2, "trace-unsorted"),
            (b"0.5\n", 1, "trace-malformed"),
            (b"1 1500\n", 1, "trace-malformed"),
            (b"1,1500\n", 1, "trace-malformed"),
            (b"0.25\t1500\n", 1, "trace-malformed"),
            (b"# a trace\n1\n", 1, "trace-malformed"),
            (b"time_ms\n1\n", 1, "trace-malformed"),
            (b"1\r\n2\r\n", 1, "trace-malformed"),
            (b"\xef\xbb\xbf1\n", 1, "trace-malformed"),
            (b" 1\n", 1, "trace-malformed"),
            (b"-1\n", 1, "trace-malformed"),
            (b"1\n99999999999\n", 2, "trace-too-long"),
            (b"1\n99999999999999999999999\n", 2, "trace-too-long"),
            (b"1\n\xff\xfe\n", 2, "trace-malformed"),
        ] {
            let error = DeliveryTrace::parse(text, "t").expect_err("must be refused");
            assert_eq!((&*error.code, error.place), (code, format!("t:{line}")), "{text:?}");
        }
        let error = DeliveryTrace::parse(b"5\n4\n", "up.trace").expect_err("decreasing");
        assert_eq!((&*error.code, &*error.place), ("trace-unsorted", "up.trace:2"));
        for (times, code) in [(vec![], "trace-empty"), (vec![0], "trace-empty"), (vec![2, 1], "trace-unsorted")] {
            assert_eq!(DeliveryTrace::from_ms("x", times).expect_err("refused").code, code);
        }
    }

    proptest! {
        #[test]
        fn parser_never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = DeliveryTrace::parse(&bytes, "fuzz").map_err(|e| e.to_string());
        }

        #[test]
        fn near_misses_never_panic(text in "[0-9 .,#\\-\r\n\te]{0,60}") {
            if let Ok(trace) = DeliveryTrace::parse(text.as_bytes(), "fuzz") {
                prop_assert!(trace.period().0 > 0);
                prop_assert_eq!(trace.times_ms().len(), text.lines().count());
            }
        }
    }
}
