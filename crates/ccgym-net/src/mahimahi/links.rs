//! The logs of mm-link, in the times of a run.

use ccgym_core::{TimeSpan, Timestamp};
use ccgym_link::log::{parse_log, LogLine};
use ccgym_link::LinkEvent;

use crate::clock::Clock;
use crate::error::{NetError, Result};

/// mm-link does not know flows.
const NO_FLOW: u32 = u32::MAX;

/// Read what mm-link logged of one direction within the run. Times are whole milliseconds, as mm-link knows them;
/// packets have no flow (`u32::MAX`), and sizes are IP length + 4. Release 0.98 logs no drops.
pub(super) fn read_link_log(text: &[u8], clock: &Clock, end: Timestamp) -> Result<Vec<LinkEvent>> {
    // The last line may be half written.
    let whole = text.iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1);
    let (header, lines) = parse_log(&text[..whole])
        .map_err(|error| NetError::new("reading the log of mm-link", error).coded("log-malformed"))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_become_the_runs() {
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
