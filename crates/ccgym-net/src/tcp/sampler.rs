//! The kernel's data on a connection over time: series, counters, and recovery episodes.

use std::collections::BTreeMap;
use std::os::fd::BorrowedFd;

use ccgym_core::{SenderStats, TimeSpan, Timestamp};
use ccgym_run::recorder::FlowSeries;

use super::info::{BbrInfo, TcpInfo};
use crate::error::{Context, Result};
use crate::sample_times::SampleTimes;
use crate::udp::SenderResult;

/// Interval between reads that detect recovery episodes: the kernel does not report them.
const OBSERVE_EVERY: TimeSpan = TimeSpan::from_millis(10);
/// First `ca_state` of fast recovery (3 recovery, 4 loss).
const RECOVERY: u8 = 3;

/// Reads the kernel's data on a connection and stores it.
pub(super) struct Sampler {
    times: SampleTimes,
    header: u64,
    bbr: bool,
    next_look: Timestamp,
    series: FlowSeries,
    extra: BTreeMap<String, Vec<f64>>,
    last: TcpInfo,
    last_bbr: Option<BbrInfo>,
    recovering_since: Timestamp,
    recoveries: u64,
    recovery_time: TimeSpan,
}

impl Sampler {
    /// Make a sampler. `header`: bytes of a segment besides the payload. Samples start at the first multiple of `step` from `start` on.
    pub(super) fn new(algorithm: &str, header: u32, step: TimeSpan, start: Timestamp) -> Self {
        Self {
            times: SampleTimes::new(step, start),
            header: u64::from(header),
            bbr: algorithm.starts_with("bbr"),
            next_look: start,
            series: FlowSeries::default(),
            extra: BTreeMap::new(),
            last: TcpInfo::default(),
            last_bbr: None,
            recovering_since: Timestamp::NEVER,
            recoveries: 0,
            recovery_time: TimeSpan::ZERO,
        }
    }

    /// Return the next time to call [`Sampler::advance`].
    pub(super) fn next_event(&self) -> Timestamp {
        self.times.next().min(self.next_look)
    }

    /// Take the due samples; without `socket` there is no connection yet.
    pub(super) fn advance(&mut self, now: Timestamp, socket: Option<BorrowedFd<'_>>) -> Result<()> {
        if now < self.next_event() {
            return Ok(());
        }
        if let Some(socket) = socket {
            self.look(now, socket)?;
        }
        self.next_look = now.saturating_add(OBSERVE_EVERY);
        while self.times.take(now) {
            self.push();
        }
        Ok(())
    }

    /// Read the kernel's data now.
    pub(super) fn look(&mut self, now: Timestamp, socket: BorrowedFd<'_>) -> Result<TcpInfo> {
        self.last = TcpInfo::of(socket).context(|| "reading TCP_INFO".into())?;
        self.last_bbr = if self.bbr { BbrInfo::of(socket) } else { None };
        match (self.last.ca_state >= RECOVERY, self.recovering_since.is_set()) {
            (true, false) => self.recovering_since = now,
            (false, true) => {
                self.recoveries += 1;
                self.recovery_time = TimeSpan(self.recovery_time.0 + now.since(self.recovering_since).0);
                self.recovering_since = Timestamp::NEVER;
            }
            _ => {}
        }
        Ok(self.last)
    }

    fn segment(&self) -> u64 {
        u64::from(self.last.snd_mss) + self.header
    }

    fn sent_bytes(&self) -> u64 {
        self.last.bytes_sent + self.header * u64::from(self.last.data_segs_out)
    }

    fn acked_bytes(&self) -> u64 {
        let payload = self.last.bytes_acked + u64::from(self.last.sacked) * u64::from(self.last.snd_mss);
        payload + self.header * u64::from(self.last.delivered)
    }

