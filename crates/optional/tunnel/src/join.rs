//! Join two halves of a run between two machines: match packets by number, convert times of the receivers' machine to
//! the senders' clock.

use ccgym_core::Timestamp;
use ccgym_run::recorder::PacketLog;
use ccgym_run::RunSpec;
use serde::{Deserialize, Serialize};

use ccgym_net::error::{Error, Result};
use ccgym_net::run::{needs_packets, run_result, ClockReport, Ended, PathReport, RunResult};
use ccgym_net::shell::{DirectionReport, EmulatorReport};

use crate::clocks::{relate, ClockRelation};
use crate::link::NO_FLOW;
use crate::{TunnelLog, REMOTE};

/// Max plausible time, ns: centuries. Numbers of packets are smaller, too.
const LATEST: u64 = 1 << 62;

/// Clock of an end, in which its log has times.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub struct HalfClock {
    /// The run's time zero by this clock, ns.
    pub zero: u64,
    /// Milliseconds since the Unix epoch at this clock's zero, by the machine's wall clock.
    pub epoch_ms: f64,
}

/// Result of one end of a run between two machines.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct HalfResult {
    /// Its clock.
    pub clock: HalfClock,
    /// Log of all packets there.
    pub log: TunnelLog,
    /// Results of the flows there.
    pub ended: Ended,
    /// Packets that the device there lost.
    pub device_drops: u64,
    /// Datagrams that do not belong to the tunnel.
    pub rejected: u64,
    /// Reason why that machine could not keep up.
    pub limited: Option<String>,
    /// Kernel and settings, one line each.
    pub system: Vec<String>,
}

impl HalfResult {
    /// Decode the result of an end.
    ///
    /// # Errors
    /// It is malformed.
    pub fn read(bytes: &[u8]) -> Result<Self> {
        postcard::from_bytes(bytes).map_err(|error| {
            Error::of("protocol-error", "reading half of a result", error).expected("the half of a run of this version")
        })
    }

    /// Check the assumptions of the code below: the source of a half is unknown.
    fn check(&self, flows: usize) -> Result<()> {
        let TunnelLog { sent, size, flow, arrived, asked, answered, .. } = &self.log;
        let late = |&(a, b): &(u64, u64)| a.max(b) > LATEST;
        let wrong = if (size.len(), flow.len()) != (sent.len(), sent.len()) {
            "columns of different length"
        } else if flow.iter().any(|&flow| flow != NO_FLOW && flow as usize >= flows) {
            "packets of a flow that does not exist"
        } else if !sent.is_sorted() {
            "packets that are not in the order of time"
        } else if sent.last().is_some_and(|&at| at > LATEST)
            || [arrived, asked, answered].into_iter().flatten().any(late)
            || self.clock.zero > LATEST
            || !(0.0..LATEST as f64).contains(&self.clock.epoch_ms)
        {
            "times that no clock shows"
        } else {
            return Ok(());
        };
        Err(Error::of("run-failed", "reading half of a result", wrong).expected("the half of a run of this version"))
    }
}

/// External knowledge about the clocks.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinOptions {
    /// Offsets of both machines' clocks by a time server.
    #[serde(default)]
    pub ntp_offset_ns: Option<NtpOffsets>,
}

/// True time minus the wall clock of each machine, ns.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NtpOffsets {
    /// Offset of the senders' machine.
    pub senders: i64,
    /// Offset of the receivers' machine.
    pub receivers: i64,
}

