//! A run as the text logs of Pantheon and mahimahi.
//!
//! Written in small pieces: pass a buffered writer. A 30-second run at 80 Mbit/s has half a million lines.

use std::io::{Result, Write};

use ccgym_path::log::write_events;
use ccgym_path::trace::PACKET_BYTES;
use ccgym_path::LinkEvent;

use crate::recorder::PacketLog;

/// Convert nanoseconds to the clock of Pantheon's tunnel, which counts microseconds.
fn micros(ns: u64) -> u64 {
    (ns + 500) / 1000
}

/// Write microseconds as milliseconds with three decimals.
fn millis(out: &mut impl Write, us: u64) -> Result<()> {
    write!(out, "{}.{:03}", us / 1000, us % 1000)
}

/// Write Pantheon's merged log (`merge_tunnel_logs.py multiple`): `#`, `+` and `-` lines by time, link lines first.
///
/// # Errors
/// Errors of the writer.
pub fn write_tunnel_log(
    out: &mut impl Write,
    log: &PacketLog,
    events: &[LinkEvent],
    start_epoch_ms: f64,
) -> Result<()> {
    // (time, rank among equal times, index): opportunities, then arrivals, then departures, as in the heap merge.
    let mut lines: Vec<(u64, u8, u32)> = Vec::with_capacity(2 * log.entered.len());
    for (i, e) in events.iter().enumerate() {
        if let LinkEvent::Opportunity(t, _) = e {
            lines.push((t.0, 0, i as u32));
        }
    }
    for (i, (&entered, &left)) in log.entered.iter().zip(&log.left).enumerate() {
        lines.push((entered, 1, i as u32));
        if left != u64::MAX {
            lines.push((left, 2, i as u32));
        }
    }
    lines.sort_unstable();
    writeln!(out, "# init timestamp: {start_epoch_ms:.3}")?;
    for (time, rank, i) in lines {
        let i = i as usize;
        millis(out, micros(time))?;
        match rank {
            0 => {
                // Without the prefix that mahimahi counts with the packet, and Pantheon's merge subtracts.
                let LinkEvent::Opportunity(_, size) = events[i] else { continue };
                writeln!(out, " # {}", size.min(PACKET_BYTES))?;
            }
            1 => writeln!(out, " + {} {}", log.size[i], log.flow[i] + 1)?,
            _ => {
                write!(out, " - {} ", log.size[i])?;
                // The difference of the logged times, as in the merge of raw logs.
                millis(out, micros(time) - micros(log.entered[i]))?;
                writeln!(out, " {}", log.flow[i] + 1)?;
            }
        }
    }
    Ok(())
}

/// Write mahimahi's link log: whole milliseconds, in order of processing.
///
/// # Errors
/// Errors of the writer.
pub fn write_mm_log(out: &mut impl Write, events: &[LinkEvent], header: &str) -> Result<()> {
    for line in header.lines() {
        writeln!(out, "{line}")?;
    }
    write_events(out, 0, events)
}

#[cfg(test)]
mod tests {
    use ccgym_core::Timestamp;

    use super::*;

    #[test]
    fn a_tunnel_log_is_sorted_and_counts_flows_from_one() {
        let mut log = PacketLog::default();
        let first = log.enter(Timestamp(400_000), 1500, 0);
        log.enter(Timestamp(900_000), 1500, 1);
        log.leave(first, Timestamp(20_400_400));
        let mut text = Vec::new();
        write_tunnel_log(&mut text, &log, &[LinkEvent::Opportunity(Timestamp::from_millis(1), 1504)], 1.7e12).unwrap();
        let expected = "# init timestamp: 1700000000000.000\n0.400 + 1500 1\n0.900 + 1500 2\n1.000 # 1500\n\
                        20.400 - 1500 20.000 1\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }

    #[test]
    fn a_delay_is_the_difference_of_the_times_that_were_logged() {
        let mut log = PacketLog::default();
        let first = log.enter(Timestamp(400_400), 1500, 0);
        log.leave(first, Timestamp(900_600));
        let mut text = Vec::new();
        write_tunnel_log(&mut text, &log, &[], 0.0).unwrap();
        // 0.500 ms and 200 ns: one microsecond more on the tunnel's clock.
        let expected = "# init timestamp: 0.000\n0.400 + 1500 1\n0.901 - 1500 0.501 1\n";
        assert_eq!(String::from_utf8(text).unwrap(), expected);
    }
}
