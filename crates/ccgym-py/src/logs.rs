//! Text logs, written fast: a 30-second run at 80 Mbit/s has half a million lines.

use std::fs::File;
use std::io::{BufWriter, Result, Write};
use std::path::Path;

use ccgym_link::LinkEvent;
use ccgym_sim::recorder::PacketLog;

/// Milliseconds with three decimals, from nanoseconds, rounded to a microsecond.
fn millis(out: &mut impl Write, ns: u64) -> Result<()> {
    let us = (ns + 500) / 1000;
    write!(out, "{}.{:03}", us / 1000, us % 1000)
}

/// Bytes that mahimahi counts beside the IP packet and Pantheon's merge takes off again.
const PREFIX: u32 = 4;

/// Pantheon's merged log (`merge_tunnel_logs.py multiple`): `#`, `+` and `-` lines by time, link lines first.
pub fn write_tunnel_log(path: &Path, log: &PacketLog, events: &[LinkEvent], start_epoch_ms: f64) -> Result<()> {
    // (time, rank among equals, index): opportunities, then arrivals, then departures, as the heap merge orders them.
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
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    writeln!(out, "# init timestamp: {start_epoch_ms:.3}")?;
    for (time, rank, i) in lines {
        let i = i as usize;
        millis(&mut out, time)?;
        match rank {
            0 => {
                let LinkEvent::Opportunity(_, size) = events[i] else { continue };
                writeln!(out, " # {}", size - PREFIX.min(size))?;
            }
            1 => writeln!(out, " + {} {}", log.size[i], log.flow[i] + 1)?,
            _ => {
                write!(out, " - {} ", log.size[i])?;
                millis(&mut out, time - log.entered[i])?;
                writeln!(out, " {}", log.flow[i] + 1)?;
            }
        }
    }
    out.flush()
}

/// mahimahi's link log: whole milliseconds, in order of processing.
pub fn write_mm_log(path: &Path, events: &[LinkEvent], header: &str) -> Result<()> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
    for line in header.lines() {
        writeln!(out, "{line}")?;
    }
    for e in events {
        match *e {
            LinkEvent::Opportunity(t, size) => writeln!(out, "{} # {size}", t.as_millis())?,
            LinkEvent::Arrival(t, size, _) => writeln!(out, "{} + {size}", t.as_millis())?,
            LinkEvent::Departure(t, size, _, arrived) => {
                writeln!(out, "{} - {size} {}", t.as_millis(), t.as_millis() - arrived.as_millis())?;
            }
            LinkEvent::Drop(t, size, _) => writeln!(out, "{} d 1 {size}", t.as_millis())?,
        }
    }
    out.flush()
}
