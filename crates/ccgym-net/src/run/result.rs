//! The result of a run in real time.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ccgym_run::Outcome;
use serde::{Deserialize, Serialize};

use crate::error::{Context, Error, Result};
use crate::program::ProgramLog;
use crate::shell::ReleaseErrors;

/// Delays of packets' releases after their due times.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseSummary {
    /// Number of packets.
    pub count: u64,
    /// Median, nanoseconds.
    pub p50_ns: u64,
    /// 99th percentile, nanoseconds.
    pub p99_ns: u64,
    /// Max, nanoseconds.
    pub max_ns: u64,
}

impl From<&ReleaseErrors> for ReleaseSummary {
    fn from(errors: &ReleaseErrors) -> Self {
        Self { count: errors.count, p50_ns: errors.quantile(0.5), p99_ns: errors.quantile(0.99), max_ns: errors.max }
    }
}

/// Report on the path itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// Kind of the backend, such as `emulated`.
    pub backend: String,
    /// Release delays of data; absent if another program releases it.
    pub uplink_release: Option<ReleaseSummary>,
    /// Release delays of acknowledgements.
    pub downlink_release: Option<ReleaseSummary>,
    /// Packets that devices dropped before the path, or that captures missed.
    pub device_drops: u64,
    /// Reason if the machine could not keep the schedule; else absent.
    pub limited: Option<String>,
    /// Flows that could not run here, with reasons.
    pub unavailable: Vec<(usize, String)>,
    /// Notes for the reader.
    pub notes: Vec<String>,
    /// Start of the flows, milliseconds since the Unix epoch.
    pub started_epoch_ms: f64,
    /// Datagrams that endpoints refused: damaged, or of an unknown flow.
    pub rejected_datagrams: u64,
    /// Kernel and settings of the machines of the flows, one line each.
    pub system: Vec<String>,
    /// Output of external programs.
    pub programs: Vec<ProgramLog>,
    /// Relation of the clocks of two machines.
    pub clocks: Option<ClockReport>,
    /// Start of the traces of mahimahi's links.
    pub traces: Option<TraceReport>,
}

/// Alignment of the traces of mahimahi's links with the flows, from the links' logs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceReport {
    /// Time from the start of the links to the start of the flows, ms: that part of a period was put before their traces.
    pub lead_ms: u64,
    /// Remaining lead of each link's trace over the flows, ms: uplink and downlink, the outermost link first.
    pub ahead_ms: Vec<[i64; 2]>,
}

/// Relation of the clocks of two machines, used to merge their logs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockReport {
    /// The receivers' wall clock minus the senders' at the start of the run, as applied, ms.
    pub offset_ms: f64,
    /// Relative drift of the receivers' clock, positive if it is faster, millionths.
    pub drift_ppm: f64,
    /// Max error of the packets' estimate of the offset, ms: half of the min RTT.
    pub bound_ms: f64,
    /// Source of the offset: `in-band`, the packets; or `ntp`, a time server.
    pub applied: String,
    /// Offset from the time server, ms, even if it is impossible.
    pub ntp_offset_ms: Option<f64>,
}

/// Serialize the result of a run for the parent process.
///
/// # Errors
/// A value that cannot be serialized.
pub fn encode(result: &impl Serialize) -> Result<Vec<u8>> {
    postcard::to_stdvec(result).map_err(|error| Error::of("protocol-error", "writing the result", error))
}

/// Outcome and report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunResult {
    /// Outcome, as of the simulator.
    pub outcome: Outcome,
    /// Additional report of a real path.
    pub report: PathReport,
    /// Ends of the flows, nanoseconds; by flow.
    pub stops: Vec<Option<u64>>,
    /// Extra columns of each flow's series by name: the kernel's data on its own algorithms; NaN: no sample.
    pub extra: Vec<BTreeMap<String, Vec<f64>>>,
}

impl RunResult {
    /// Read the result of a run.
    ///
    /// # Errors
    /// A file that cannot be read or has another form.
    pub fn read(path: &Path) -> Result<Self> {
        let step = || format!("reading the result {}", path.display());
        postcard::from_bytes(&fs::read(path).context(step)?)
            .map_err(|error| Error::of("protocol-error", step(), error).expected("the result of a run of this version"))
    }
}
