"""Write Pantheon's files of an experiment, without the packet logs."""

from __future__ import annotations

import time
from collections.abc import Collection
from pathlib import Path

from ccgym.config.hosts import hosts_of
from ccgym.config.path import NetworkPath
from ccgym.emulation.checkout import git_summary
from ccgym.evaluation import pantheon
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.frames import to_csv
from ccgym.evaluation.kept_series import read_series, series_file
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.scheme_summary import CellResult
from ccgym.files import atomic_write


def write_pantheon_files(results: ResultSet, experiment: Experiment, out: Path, *, runs: Collection[str]) -> None:
    """Write metadata, performance and plot styles, with Pantheon's names and formats.

    Args:
        results: The results.
        experiment: The experiment.
        out: The results directory.
        runs: Names of the runs to write statistics and series (as CSV) for.
    """
    atomic_write(out / pantheon.CONFIG_FILE, pantheon.config_yml(results.styles))
    write_numbers(results, out, runs=runs)
    for cell in results.cells:
        if cell.name in runs and (series := read_series(out, cell)) is not None:
            atomic_write(out / series_file(cell.name), to_csv(series))
    hosts = hosts_of(experiment.path)
    atomic_write(
        out / pantheon.METADATA_FILE,
        pantheon.metadata_json(
            [style.key for style in results.styles],
            flows=experiment.flows,
            runtime=experiment.runtime_ns / 1e9,
            interval=experiment.interval_ns / 1e9,
            run_times=experiment.runs,
            random_order=experiment.random_order,
            git_summary=f"{git_summary()}\n",
            **(_emulated(experiment.path) if hosts is None else hosts.metadata()),
        ),
    )


def _emulated(path: NetworkPath) -> dict[str, str | None]:
    """Return the metadata of a path with a description."""
    parts = path.mahimahi_parts()
    traces = {name: parts[name] or "unconstrained" for name in ("uplink_trace", "downlink_trace")}
    return {"mode": "local", **parts, **traces}


def write_numbers(results: ResultSet, out: Path, *, runs: Collection[str] | None = None) -> None:
    """Write the results of Pantheon's ``plot.py``: performance, and the statistics of ``runs``, by default all."""
    valid = {(cell.scheme, cell.run): cell.record.metrics for cell in results.cells if cell.invalid is None}
    atomic_write(
        out / pantheon.PERF_FILE,
        pantheon.perf_json(
            [style.key for style in results.styles],
            {key: metrics for key, metrics in valid.items() if metrics is not None},
        ),
    )
    # Runs in virtual time may end later than the wall clock; statistics are computed after that.
    begun = [(cell.started_epoch_s, cell.record.duration_s) for cell in results.cells]
    now = max([time.time(), *(began + seconds for began, seconds in begun if began is not None)])
    for cell in results.cells:
        if not cell.curves or (runs is not None and cell.name not in runs):
            continue  # without curves, the numbers were read from such a file, which already exists
        atomic_write(out / pantheon.stats_file(cell.scheme, cell.run), run_text(cell, now))


def run_text(cell: CellResult, generated_epoch_s: float) -> str:
    """Return the statistics file of a run; ``generated_epoch_s`` is the time of their computation."""
    began = cell.started_epoch_s
    return pantheon.stats_text(
        cell.record.metrics if cell.invalid is None else None,
        start_epoch_s=began,
        end_epoch_s=None if began is None else began + cell.record.duration_s,
        generated_epoch_s=generated_epoch_s,
        offsets_ms=(cell.record.path_report or {}).get("clock_offsets_ms"),
    )
