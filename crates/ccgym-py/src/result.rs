//! `SimResult`: the outcome of a run, as numpy arrays and JSON.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use ccgym_core::TimeSpan;
use ccgym_path::{Counters, LinkEvent};
use ccgym_run::curves::{self, Curves};
use ccgym_run::packet_totals::{self, Passed};
use ccgym_run::recorder::{LinkSeries, PacketLog};
use ccgym_run::{logs, LinkOutcome, Outcome, RunSpec};
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::{PyOSError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde_json::{json, Value};

/// Outcome of one simulation.
#[pyclass(frozen, module = "ccgym._core")]
pub struct SimResult {
    outcome: Outcome,
    stops: Vec<Option<u64>>,
    /// Further columns of each flow's series; empty for a simulation.
    extra: Vec<BTreeMap<String, Vec<f64>>>,
}

impl SimResult {
    pub(crate) fn new(outcome: Outcome, spec: &RunSpec) -> Self {
        let stops = spec.flows.iter().map(|f| f.stop.map(|s| s.0)).collect();
        Self { outcome, stops, extra: Vec::new() }
    }

    /// Make the result of a run with real packets.
    #[cfg(target_os = "linux")]
    pub(crate) fn of_run(run: ccgym_net::run::RunResult) -> Self {
        Self { outcome: run.outcome, stops: run.stops, extra: run.extra }
    }

    fn log(&self, direction: &str) -> PyResult<&PacketLog> {
        let log = match direction {
            "data" => &self.outcome.data,
            "ack" => &self.outcome.acks,
            other => {
                return Err(PyValueError::new_err(format!("direction: found {other:?}, expected \"data\" or \"ack\"")))
            }
        };
        log.as_ref().ok_or_else(|| PyRuntimeError::new_err("packets were not recorded: set record.packets"))
    }

    fn events(&self, direction: &str) -> PyResult<&[LinkEvent]> {
        match direction {
            "up" => Ok(&self.outcome.links[0].events),
            "down" => Ok(&self.outcome.links[1].events),
            name => match self.outcome.links.iter().find(|link| link.name == name) {
                Some(link) => Ok(&link.events),
                None => Err(PyValueError::new_err(format!(
                    "direction: found {name:?}, expected \"up\", \"down\" or one of a link"
                ))),
            },
        }
    }

    /// True if the path had several links, or flows in both directions.
    fn is_network(&self) -> bool {
        self.outcome.links.len() > 2 || self.outcome.flows.iter().any(|flow| flow.bottleneck == 1)
    }
}

/// Return the counters of the link in one direction, if there is one.
fn link_counters(link: &LinkOutcome, duration: TimeSpan) -> Option<Value> {
    let c = &link.elements[link.bottleneck?].1;
    Some(json!({
        "drops": c.dropped,
        "marks": c.marked,
        "forwarded": c.forwarded,
        "forwarded_bytes": c.forwarded_bytes,
        "mean_queue_packets": c.mean_queue_packets(duration),
        "mean_sojourn_ms": c.mean_sojourn().as_millis_f64(),
    }))
}

fn passed(one: Passed) -> (u64, u64, u64, u64) {
    (one.packets, one.bytes, one.first, one.last)
}

type FlowCurves<'py> = [Bound<'py, PyArray1<f64>>; 4];

fn arrays(py: Python<'_>, found: Vec<Curves>) -> Vec<FlowCurves<'_>> {
    let arrays =
        |one: Curves| [one.ingress_mbps, one.egress_mbps, one.delay_time_s, one.delay_ms].map(|of| of.into_pyarray(py));
    found.into_iter().map(arrays).collect()
}

/// `SimResult.curves` of a log of `flows` flows (from 0): times (ns), bytes and flows of the packets that entered, and
/// of those that left, with their one-way delays (ns).
#[pyfunction]
pub fn log_curves<'py>(
    py: Python<'py>,
    entered: [PyReadonlyArray1<'py, i64>; 3],
    left: [PyReadonlyArray1<'py, i64>; 4],
    flows: usize,
) -> PyResult<Vec<FlowCurves<'py>>> {
    let [t, s, f] = entered.each_ref().map(|column| column.as_slice());
    let (t, s, f) = (t?, s?, f?);
    let entered = (0..t.len()).map(|i| (t[i], s[i] as u64, f[i] as usize));
    let [t, s, f, d] = left.each_ref().map(|column| column.as_slice());
    let (t, s, f, d) = (t?, s?, f?, d?);
    let left = (0..t.len()).map(|i| (t[i], s[i] as u64, f[i] as usize, d[i]));
    Ok(arrays(py, curves::curves(entered, left, flows, 0)))
}

fn link_series<'py>(py: Python<'py>, series: &LinkSeries) -> PyResult<Bound<'py, PyDict>> {
    let link = PyDict::new(py);
    link.set_item("queue_packets", series.queue_packets.clone().into_pyarray(py))?;
    link.set_item("queue_bytes", series.queue_bytes.clone().into_pyarray(py))?;
    link.set_item("drops", series.drops.clone().into_pyarray(py))?;
    Ok(link)
}