    fn push(&mut self) {
        let info = self.last;
        let none_if_unset = |rate: u64| if rate == u64::MAX { 0 } else { rate.saturating_mul(8) };
        let series = &mut self.series;
        // Other schemes than BBR have a pacing rate too, but do not use it unless the device's queue paces.
        series.pacing_bps.push(if self.bbr { none_if_unset(info.pacing_rate) } else { 0 });
        series.srtt_ns.push(u64::from(info.rtt_us) * 1000);
        series.sent_packets.push(u64::from(info.data_segs_out));
        series.lost_packets.push(u64::from(info.total_retrans));
        let (segment, sent, acked) = (self.segment(), self.sent_bytes(), self.acked_bytes());
        let series = &mut self.series;
        series.cwnd_bytes.push(u64::from(info.snd_cwnd) * segment);
        series.in_flight_bytes.push(u64::from(info.in_flight()) * segment);
        series.sent_bytes.push(sent);
        series.acked_bytes.push(acked);
        let ssthresh = if info.snd_ssthresh >= 0x7fff_ffff { f64::INFINITY } else { f64::from(info.snd_ssthresh) };
        let mut put = |name: &str, value: f64| match self.extra.get_mut(name) {
            Some(column) => column.push(value),
            None => drop(self.extra.insert(name.to_owned(), vec![value])),
        };
        put("ca_state", f64::from(info.ca_state));
        put("delivery_rate_bps", none_if_unset(info.delivery_rate) as f64);
        put("kernel_pacing_bps", none_if_unset(info.pacing_rate) as f64);
        put("rto_ns", f64::from(info.rto_us) * 1e3);
        put("ssthresh_packets", ssthresh);
        if self.bbr {
            let bbr = self.last_bbr.unwrap_or_default();
            put("bbr_bw_bps", bbr.bandwidth as f64 * 8.0);
            put("bbr_min_rtt_ns", if bbr.min_rtt_us == u32::MAX { 0.0 } else { f64::from(bbr.min_rtt_us) * 1e3 });
            put("bbr_pacing_gain", bbr.pacing_gain);
            put("bbr_cwnd_gain", bbr.cwnd_gain);
        }
    }

    /// Return the result of the flow `name`, with the kernel's last counters.
    pub(super) fn finish(self, name: String, finished: Timestamp) -> SenderResult {
        let info = self.last;
        let stats = SenderStats {
            sent_packets: u64::from(info.data_segs_out),
            sent_bytes: self.sent_bytes(),
            acked_packets: u64::from(info.delivered),
            acked_bytes: self.acked_bytes(),
            // The kernel does not count losses, but it retransmitted all packets that it considered lost.
            lost_packets: u64::from(info.total_retrans),
            spurious_losses: u64::from(info.dsack_dups),
            retransmissions: u64::from(info.total_retrans),
            rtos: u64::from(info.total_rto),
            probes: 0,
            recoveries: self.recoveries,
            recovery_time: self.recovery_time,
        };
        let min_rtt = match info.min_rtt_us {
            0 | u32::MAX => TimeSpan::MAX,
            us => TimeSpan::from_micros(u64::from(us)),
        };
        SenderResult {
            name,
            stats,
            min_rtt,
            finished,
            series: self.series,
            first_sample: self.times.first(),
            extra: self.extra,
            ..SenderResult::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_lie_on_the_multiples_of_the_step() {
        let ms = Timestamp::from_millis;
        let mut sampler = Sampler::new("bbr", 52, TimeSpan::from_millis(20), ms(30));
        sampler.advance(ms(39), None).unwrap();
        assert_eq!(sampler.series.cwnd_bytes.len(), 0);
        sampler.last.snd_cwnd = 10;
        sampler.last.snd_mss = 1448;
        sampler.advance(ms(81), None).unwrap();
        let done = sampler.finish("tcp:bbr".into(), Timestamp::NEVER);
        // Samples at 40, 60 and 80 ms: numbers 1, 2 and 3.
        assert_eq!((done.first_sample, done.series.cwnd_bytes), (1, vec![15_000; 3]));
        assert_eq!(done.extra["bbr_cwnd_gain"], [0.0; 3]);
        assert_eq!(done.min_rtt, TimeSpan::MAX);
        let mut silent = Sampler::new("cubic", 52, TimeSpan::ZERO, ms(30));
        silent.advance(ms(1000), None).unwrap();
        assert_eq!(silent.finish("tcp:cubic".into(), Timestamp::NEVER).series.srtt_ns.len(), 0);
    }
}