/// Join both halves.
///
/// # Errors
/// A half is malformed; a direction has no packet; a program sent nothing.
pub fn join(spec: &RunSpec, there: HalfResult, here: HalfResult, options: JoinOptions) -> Result<RunResult> {
    let (senders, receivers) = (there, here);
    senders.check(spec.flows.len())?;
    receivers.check(spec.flows.len())?;
    let mut notes = Vec::new();
    let (relation, clocks) = clocks(spec, &senders, &receivers, options, &mut notes)?;
    let zero = senders.clock.zero;
    let own = |at: u64| at as f64 - zero as f64;
    let other = |at: u64| relation.to_a(at as f64) - zero as f64;
    let data = merged(&senders.log, own, &receivers.log, other, &mut notes);
    let acks = merged(&receivers.log, other, &senders.log, own, &mut notes);
    let logged = |log: PacketLog| Some(log).filter(|_| needs_packets(spec));
    let direction =
        |log: PacketLog, drops| DirectionReport { log: logged(log), device_drops: drops, ..DirectionReport::default() };
    let path = EmulatorReport { up: direction(data, 0), down: direction(acks, 0) };
    let ended = Ended {
        senders: senders.ended.senders,
        received: receivers.ended.received,
        said: [senders.ended.said, receivers.ended.said].concat(),
    };
    let count = spec.flows.len();
    if ended.senders.len() != count || ended.received.len() != count {
        let found = format!("{} senders and {} receivers", ended.senders.len(), ended.received.len());
        return Err(
            Error::of("wrong-count", "joining the halves of a result", found).expected(format!("{count} of each"))
        );
    }
    let limited = [("senders", senders.limited), ("receivers", receivers.limited)];
    let report = PathReport {
        backend: REMOTE.kind.into(),
        device_drops: senders.device_drops + receivers.device_drops,
        // Datagrams from unknown senders; run_result adds those that endpoints refused.
        rejected_datagrams: senders.rejected + receivers.rejected,
        limited: limited.into_iter().find_map(|(which, why)| Some(format!("the {which}' machine: {}", why?))),
        notes,
        started_epoch_ms: senders.clock.epoch_ms + zero as f64 / 1e6,
        system: senders.system,
        clocks: Some(clocks),
        ..PathReport::default()
    };
    run_result(spec, path, report, ended)
}

/// Find the relation of the receivers' clock to the senders'.
fn clocks(
    spec: &RunSpec,
    senders: &HalfResult,
    receivers: &HalfResult,
    options: JoinOptions,
    notes: &mut Vec<String>,
) -> Result<(ClockRelation, ClockReport)> {
    let (a, b) = (&senders.log, &receivers.log);
    let there = pairs(a, b).chain(a.asked.iter().copied()).chain(b.answered.iter().copied());
    let back = pairs(b, a).chain(b.asked.iter().copied()).chain(a.answered.iter().copied());
    let Some(found) = relate(there, back) else {
        let found = "no packet crossed the tunnel both ways";
        return Err(Error::of("path-blocked", "joining the halves of a result", found)
            .expected("packets both ways, by which the clocks of the machines are compared"));
    };
    // Convert from these clocks, which started with their ends, to wall clocks.
    let wall = (receivers.clock.epoch_ms - senders.clock.epoch_ms) * 1e6;
    let middle = senders.clock.zero as f64 + spec.duration.0 as f64 / 2.0;
    let ntp = options.ntp_offset_ns.map(|offset| (offset.senders - offset.receivers) as f64);
    // On average the server was asked in the middle of the run.
    let by_ntp = ntp.map(|offset| offset - wall - found.drift * middle);
    let (relation, applied) = match by_ntp {
        Some(offset) if found.admits(offset) => (found.with_offset(offset), "ntp"),
        Some(offset) => {
            notes.push(format!(
                "the time server's offset is {:.3} ms off what the packets allow (± {:.3} ms): with it, packets would \
                 arrive before they are sent; the offset is the packets'",
                (offset - found.offset_ns) / 1e6,
                found.bound_ns / 1e6
            ));
            (found, "in-band")
        }
        None => (found, "in-band"),
    };
    let report = ClockReport {
        offset_ms: (relation.offset_ns + relation.drift * senders.clock.zero as f64 + wall) / 1e6,
        drift_ppm: found.drift * 1e6,
        bound_ms: found.bound_ns / 1e6,
        applied: applied.into(),
        ntp_offset_ms: ntp.map(|offset| offset / 1e6),
    };
    Ok((relation, report))
}

