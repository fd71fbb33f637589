//! The logs and the summary of a session.

use std::path::Path;

use ccgym_path::log::LogHeader;
use ccgym_path::{ElementSpec, ScheduleSpec};

use super::environment::PREFIX;
use super::job::{Direction, LinkLogJob, ShellJob, ShellPath};
use super::report::{DirectionReport, EmulatorReport};
use ccgym_run::logs::write_tunnel_log;

use super::logs::{write_link_log, LogFile};
use crate::clock::{monotonic_ns, Clock};
use crate::error::{Error, Result};
use ccgym_core::units::Timestamp;

/// Logs of a session, opened before it starts, so that an invalid name is found early.
pub(super) struct Records {
    links: Vec<LinkLog>,
    tunnels: Vec<(Direction, LogFile)>,
    /// `CLOCK_MONOTONIC` at the start of the session: time zero of mahimahi's logs.
    began_ns: u64,
    seed: u64,
    summary: bool,
}

struct LinkLog {
    direction: Direction,
    element: usize,
    header: LogHeader,
    file: LogFile,
}

impl Records {
    pub fn open(job: &ShellJob, path: &ShellPath, seed: u64) -> Result<Self> {
        let mut records =
            Self { links: Vec::new(), tunnels: Vec::new(), began_ns: monotonic_ns(), seed, summary: job.summary };
        for log in &job.link_logs {
            let LinkLogJob { direction, element, .. } = *log;
            let header = header(log, &path.elements(direction)[element]);
            records.links.push(LinkLog { direction, element, header, file: LogFile::create(&log.file)? });
        }
        let tunnels = [(Direction::Uplink, &job.datalink_log), (Direction::Downlink, &job.acklink_log)];
        for (direction, log) in tunnels {
            if let Some(log) = log {
                records.tunnels.push((direction, LogFile::create(log)?));
            }
        }
        let mut names: Vec<&Path> = Vec::new();
        let links = job.link_logs.iter().map(|log| log.file.as_path());
        for name in links.chain(job.datalink_log.as_deref()).chain(job.acklink_log.as_deref()) {
            if names.contains(&name) && !name.starts_with("/dev") {
                return Err(Error::of("duplicate", "ccgym shell", format!("two logs into {}", name.display()))
                    .expected("a file of its own for each log"));
            }
            names.push(name);
        }
        Ok(records)
    }

    /// True if events of links are needed.
    pub fn link_events(&self) -> bool {
        !self.links.is_empty() || !self.tunnels.is_empty()
    }

    /// True if each packet is needed.
    pub fn packets(&self) -> bool {
        !self.tunnels.is_empty()
    }

    /// Write all logs. Return the summary, if the job wants one.
    pub fn write(self, report: &EmulatorReport, clock: &Clock) -> Result<Option<String>> {
        let limited = report.limited();
        let mut comments = vec![format!("seed: {}", self.seed)];
        comments.extend(limited.iter().map(|why| format!("emulator-limited: {why}")));
        let of = |direction| match direction {
            Direction::Uplink => &report.up,
            Direction::Downlink => &report.down,
        };
        for LinkLog { direction, element, mut header, file } in self.links {
            header.base_ms = clock.monotonic(Timestamp::ZERO).saturating_sub(self.began_ns) / 1_000_000;
            header.init_ms = (clock.epoch_ms(Timestamp::ZERO) as u64).saturating_sub(header.base_ms);
            let events = of(direction).events(Some(element));
            file.write(|out| write_link_log(out, &header, &comments, events))?;
        }
        for (direction, file) in self.tunnels {
            let report = of(direction);
            let bottleneck = report.events(report.bottleneck);
            let log = report.log.clone().unwrap_or_default();
            file.write(|out| write_tunnel_log(out, &log, bottleneck, clock.epoch_ms(Timestamp::ZERO)))?;
        }
        Ok(self.summary.then(|| summary(report, self.seed, limited)))
    }
}

fn header(log: &LinkLogJob, link: &ElementSpec) -> LogHeader {
    let direction = match log.direction {
        Direction::Uplink => "Uplink",
        Direction::Downlink => "Downlink",
    };
    let trace = match link {
        ElementSpec::Link { schedule: ScheduleSpec::Trace { name, .. }, .. } => name,
        _ => "",
    };
    let around = std::env::var(PREFIX).unwrap_or_default() + &log.outer;
    LogHeader {
        title: format!("mm-link ({direction}) [{trace}] > {}", log.file.display()),
        command: log.command_line.clone(),
        queue: describe_queue(link),
        init_ms: 0,
        base_ms: 0,
        config: (!around.is_empty()).then_some(around),
    }
}

/// Describe a link's queue as in mahimahi's logs: `droptail [packets=94]`.
fn describe_queue(link: &ElementSpec) -> String {
    let ElementSpec::Link { queue, .. } = link else { return String::new() };
    let kind = ccgym_core::schema::kind(queue);
    let kind = kind.trim_start_matches("mahimahi_");
    let Some(limit) = queue.limit() else { return kind.into() };
    let limits = [("bytes", limit.bytes), ("packets", limit.packets)];
    let limits = limits.iter().filter_map(|(name, value)| value.map(|value| format!("{name}={value}")));
    format!("{kind} [{}]", limits.collect::<Vec<_>>().join(", "))
}

/// Format the summary: one line of text, and for scripts that search for `emulator-limited`.
fn summary(report: &EmulatorReport, seed: u64, limited: Option<String>) -> String {
    let direction = |name: &str, side: &DirectionReport| {
        let entered = side.counters.first().map_or(0, |(_, counters)| counters.arrived) + side.refused;
        let dropped = side.counters.iter().map(|(_, counters)| counters.dropped).sum::<u64>() + side.refused;
        let ms = |p: f64| side.release.quantile(p) as f64 / 1e6;
        let late = format!("released p50 {:.3} ms p99 {:.3} ms late", ms(0.5), ms(0.99));
        format!("{name} {entered} packets, {dropped} dropped, {late}")
    };
    let limited = limited.map_or(String::new(), |why| format!("; emulator-limited: {why}"));
    let (up, down) = (direction("uplink", &report.up), direction("downlink", &report.down));
    format!("ccgym shell: {up}; {down}; seed {seed}{limited}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_named_as_in_mahimahis_logs() {
        for (queue, described) in [
            (r#"{"kind": "infinite"}"#, "infinite"),
            (r#"{"kind": "droptail", "limit": {"packets": 94}}"#, "droptail [packets=94]"),
            (r#"{"kind": "drophead", "limit": {"bytes": 9000, "packets": 3}}"#, "drophead [bytes=9000, packets=3]"),
            (
                r#"{"kind": "mahimahi_codel", "limit": {"packets": 5}, "target": 5000000, "interval": 100000000}"#,
                "codel [packets=5]",
            ),
        ] {
            let link = format!(
                r#"{{"kind": "link", "schedule": {{"kind": "trace", "name": "t", "once": false}}, "queue": {queue}}}"#
            );
            let link: ElementSpec = serde_json::from_str(&link).unwrap();
            assert_eq!(describe_queue(&link), described);
        }
    }
}