fn write_file(
    py: Python<'_>,
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()> + Send,
) -> PyResult<()> {
    let file = || {
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path)?);
        write(&mut out)?;
        out.flush()
    };
    py.detach(file).map_err(|e| PyOSError::new_err(format!("{}: {e}", path.display())))
}

fn counters(list: &[(String, Counters)], duration: TimeSpan) -> Vec<Value> {
    list.iter()
        .map(|(kind, c)| {
            json!({
                "kind": kind,
                "arrived": c.arrived,
                "forwarded": c.forwarded,
                "forwarded_bytes": c.forwarded_bytes,
                "dropped": c.dropped,
                "duplicated": c.duplicated,
                "marked": c.marked,
                "mean_queue_packets": c.mean_queue_packets(duration),
                "mean_sojourn_ms": c.mean_sojourn().as_millis_f64(),
            })
        })
        .collect()
}

#[pymethods]
impl SimResult {
    /// Counters of the run, as JSON.
    fn summary(&self) -> String {
        let o = &self.outcome;
        let duration = TimeSpan(o.end.0);
        let set = |t: ccgym_core::Timestamp| t.is_set().then_some(t.0);
        let flows: Vec<Value> = o
            .flows
            .iter()
            .zip(&self.stops)
            .map(|(f, stop)| {
                json!({
                    "scheme": f.name,
                    "start_ns": f.start.0,
                    "stop_ns": stop.unwrap_or(o.end.0).min(o.end.0),
                    "sent_packets": f.sender.sent_packets,
                    "sent_bytes": f.sender.sent_bytes,
                    "acked_packets": f.sender.acked_packets,
                    "acked_bytes": f.sender.acked_bytes,
                    "lost_packets": f.sender.lost_packets,
                    "spurious_losses": f.sender.spurious_losses,
                    "retransmissions": f.sender.retransmissions,
                    "rtos": f.sender.rtos,
                    "probes": f.sender.probes,
                    "recoveries": f.sender.recoveries,
                    "recovery_ns": f.sender.recovery_time.0,
                    "received_packets": f.received.packets,
                    "received_bytes": f.received.bytes,
                    "received_unique_bytes": f.received.unique_bytes,
                    "min_rtt_ns": if f.min_rtt == TimeSpan::MAX { None } else { Some(f.min_rtt.0) },
                    "finish_ns": set(f.finished),
                })
            })
            .collect();
        let mut summary = json!({
            "duration_ns": o.end.0,
            "trajectory_hash": format!("{:016x}", o.hash),
            "flows": flows,
            "uplink": counters(&o.links[0].elements, duration),
            "downlink": counters(&o.links[1].elements, duration),
            "link": o.flows.first().and_then(|flow| link_counters(&o.links[flow.bottleneck], duration)),
        });
        for (flow, value) in o.flows.iter().zip(summary["flows"].as_array_mut().into_iter().flatten()) {
            if let Some(application) = &flow.application {
                value["application"] = json!({
                    "written_bytes": application.written_bytes,
                    "read_bytes": application.read_bytes,
                    "mean_delay_ms": application.mean_delay().0 as f64 / 1e6,
                });
            }
        }
        if self.is_network() {
            for (flow, value) in o.flows.iter().zip(summary["flows"].as_array_mut().into_iter().flatten()) {
                value["bottleneck"] = json!(o.links[flow.bottleneck].name);
            }
            let links = o.links.iter().map(|link| (link.name.clone(), json!(link_counters(link, duration))));
            summary["links"] = Value::Object(links.collect());
        }
        summary.to_string()
    }

