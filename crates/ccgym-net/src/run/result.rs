//! What a run in real time leaves behind.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use ccgym_run::Outcome;
use serde::{Deserialize, Serialize};

use crate::error::{Context, Error, Result};
use crate::program::ProgramLog;
use crate::shell::ReleaseErrors;

/// How late packets left the path, nanoseconds after they should have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReleaseSummary {
    /// Packets.
    pub count: u64,
    /// Median.
    pub p50_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// Largest.
    pub max_ns: u64,
}

impl From<&ReleaseErrors> for ReleaseSummary {
    fn from(errors: &ReleaseErrors) -> Self {
        Self { count: errors.count, p50_ns: errors.quantile(0.5), p99_ns: errors.quantile(0.99), max_ns: errors.max }
    }
}

/// What there is to know about the path itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PathReport {
    /// The kind of backend, such as `emulated`.
    pub backend: String,
    /// How late data left the path; absent where another program releases it.
    pub uplink_release: Option<ReleaseSummary>,
    /// The same for acknowledgements.
    pub downlink_release: Option<ReleaseSummary>,
    /// Packets that devices dropped before the path saw them, or captures missed.
    pub device_drops: u64,
    /// Why the machine could not hold the schedule; absent if it could.
    pub limited: Option<String>,
    /// Flows that could not run here, and why.
    pub unavailable: Vec<(usize, String)>,
    /// What a reader should know.
    pub notes: Vec<String>,
    /// Milliseconds since the Unix epoch at the start of the flows.
    pub started_epoch_ms: f64,
    /// Datagrams that endpoints refused: damaged, or of no known flow.
    pub rejected_datagrams: u64,
    /// Kernel and settings where flows ran, one line each.
    pub system: Vec<String>,
    /// What programs of others said.
    pub programs: Vec<ProgramLog>,
    /// Of a run between two machines: how their clocks relate.
    pub clocks: Option<ClockReport>,
    /// Of a run over links of mahimahi: when their traces began.
    pub traces: Option<TraceReport>,
}

/// How the traces of mahimahi's links were aligned with the flows, by what the links logged.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceReport {
    /// How long before the flows the links began to play, ms: so much of a period was put before their traces.
    pub lead_ms: u64,
    /// How far the trace of each link is ahead of the flows nevertheless, ms: uplink and downlink, the outermost link first.
    pub ahead_ms: Vec<[i64; 2]>,
}

/// How the clocks of two machines were related, so that their logs could be merged.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ClockReport {
    /// The receivers' wall clock minus the senders' at the start of the run, as it was applied, ms.
    pub offset_ms: f64,
    /// By how much the receivers' clock is faster, millionths.
    pub drift_ppm: f64,
    /// What the packets tell of the offset is right up to this, ms: half of the minimum round trip.
    pub bound_ms: f64,
    /// Where the offset is from: `in-band`, the packets; or `ntp`, a time server.
    pub applied: String,
    /// What the time server said the offset was, ms, also where it cannot be right.
    pub ntp_offset_ms: Option<f64>,
}

/// What a run left, in the form that its parent reads.
///
/// # Errors
/// It has no such form.
pub fn encode(result: &impl Serialize) -> Result<Vec<u8>> {
    postcard::to_stdvec(result).map_err(|error| Error::of("protocol-error", "writing the result", error))
}

/// Outcome and report.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunResult {
    /// As the simulator's.
    pub outcome: Outcome,
    /// What a real path adds.
    pub report: PathReport,
    /// When flows stop, nanoseconds; by flow.
    pub stops: Vec<Option<u64>>,
    /// Further columns of each flow's series by name: what the kernel tells of its own algorithms. Not a number where
    /// there is no sample.
    pub extra: Vec<BTreeMap<String, Vec<f64>>>,
}

impl RunResult {
    /// Read what a run wrote.
    ///
    /// # Errors
    /// It cannot be read, or is something else.
    pub fn read(path: &Path) -> Result<Self> {
        let step = || format!("reading the result {}", path.display());
        postcard::from_bytes(&fs::read(path).context(step)?)
            .map_err(|error| Error::of("protocol-error", step(), error).expected("the result of a run of this version"))
    }
}
