"""Read a directory of Pantheon as a result set of ccgym: equal numbers give equal tables, figures and pages."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from ccgym.config.hosts import Hosts
from ccgym.evaluation.backends import RECORDED, SHORT_PLACES
from ccgym.evaluation.curves import RunCurves
from ccgym.evaluation.directory import RUNS_DIRECTORY, claim, lock_directory
from ccgym.evaluation.flags import flag_dicts, flags
from ccgym.evaluation.kept_arrays import packed
from ccgym.evaluation.kept_series import SERIES_STEP_NS, kept_series
from ccgym.evaluation.metrics import PacketLog, PantheonMetrics, RunMetrics, run_metrics
from ccgym.evaluation.observer import Observer, Silent
from ccgym.evaluation.pantheon import stats_file, utc_text
from ccgym.evaluation.pantheon.directory import PantheonDirectory, RunFiles
from ccgym.evaluation.pantheon.logs import last_time_s
from ccgym.evaluation.pantheon.write import write_numbers
from ccgym.evaluation.provenance import versions
from ccgym.evaluation.results import ResultSet, chosen_styles
from ccgym.evaluation.results_file import write_results
from ccgym.evaluation.run_numbers import FlowRecord, LinkRecord
from ccgym.evaluation.run_record import RunRecord, logged_series
from ccgym.evaluation.scheme_summary import AckLink, CellResult
from ccgym.files import atomic_write
from ccgym.units import NS_PER_S

DEFAULT_RUNTIME_S: Final = 30.0
"""Pantheon's default length of a run, seconds."""


def analyze(
    directory: PantheonDirectory,
    out: Path,
    *,
    schemes: Collection[str] | None = None,
    command: str = "",
    observer: Observer | None = None,
) -> ResultSet:
    """Read all runs of a directory, and write the files of an evaluation: results, curves, tables of runs.

    Numbers are computed from the packet logs. For a run without a log, they are the rounded numbers of its statistics
    file, and the run has no figures.

    Args:
        directory: Pantheon's directory.
        out: The results directory of ccgym; created if it does not exist.
        schemes: The schemes to read; by default all.
        command: The command line, for the record.
        observer: Receives the progress.

    Raises:
        ConfigError: One of the schemes has no run.
        ResultsError: A log is damaged, or the directory belongs to another experiment.
    """
    observer = observer or Silent()
    styles = chosen_styles(directory.styles, schemes)
    runs = [run for run in directory.runs if run.scheme in {style.key for style in styles}]
    parameters = _parameters(directory, [style.key for style in styles], runs)
    with lock_directory(out, "evaluation"):
        claim(out, parameters, may_differ=("schemes", "runs"))
        observer.begin("reading", len(runs))
        cells = []
        for run in runs:
            cells.append(_cell(directory, run, parameters, out))
            observer.advance("reading", note=f"{run.scheme}_run{run.run}")
        results = ResultSet(
            parameters=parameters,
            provenance=_provenance(directory, command),
            styles=styles,
            cells=tuple(cells),
            directory=out,
        )
        results = replace(results, flags=flag_dicts(flags(results, None)))
        write_numbers(results, out)
        write_results(out, results.as_dict(), results.rows())
    return results


def with_acklinks(results: ResultSet, source: Path, out: Path, observer: Observer | None = None) -> ResultSet:
    """Return the results with numbers and curves of the ACKs, for runs with an ``acklink`` log.

    Args:
        results: Results of ccgym, or of a directory of Pantheon.
        source: The directory with the logs.
        out: The results directory, for the curves.
        observer: Receives the progress.
    """
    observer = observer or Silent()
    observer.begin("acknowledgements", len(results.cells))
    runs = {(run.scheme, run.run): run for run in PantheonDirectory.open(source).runs}
    cells = []
    for cell in results.cells:
        run = runs.get((cell.scheme, cell.run))
        log = None if run is None else run.read("acklink")
        if log is not None:
            curves = f"{RUNS_DIRECTORY}/{cell.name}_acklink.npz"
            atomic_write(out / curves, packed(RunCurves.from_log(log).arrays()))
            cell = replace(cell, acklink=AckLink(run_metrics(log), curves))
        cells.append(cell)
        observer.advance("acknowledgements")
    return replace(results, cells=tuple(cells))


def _parameters(directory: PantheonDirectory, schemes: list[str], runs: list[RunFiles]) -> dict[str, Any]:
    metadata = directory.metadata
    return {
        "path_name": directory.path.resolve().name,
        "pantheon": dict(metadata),
        "schemes": schemes,
        "runs": int(metadata.get("run_times") or max((run.run for run in runs), default=0)),
        "runtime_s": float(metadata.get("runtime") or _longest_s(runs)),
        "flows": int(metadata.get("flows") or 1),
        "interval_s": float(metadata.get("interval") or 0),
        "seed": None,
        "backend": RECORDED,
    }


