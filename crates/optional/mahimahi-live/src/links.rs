//! Logs of mm-link, in the times of a run, and the traces that it gets.

use std::io::Write;

use ccgym_core::{TimeSpan, Timestamp};
use ccgym_path::log::{parse_log, LogLine};
use ccgym_path::trace::DeliveryTrace;
use ccgym_path::LinkEvent;

use ccgym_net::error::{Error, Result};
use ccgym_net::Clock;

/// Start of the last line of a log's head that is always present.
const BASE: &[u8] = b"# base timestamp: ";
/// Max lines of a lengthened trace: some megabytes, which mm-link reads in less than the time before the flows.
const MAX_LINES: u64 = 1 << 19;
/// Flow of all packets: mm-link knows no flows.
const NO_FLOW: u32 = u32::MAX;

/// Read mm-link's log of one direction within the run. Times are whole milliseconds, as in the log; packets have no
/// flow (`u32::MAX`), and sizes are IP length + 4. Release 0.98 logs no drops.
pub fn read_link_log(text: &[u8], clock: &Clock, end: Timestamp) -> Result<Vec<LinkEvent>> {
    // The last line may be incomplete.
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
    let (header, lines) =
        parse_log(&text[..whole]).map_err(|error| Error::of("log-malformed", "reading the log of mm-link", error))?;
    let init = header.init_ms as f64 - clock.epoch_ms(Timestamp::ZERO);
    let time = |ms: u64| {
        let at = (init + ms as f64) * 1e6;
        (at >= 0.0 && at <= end.0 as f64).then_some(Timestamp(at as u64))
    };
    let mut events = Vec::with_capacity(lines.len());
    for line in lines {
        match line {
            LogLine::Opportunity { ms, bytes } => {
                events.extend(time(ms).map(|at| LinkEvent::Opportunity(at, bytes)));
            }
            LogLine::Arrival { ms, bytes } => {
                events.extend(time(ms).map(|at| LinkEvent::Arrival(at, bytes, NO_FLOW)));
            }
            LogLine::Departure { ms, bytes, delay_ms } => events.extend(time(ms).map(|at| {
                let arrived = Timestamp(at.0.saturating_sub(TimeSpan::from_millis(delay_ms).0));
                LinkEvent::Departure(at, bytes, NO_FLOW, arrived)
            })),
            LogLine::Drop { ms, packets, bytes } => {
                let size = (bytes / packets.max(1)) as u32;
                let drops = (0..packets).filter_map(|_| time(ms)).map(|at| LinkEvent::Drop(at, size, NO_FLOW));
                events.extend(drops);
            }
        }
    }
    Ok(events)
}

/// Return the start of the trace by its log, ms since the Unix epoch; `None` until mm-link has written the head.
pub fn trace_start(text: &[u8]) -> Option<u64> {
    let end = text.windows(BASE.len()).position(|part| part == BASE)? + BASE.len();
    let whole = end + text[end..].iter().position(|&byte| byte == b'\n')?;
    let (header, _) = parse_log(&text[..=whole]).ok()?;
    Some(header.init_ms + header.base_ms)
}