/// Return send and arrival times of the packets of one direction, each by the clock of its end.
fn pairs<'a>(from: &'a TunnelLog, to: &'a TunnelLog) -> impl Iterator<Item = (u64, u64)> + 'a {
    to.arrived.iter().filter_map(|&(number, at)| Some((*from.sent.get(index_of(number)?)?, at)))
}

fn index_of(number: u64) -> Option<usize> {
    usize::try_from(number.checked_sub(1)?).ok()
}

/// Make the log of one direction, in run time, without packets that entered before time zero.
fn merged(
    from: &TunnelLog,
    entered: impl Fn(u64) -> f64,
    to: &TunnelLog,
    left: impl Fn(u64) -> f64,
    notes: &mut Vec<String>,
) -> PacketLog {
    let mut arrived: Vec<f64> = vec![f64::INFINITY; from.sent.len()];
    let mut unknown = 0;
    for &(number, at) in &to.arrived {
        match index_of(number).and_then(|index| arrived.get_mut(index)) {
            // Keep the first of several copies.
            Some(first) => *first = first.min(left(at)),
            None => unknown += 1,
        }
    }
    if unknown > 0 {
        notes.push(format!("{unknown} packets left the path that were not seen to enter it"));
    }
    let mut log = PacketLog::default();
    for (index, &sent) in from.sent.iter().enumerate() {
        let at = entered(sent);
        if at < 0.0 || from.flow[index] == NO_FLOW {
            continue;
        }
        let handle = log.enter(Timestamp(at.round() as u64), from.size[index], from.flow[index]);
        if arrived[index].is_finite() {
            log.leave(handle, Timestamp(arrived[index].max(at).round() as u64));
        }
    }
    log
}

#[cfg(test)]
mod tests {
    use super::*;
    use ccgym_net::udp::{ReceiverResult, SenderResult};

    fn log(sent: &[u64], arrived: &[(u64, u64)]) -> TunnelLog {
        let count = sent.len();
        TunnelLog {
            sent: sent.to_vec(),
            size: vec![1000; count],
            flow: vec![0; count],
            arrived: arrived.to_vec(),
            ..TunnelLog::default()
        }
    }

    #[test]
    fn packets_are_matched_by_number_and_lost_ones_never_leave() {
        let mut from = log(&[5, 100, 200, 300, 400], &[]);
        from.flow[3] = NO_FLOW;
        let to = log(&[], &[(2, 1150), (1, 1060), (5, 1470), (2, 1155), (9, 1999)]);
        let mut notes = Vec::new();
        let merged = merged(&from, |at| at as f64 - 50.0, &to, |at| at as f64 - 1050.0, &mut notes);
        assert_eq!(merged.entered, [50, 150, 350]);
        assert_eq!(merged.left, [100, u64::MAX, 420]);
        assert_eq!(notes, ["1 packets left the path that were not seen to enter it"]);
    }

    /// Make halves of a run of 2 s: the receivers' wall clock is `skew` ns ahead, delays are 30 ms there, 10 ms back.
    fn halves(skew: i64) -> (RunSpec, HalfResult, HalfResult) {
        let spec: RunSpec = serde_json::from_str(
            r#"{"duration":2000000000,"uplink":[],"downlink":[],"flows":[{"scheme":"cubic"}],"record":{"packets":true}}"#,
        )
        .unwrap();
        let ms = 1_000_000;
        // Both logs start at 0 by their own clock; the receivers' clock started 500 ms later.
        let sent: Vec<u64> = (0..200).map(|k| 1000 * ms + k * 10 * ms).collect();
        let b = |a: u64| a - 500 * ms;
        let acks: Vec<u64> = sent.iter().map(|&at| b(at + 30 * ms)).collect();
        let numbered =
            |times: Vec<u64>| times.into_iter().zip(1..).map(|(at, number)| (number, at)).collect::<Vec<_>>();
        let a_log = log(&sent, &numbered(sent.iter().map(|&at| at + 40 * ms).collect()));
        let b_log = log(&acks, &numbered(acks.clone()));
        let senders = HalfResult {
            clock: HalfClock { zero: 1000 * ms, epoch_ms: 1e12 },
            log: a_log,
            ended: Ended {
                senders: vec![SenderResult { name: "cubic".into(), ..SenderResult::default() }],
                ..Ended::default()
            },
            ..HalfResult::default()
        };
        let receivers = HalfResult {
            clock: HalfClock { zero: 500 * ms, epoch_ms: 1e12 + 500.0 + skew as f64 / 1e6 },
            log: b_log,
            ended: Ended { received: vec![ReceiverResult::default()], ..Ended::default() },
            ..HalfResult::default()
        };
        (spec, senders, receivers)
    }