def _longest_s(runs: list[RunFiles]) -> float:
    """Return the duration of the longest run, seconds, from the statistics, or else from the logs."""
    said = [
        run.statistics.ended_epoch_s - run.statistics.started_epoch_s
        for run in runs
        if run.statistics.started_epoch_s is not None and run.statistics.ended_epoch_s is not None
    ]
    logs = [run.logs["datalink"].merged for run in runs if not said and "datalink" in run.logs]
    return max(said or [last_time_s(log) for log in logs if log is not None], default=DEFAULT_RUNTIME_S)


def _cell(directory: PantheonDirectory, files: RunFiles, parameters: Mapping[str, Any], out: Path) -> CellResult:
    metrics, log, trajectory = _numbers(files)
    run = files.scheme, files.run
    runtime_s = float(parameters["runtime_s"])
    name = f"{files.scheme}_run{files.run}"
    curves = ""
    flows = tuple(_flow(directory, files, place, one, parameters) for place, one in enumerate(metrics.flows.values()))
    if log is not None:
        curves = f"{RUNS_DIRECTORY}/{name}.npz"
        series = kept_series(_series(log, flows, runtime_s)) if log.flows else {}
        atomic_write(out / curves, packed({**RunCurves.from_log(log).arrays(), **series}))
        asked = directory.metadata.get("runtime") or files.statistics.ended_epoch_s is not None
        invalid = metrics.invalid_reason(runtime_s if asked else 0.0)  # with an unknown run time, no run is too short
    else:
        if out.resolve() != directory.path.resolve():
            shutil.copyfile(directory.path / stats_file(*run), out / stats_file(*run))
        invalid = None if metrics.flows else "it has neither packet logs nor statistics"
    record = RunRecord(
        path=path_text(directory.metadata),
        seed=None,
        duration_s=runtime_s,
        trajectory_hash=trajectory,
        flows=flows,
        link=LinkRecord(metrics.capacity_mbps, metrics.utilization),
        metrics=metrics,
        backend=RECORDED,
        path_report={"clock_offsets_ms": offsets} if (offsets := dict(files.statistics.offsets_ms)) else None,
    )
    return CellResult(
        scheme=files.scheme,
        run=files.run,
        record=record,
        invalid=invalid,
        started_epoch_s=files.statistics.started_epoch_s,
        wall_s=runtime_s,
        curves=curves,
    )


def _series(log: PacketLog, flows: Sequence[FlowRecord], runtime_s: float) -> dict[str, Any]:
    return logged_series(log, [flow.scheme for flow in flows], round(runtime_s * NS_PER_S), SERIES_STEP_NS)


def _numbers(files: RunFiles) -> tuple[RunMetrics, PacketLog | None, str]:
    """Return the numbers of a run, its packets if they were logged, and a hash of the files of both."""
    log = files.read()
    if log is not None:
        digest = hashlib.sha256()
        for file in files.logs["datalink"].files:
            digest.update(file.read_bytes())
        return run_metrics(log), log, digest.hexdigest()[:16]
    said = files.statistics
    parts = {flow: PantheonMetrics.rounded(**numbers) for flow, numbers in said.flows.items()}
    total = parts.pop(0, PantheonMetrics.rounded())
    text = repr(sorted(said.flows.items()))
    return RunMetrics(total, parts, said.capacity_mbps), None, hashlib.sha256(text.encode()).hexdigest()[:16]


def _flow(
    directory: PantheonDirectory, files: RunFiles, place: int, metrics: PantheonMetrics, parameters: Mapping[str, Any]
) -> FlowRecord:
    mixed = (directory.metadata.get("test_config") or {}).get("flows") or []
    start_s = min(place * float(parameters["interval_s"]), float(parameters["runtime_s"]))
    return FlowRecord(
        scheme=str(mixed[place]["scheme"]) if place < len(mixed) else files.scheme,
        start_s=start_s,
        stop_s=float(parameters["runtime_s"]),
        throughput_mbps=metrics.throughput_mbps,
        delay_p95_ms=metrics.delay_p95_ms,
        loss=metrics.loss,
        ingress_mbps=metrics.ingress_mbps,
        sent_packets=metrics.packets_in,
    )


def path_text(metadata: Mapping[str, Any]) -> str:
    """Return the path of a test from its metadata: mahimahi's command line, or the hosts at its ends."""
    hosts = Hosts.of_metadata(metadata)
    if hosts is not None:
        return hosts.text
    words = [
        metadata.get("prepend_mm_cmds"),
        "mm-link",
        metadata.get("uplink_trace"),
        metadata.get("downlink_trace"),
        metadata.get("extra_mm_link_args"),
        metadata.get("append_mm_cmds"),
    ]
    return " ".join(str(word) for word in words if word) if "uplink_trace" in metadata else "an unnamed path"


def _provenance(directory: PantheonDirectory, command: str) -> dict[str, Any]:
    started = [run.statistics.started_epoch_s for run in directory.runs if run.statistics.started_epoch_s is not None]
    return {
        "command": command,
        "path": path_text(directory.metadata),
        "backend": RECORDED,
        "place": SHORT_PLACES[RECORDED],
        "started": f"{utc_text(min(started))} UTC" if started else "at an unknown time",
        "wall_s": 0.0,
        "versions": versions(),
        "system": "the machine of Pantheon's test",
        "git": str(directory.metadata.get("git_summary", "")).strip(),
    }