/// Make the trace for a link that starts `lead` milliseconds before the flows, so that they find it at its beginning.
/// Before, the link plays the end of a period. The trace covers a run of `length` milliseconds, up to a max size.
pub fn begun_before(trace: &DeliveryTrace, once: bool, lead: u64, length: u64) -> Vec<u8> {
    let (times, period) = (trace.times_ms(), trace.period().as_millis());
    let before = lead.div_ceil(period);
    let most = (MAX_LINES / times.len() as u64).max(1);
    let periods = if once { 1 } else { length.div_ceil(period).clamp(1, most) };
    let skipped = before * period - lead;
    let cycles = (0..before + periods).flat_map(|cycle| times.iter().map(move |ms| cycle * period + ms));
    let mut text = Vec::new();
    for ms in cycles.filter(|&ms| ms > skipped) {
        // Writing to memory cannot fail.
        let _ = writeln!(text, "{}", ms - skipped);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Read the log of a recorded run.
    #[test]
    fn the_start_of_the_trace_is_read_from_the_log() {
        let head = "# mahimahi mm-link (Uplink) [3mbps.trace] > up.log\n\
                    # command line: 'mm-link' '3mbps.trace' '3mbps.trace' '--uplink-log=up.log' '--' './run'\n\
                    # queue: infinite\n# init timestamp: 1785312000123\n";
        for (rest, found) in [
            ("", None),
            ("# base timestamp: 3", None),
            ("# base timestamp: 36\n", Some(1_785_312_000_159)),
            ("# base timestamp: 36\n# mahimahi config: [delay 20 ms] \n40 # 1504\n41 +", Some(1_785_312_000_159)),
        ] {
            assert_eq!(trace_start(format!("{head}{rest}").as_bytes()), found, "{rest:?}");
        }
    }

    /// Return the times that a link plays from `from` to `until`, ms, if it started `lead` before.
    fn played(text: &[u8], lead: u64, (from, until): (u64, u64)) -> Vec<u64> {
        let trace = DeliveryTrace::parse(text, "played").unwrap();
        let period = trace.period().as_millis();
        let all =
            (0..50).flat_map(|cycle| trace.times_ms().iter().map(move |ms| cycle * period + ms)).collect::<Vec<_>>();
        all.into_iter().filter_map(|ms| ms.checked_sub(lead)).filter(|ms| (from..=until).contains(ms)).collect()
    }

    #[test]
    fn flows_find_a_trace_at_its_beginning() {
        let original = b"5\n10\n10\n20\n";
        let trace = DeliveryTrace::parse(original, "demo").unwrap();
        for lead in [1, 7, 20, 650, 653] {
            let text = begun_before(&trace, false, lead, 90);
            assert_eq!(played(&text, lead, (1, 90)), played(original, 0, (1, 90)), "lead {lead}");
            // Before the flows it plays as if the trace had been repeating.
            let first = DeliveryTrace::parse(&text, "demo").unwrap().times_ms()[0];
            assert_eq!(first, [5, 10, 20].map(|ms| (ms + lead - 1) % 20 + 1).into_iter().min().unwrap(), "lead {lead}");
        }
        // Once: it ends when the trace of the flows does.
        let text = begun_before(&trace, true, 650, 90);
        assert_eq!(DeliveryTrace::parse(&text, "demo").unwrap().period(), TimeSpan::from_millis(670));
        // A long run of a fast link repeats the trace, to limit the memory.
        let text = begun_before(&trace, false, 650, 10_000_000_000);
        assert!(text.len() < 8 << 20, "{}", text.len());
    }

    #[test]
    fn log_times_become_run_times() {
        let clock = Clock::start();
        let init = (clock.epoch_ms(Timestamp::ZERO) as u64) - 100;
        let text = format!(
            "# mahimahi mm-link (Uplink) [x] > y\n# init timestamp: {init}\n# base timestamp: 40\n\
             90 + 1504\n201 # 1504\n201 - 1504 10\n203 d 2 3008\n9000 # 1504\n210 + 15"
        );
        let log = read_link_log(text.as_bytes(), &clock, Timestamp::from_millis(1000)).unwrap();
        let [LinkEvent::Opportunity(at, 1504), LinkEvent::Departure(left, 1504, NO_FLOW, arrived), LinkEvent::Drop(_, 1504, _), LinkEvent::Drop(..)] =
            log[..]
        else {
            panic!("{log:?}")
        };
        assert!(at == left && at.0.abs_diff(100_500_000) < 1_100_000);
        assert_eq!(left.since(arrived), TimeSpan::from_millis(10));
        assert!(read_link_log(b"nonsense\n", &clock, Timestamp::NEVER).is_err());
        assert_eq!(read_link_log(b"", &clock, Timestamp::NEVER).unwrap(), []);
    }
}