    #[test]
    fn without_a_time_server_the_offset_is_wrong_by_half_of_the_asymmetry() {
        let (spec, senders, receivers) = halves(7_000_000_000);
        let result = join(&spec, senders, receivers, JoinOptions::default()).unwrap();
        let clocks = result.report.clocks.unwrap();
        assert!((clocks.offset_ms - 7010.0).abs() < 0.01 && (clocks.bound_ms - 20.0).abs() < 0.01, "{clocks:?}");
        assert_eq!((clocks.applied.as_str(), clocks.drift_ppm), ("in-band", 0.0));
        let data = result.outcome.data.unwrap();
        assert_eq!((data.entered[0], data.left[0]), (0, 20_000_000));
        assert_eq!(result.outcome.acks.unwrap().entered[0], 20_000_000);
    }

    #[test]
    fn a_time_server_offset_applies_if_it_is_possible() {
        for (said, delay, applied) in [(7_000_000_000, 30_000_000, "ntp"), (7_060_000_000, 20_000_000, "in-band")] {
            let (spec, senders, receivers) = halves(7_000_000_000);
            let ntp = NtpOffsets { senders: 1_000_000_000, receivers: 1_000_000_000 - said };
            let result = join(&spec, senders, receivers, JoinOptions { ntp_offset_ns: Some(ntp) }).unwrap();
            let clocks = result.report.clocks.unwrap();
            assert_eq!(clocks.applied, applied);
            assert!((clocks.ntp_offset_ms.unwrap() - said as f64 / 1e6).abs() < 1e-6);
            assert_eq!(result.report.notes.is_empty(), applied == "ntp");
            assert!(result.outcome.data.unwrap().left[0].abs_diff(delay) < 1000, "{said}");
        }
    }

    #[test]
    fn halves_that_do_not_fit_are_refused() {
        let (spec, senders, receivers) = halves(0);
        let mut none = receivers.clone();
        none.ended.received.clear();
        let error = join(&spec, senders.clone(), none, JoinOptions::default()).unwrap_err();
        assert_eq!(error.code, "wrong-count", "{error}");
        let silent = HalfResult { log: TunnelLog::default(), ..receivers };
        let error = join(&spec, senders, silent, JoinOptions::default()).unwrap_err();
        assert_eq!(error.code, "path-blocked", "{error}");
        assert_eq!(HalfResult::read(&[1, 2, 3]).err().map(|error| error.code), Some("protocol-error".into()));
    }

    #[test]
    fn malformed_halves_are_refused() {
        let harms: [fn(&mut HalfResult); 10] = [
            |half| half.log.size.truncate(7),
            |half| half.log.flow.clear(),
            |half| half.log.flow[3] = 1,
            |half| half.log.sent[3] = 0,
            |half| half.log.sent[199] = u64::MAX,
            |half| half.log.arrived[3].0 = u64::MAX,
            |half| half.log.arrived[3].1 = u64::MAX,
            |half| half.log.asked.push((u64::MAX, 0)),
            |half| half.clock.zero = u64::MAX,
            |half| half.clock.epoch_ms = f64::NAN,
        ];
        for (number, harm) in harms.into_iter().enumerate() {
            for of_senders in [true, false] {
                let (spec, mut senders, mut receivers) = halves(0);
                harm(if of_senders { &mut senders } else { &mut receivers });
                assert!(join(&spec, senders, receivers, JoinOptions::default()).is_err(), "{number} {of_senders}");
            }
        }
    }
}