    /// Every packet of a direction ("data" or "ack"): entered_ns, left_ns (2⁶⁴−1: lost or in flight), size, flow.
    fn packets<'py>(&self, py: Python<'py>, direction: &str) -> PyResult<Bound<'py, PyDict>> {
        let log = self.log(direction)?;
        let d = PyDict::new(py);
        d.set_item("entered_ns", log.entered.clone().into_pyarray(py))?;
        d.set_item("left_ns", log.left.clone().into_pyarray(py))?;
        d.set_item("size", log.size.iter().copied().collect::<Vec<_>>().into_pyarray(py))?;
        d.set_item("flow", log.flow.iter().copied().collect::<Vec<_>>().into_pyarray(py))?;
        Ok(d)
    }

    /// Totals over the data packets of all flows, then of each: (entered, left, delay_p95_ns), where entered and left are
    /// (packets, bytes, first_ns, last_ns), with times in whole microseconds.
    #[allow(clippy::type_complexity)]
    fn packet_totals(
        &self,
        py: Python<'_>,
    ) -> PyResult<Vec<((u64, u64, u64, u64), (u64, u64, u64, u64), Option<i64>)>> {
        let log = self.log("data")?;
        let found = py.detach(|| packet_totals::totals(log, self.outcome.flows.len()));
        Ok(found.into_iter().map(|of| (passed(of.entered), passed(of.left), of.delay_p95)).collect())
    }

    /// What left of some flows (from 0) after `begin_ns` and before `end_ns`, both in whole microseconds: (packets, bytes,
    /// first_ns, last_ns), and the one-way delays, ns.
    #[allow(clippy::type_complexity)]
    fn departed<'py>(
        &self,
        py: Python<'py>,
        flows: Vec<usize>,
        begin_ns: u64,
        end_ns: u64,
    ) -> PyResult<((u64, u64, u64, u64), Bound<'py, PyArray1<i64>>)> {
        let (found, delays) = packet_totals::departed(self.log("data")?, &flows, begin_ns, end_ns);
        Ok((passed(found), delays.into_pyarray(py)))
    }

    /// When the packets of a flow (from 0) left, in order of entry, and their one-way delays; ns, whole microseconds.
    #[allow(clippy::type_complexity)]
    fn departures<'py>(
        &self,
        py: Python<'py>,
        flow: usize,
    ) -> PyResult<(Bound<'py, PyArray1<i64>>, Bound<'py, PyArray1<i64>>)> {
        let log = self.log("data")?;
        let (left, delays) = py.detach(|| packet_totals::departures(log, flow));
        Ok((left.into_pyarray(py), delays.into_pyarray(py)))
    }

    /// The curves of each flow in a run of `duration_ns`: ingress and egress, Mbit/s per bin, and times, s, and delays,
    /// ms, of points.
    fn curves<'py>(&self, py: Python<'py>, duration_ns: i64) -> PyResult<Vec<FlowCurves<'py>>> {
        let log = self.log("data")?;
        Ok(arrays(py, py.detach(|| curves::of_log(log, self.outcome.flows.len(), duration_ns))))
    }

    /// The moving average of the gaps between a flow's (from 0) data packets, ms, at each time of the series.
    fn gap_average<'py>(&self, py: Python<'py>, flow: u32, weight: f64) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let times = self.outcome.series.as_ref().map_or(&[][..], |series| &series.t);
        Ok(packet_totals::gap_average(self.log("data")?, flow, times, weight).into_pyarray(py))
    }

    /// Frames of the video encoder of a flow (from 0): captured_ns, packets (0: skipped), bytes; empty if it has none.
    fn frames<'py>(&self, py: Python<'py>, flow: usize) -> PyResult<Bound<'py, PyDict>> {
        let frames = self.outcome.flows.get(flow).map_or(&[][..], |flow| &flow.frames);
        let d = PyDict::new(py);
        d.set_item("captured_ns", frames.iter().map(|f| f.captured.0).collect::<Vec<_>>().into_pyarray(py))?;
        d.set_item("packets", frames.iter().map(|f| f.packets).collect::<Vec<_>>().into_pyarray(py))?;
        d.set_item("bytes", frames.iter().map(|f| f.bytes).collect::<Vec<_>>().into_pyarray(py))?;
        Ok(d)
    }

    /// Transfers of the source of a flow (from 0): asked_ns, bytes, finished_ns (2⁶⁴−1: not in the run); empty if it has none.
    fn transfers<'py>(&self, py: Python<'py>, flow: usize) -> PyResult<Bound<'py, PyDict>> {
        let transfers = self.outcome.flows.get(flow).map_or(&[][..], |flow| &flow.transfers);
        let d = PyDict::new(py);
        d.set_item("asked_ns", transfers.iter().map(|t| t.asked.0).collect::<Vec<_>>().into_pyarray(py))?;
        d.set_item("bytes", transfers.iter().map(|t| t.bytes).collect::<Vec<_>>().into_pyarray(py))?;
        d.set_item("finished_ns", transfers.iter().map(|t| t.finished.0).collect::<Vec<_>>().into_pyarray(py))?;
        Ok(d)
    }

    /// Sampled series: {"t_ns", "flows": […], "link": {…}}; `link` is the first flow's bottleneck. On a path of several
    /// links also "links", by the name of each that carries data. Flows of the kernel's TCP have further columns, such as
    /// bbr_bw_bps.
    fn series<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let series = self
            .outcome
            .series
            .as_ref()
            .ok_or_else(|| PyRuntimeError::new_err("series were not recorded: set record.series"))?;
        let d = PyDict::new(py);
        d.set_item("t_ns", series.t.clone().into_pyarray(py))?;
        let flows = PyList::empty(py);
        for (i, f) in series.flows.iter().enumerate() {
            let e = PyDict::new(py);
            e.set_item("cwnd_bytes", f.cwnd_bytes.clone().into_pyarray(py))?;
            e.set_item("in_flight_bytes", f.in_flight_bytes.clone().into_pyarray(py))?;
            e.set_item("srtt_ns", f.srtt_ns.clone().into_pyarray(py))?;
            e.set_item("pacing_bps", f.pacing_bps.clone().into_pyarray(py))?;
            e.set_item("sent_bytes", f.sent_bytes.clone().into_pyarray(py))?;
            e.set_item("sent_packets", f.sent_packets.clone().into_pyarray(py))?;
            e.set_item("acked_bytes", f.acked_bytes.clone().into_pyarray(py))?;
            e.set_item("lost_packets", f.lost_packets.clone().into_pyarray(py))?;
            e.set_item("received_bytes", f.received_bytes.clone().into_pyarray(py))?;
            e.set_item("received_unique_bytes", f.received_unique_bytes.clone().into_pyarray(py))?;
            e.set_item("read_bytes", f.read_bytes.clone().into_pyarray(py))?;
            if f.states.iter().any(|name| !name.is_empty()) {
                e.set_item("state", f.state.clone().into_pyarray(py))?;
                e.set_item("states", f.states.clone())?;
            }
            for (name, column) in self.extra.get(i).into_iter().flatten() {
                e.set_item(name, column.clone().into_pyarray(py))?;
            }
            flows.append(e)?;
        }
        d.set_item("flows", flows)?;
        let bottleneck = self.outcome.flows.first().map_or(0, |flow| flow.bottleneck);
        let main = series.links.iter().find(|link| link.direction == bottleneck).unwrap_or(&series.links[0]);
        d.set_item("link", link_series(py, main)?)?;
        if self.is_network() {
            let links = PyDict::new(py);
            for link in &series.links {
                links.set_item(&self.outcome.links[link.direction].name, link_series(py, link)?)?;
            }
            d.set_item("links", links)?;
        }
        Ok(d)
    }

    /// Events of the first link of a direction ("up", "down", or the name of one of several links): kind, time_ns, size, flow, arrival_ns.
    fn link_events<'py>(&self, py: Python<'py>, direction: &str) -> PyResult<Bound<'py, PyDict>> {
        let events = self.events(direction)?;
        let rows = events.iter().map(|e| match *e {
            LinkEvent::Opportunity(t, s) => (b'#', t.0, s, 0, t.0),
            LinkEvent::Arrival(t, s, f) => (b'+', t.0, s, f, t.0),
            LinkEvent::Departure(t, s, f, a) => (b'-', t.0, s, f, a.0),
            LinkEvent::Drop(t, s, f) => (b'd', t.0, s, f, t.0),
        });
        let (mut kind, mut time, mut size, mut flow, mut arrival) = (vec![], vec![], vec![], vec![], vec![]);
        for (k, t, s, f, a) in rows {
            kind.push(k);
            time.push(t);
            size.push(s);
            flow.push(f);
            arrival.push(a);
        }
        let d = PyDict::new(py);
        d.set_item("kind", kind.into_pyarray(py))?;
        d.set_item("time_ns", time.into_pyarray(py))?;
        d.set_item("size", size.into_pyarray(py))?;
        d.set_item("flow", flow.into_pyarray(py))?;
        d.set_item("arrival_ns", arrival.into_pyarray(py))?;
        Ok(d)
    }

    /// Write Pantheon's merged tunnel log of a direction; `opportunities` adds the link's `#` lines (less the 4-byte
    /// prefix) when link events were recorded.
    fn write_tunnel_log(&self, py: Python<'_>, path: PathBuf, direction: &str, start_epoch_ms: f64) -> PyResult<()> {
        let log = self.log(direction)?;
        let events = self.events(if direction == "data" { "up" } else { "down" })?;
        write_file(py, &path, |out| logs::write_tunnel_log(out, log, events, start_epoch_ms))
    }

    /// Write mahimahi's log of the first link of a direction below `header`.
    fn write_mm_log(&self, py: Python<'_>, path: PathBuf, direction: &str, header: &str) -> PyResult<()> {
        let events = self.events(direction)?;
        write_file(py, &path, |out| logs::write_mm_log(out, events, header))
    }
}
