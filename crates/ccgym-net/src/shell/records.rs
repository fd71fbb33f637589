//! What a session writes down: which logs it was asked for, and their content once it is over.

use std::path::Path;

use ccgym_link::log::LogHeader;
use ccgym_link::LinkEvent;

use super::command::{LinkDirection, LinkUse};
use super::environment::PREFIX;
use super::ferry::{DirectionReport, FerryReport};
use ccgym_sim::logs::write_tunnel_log;

use super::logs::{write_link_log, LogFile};
use super::options::Options;
use super::release::emulator_limited;
use crate::clock::{monotonic_ns, Clock};
use crate::error::{NetError, Result};
use ccgym_core::units::Timestamp;

/// The logs of a session, opened before it starts, so that a name that cannot be is found at once.
pub(super) struct Records {
    links: Vec<LinkLog>,
    tunnels: Vec<(bool, LogFile)>,
    /// `CLOCK_MONOTONIC` when the session began: mahimahi's logs count from there.
    began_ns: u64,
    seed: u64,
    summary: bool,
}

struct LinkLog {
    way: LinkDirection,
    header: LogHeader,
    file: LogFile,
}

impl Records {
    pub fn open(options: &Options, seed: u64) -> Result<Self> {
        let mut names: Vec<&Path> = Vec::new();
        let mut records =
            Self { links: Vec::new(), tunnels: Vec::new(), began_ns: monotonic_ns(), seed, summary: options.summary };
        for link in &options.path.links {
            for way in &link.directions {
                let Some(log) = &way.log else { continue };
                let file = LogFile::create(log)?;
                records.links.push(LinkLog { way: way.clone(), header: header(link, way, log), file });
            }
        }
        for (up, log) in [(true, &options.datalink_log), (false, &options.acklink_log)] {
            if let Some(log) = log {
                records.tunnels.push((up, LogFile::create(log)?));
            }
        }
        let links = options.path.links.iter().flat_map(|link| &link.directions).filter_map(|way| way.log.as_deref());
        for name in links.chain(options.datalink_log.as_deref()).chain(options.acklink_log.as_deref()) {
            if names.contains(&name) && !name.starts_with("/dev") {
                return Err(NetError::new("ccgym shell", format!("two logs into {}", name.display()))
                    .expected("a file of its own for each log"));
            }
            names.push(name);
        }
        Ok(records)
    }

    /// Whether events of links are needed.
    pub fn link_events(&self) -> bool {
        !self.links.is_empty() || !self.tunnels.is_empty()
    }

    /// Whether each packet is needed.
    pub fn packets(&self) -> bool {
        !self.tunnels.is_empty()
    }

    /// Write everything. The answer is the summary, if it was asked for.
    pub fn write(self, report: &FerryReport, clock: &Clock) -> Result<Option<String>> {
        let limited = emulator_limited(report);
        let mut comments = vec![format!("seed: {}", self.seed)];
        comments.extend(limited.iter().map(|why| format!("emulator-limited: {why}")));
        let side = |up: bool| if up { &report.up } else { &report.down };
        for LinkLog { way, mut header, file } in self.links {
            header.base_ms = clock.monotonic(Timestamp::ZERO).saturating_sub(self.began_ns) / 1_000_000;
            header.init_ms = (clock.epoch_ms(Timestamp::ZERO) as u64).saturating_sub(header.base_ms);
            let events = events(side(way.up), way.element);
            file.write(|out| write_link_log(out, &header, &comments, events))?;
        }
        for (up, file) in self.tunnels {
            let report = side(up);
            let bottleneck = report.bottleneck.map_or(&[][..], |element| events(report, element));
            let log = report.log.clone().unwrap_or_default();
            file.write(|out| write_tunnel_log(out, &log, bottleneck, clock.epoch_ms(Timestamp::ZERO)))?;
        }
        Ok(self.summary.then(|| summary(report, self.seed, limited)))
    }
}

fn header(link: &LinkUse, way: &LinkDirection, log: &Path) -> LogHeader {
    let direction = if way.up { "Uplink" } else { "Downlink" };
    let around = std::env::var(PREFIX).unwrap_or_default() + link.outer.as_deref().unwrap_or_default();
    LogHeader {
        title: format!("mm-link ({direction}) [{}] > {}", way.trace, log.display()),
        command: link.command_line.clone(),
        queue: way.queue.clone(),
        init_ms: 0,
        base_ms: 0,
        config: (!around.is_empty()).then_some(around),
    }
}

/// What happened at an element of a direction.
fn events(report: &DirectionReport, element: usize) -> &[LinkEvent] {
    if report.bottleneck == Some(element) {
        return &report.events;
    }
    report.further_events.iter().find(|(index, _)| *index == element).map_or(&[], |(_, events)| events)
}

/// One line for people, and for scripts that look for `emulator-limited`.
fn summary(report: &FerryReport, seed: u64, limited: Option<String>) -> String {
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
