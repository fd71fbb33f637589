"""Results, records and curves of runs that never happened, for tests of figures, tables and reports."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from ccgym.config.catalog_file import PublishedResult
from ccgym.evaluation.curves import FlowCurves, RunCurves
from ccgym.evaluation.kept_arrays import packed
from ccgym.evaluation.kept_series import kept_series
from ccgym.evaluation.metrics import PantheonMetrics, RunMetrics
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.run_numbers import SERIES_COLUMNS, LinkRecord
from ccgym.evaluation.run_record import RunRecord
from ccgym.evaluation.scheme_summary import CellResult
from ccgym.schemes.style import SchemeStyle

STYLES = (
    SchemeStyle("bbr", "TCP BBR", "gold", "^"),
    SchemeStyle("cubic", "TCP Cubic", "black", "*"),
    SchemeStyle("scream", "SCReAM", "pink", "1"),
)


def numbers(throughput: float, delay: float | None, loss: float) -> PantheonMetrics:
    return PantheonMetrics(throughput, throughput + 0.1, delay, loss, 30.0, 1000, 990)


def cell(scheme: str, run: int, throughput: float, delay: float, loss: float, flows: int = 1) -> CellResult:
    part = numbers(throughput, delay, loss)
    metrics = RunMetrics(total=part, flows={n: part for n in range(1, flows + 1)}, capacity_mbps=77.72)
    link = LinkRecord(77.72, throughput / 77.72, 3, 10, 1.0, 1.0)
    record = RunRecord("a path <&>", 11, 30.0, f"00ff{run}", (), link, metrics)
    return CellResult(scheme, run, record, None, 1.7e9, 0.5, f"runs/{scheme}_run{run}.npz")


def published(scheme: str, label: str, throughput: float, delay: float, loss: float) -> PublishedResult:
    return PublishedResult(
        scheme=scheme, label=label, runs=5, throughput_mbps=throughput, delay_p95_ms=delay, loss=loss
    )


def result_set(**changes: object) -> ResultSet:
    cells = tuple(
        cell(style.key, run, base + 0.1 * run, delay + 0.01 * run, loss)
        for style, (base, delay, loss) in zip(
            STYLES, [(72.5, 65.9, 0.034), (60, 66.0, 0.01), (8, 51.5, 0)], strict=True
        )
        for run in (1, 2, 3)
    )
    fields: dict[str, object] = {
        "parameters": {
            "path_name": "77.72mbps",
            "runs": 3,
            "flows": 1,
            "runtime_s": 30.0,
            "interval_s": 0.0,
            "seed": 1,
            "schemes": ["bbr", "cubic", "scream"],
        },
        "provenance": {
            "command": "python evaluate.py --trace 77.72mbps",
            "path": "a path <&>\n  mahimahi  mm-link",
            "started": "2026-01-02 03:04:05 UTC",
            "wall_s": 2.0,
            "versions": {"ccgym": "0.1.0", "python": "3.11"},
            "system": "Linux",
            "git": "branch: main @ 0123",
        },
        "styles": STYLES,
        "cells": cells,
        "published": {
            "bbr": published("bbr", "TCP BBR", 72.70, 65.94, 0.0343),
            "eagle": published("eagle", "Eagle-v3", 47.55, 55.64, 0.0155),
        },
        "published_source": "Pantheon report of 2019-10-22",
    }
    return ResultSet(**{**fields, **changes})  # type: ignore[arg-type]


def curves(flows: int = 1) -> RunCurves:
    line = np.linspace(10, 20, 60)
    part = FlowCurves(line, line, np.linspace(0.1, 29.9, 500), np.linspace(51, 66, 500))
    return RunCurves(0.5, np.full(60, 77.72), (part,) * flows)


def metrics(flows: int = 1) -> RunMetrics:
    found = cell("bbr", 1, 72.654, 65.98, 0.03, flows).record.metrics
    assert found is not None
    return found


def series(flows: int = 1, count: int = 300) -> dict[str, np.ndarray]:
    """The table of a run over time: two flows that take turns, and a queue that fills and drains."""
    ends = np.arange(1, count + 1) / 10
    wave = 1 + np.sin(ends)
    tables = []
    for number in range(1, flows + 1):
        known = {
            "time_s": ends,
            "flow": np.full(count, number),
            "scheme": np.full(count, "bbr", dtype=object),
            "throughput_mbps": 30 * wave / number,
            "lost_packets": (7 * wave).astype(np.int64),
            "pacing_rate_mbps": np.full(count, np.nan),
        }
        rest = {name: 50 + 10 * wave for name in SERIES_COLUMNS if name not in known}
        tables.append({**known, **rest})
    return {name: np.stack([table[name] for table in tables], axis=1).ravel() for name in SERIES_COLUMNS}


def store(directory: Path, results: ResultSet, flows: int = 1) -> ResultSet:
    """Write what an evaluation keeps of these runs: curves and series."""
    (directory / "runs").mkdir(exist_ok=True)
    content = packed({**curves(flows).arrays(), **kept_series(series(flows))})
    for one in results.cells:
        (directory / one.curves).write_bytes(content)
    return replace(results, directory=directory)


def many(schemes: int, runs: int) -> ResultSet:
    """Results of many runs."""
    styles = tuple(
        SchemeStyle(f"s{k}", f"Scheme {k}", f"#{37 * k % 256:02x}44aa", "o^s*"[k % 4]) for k in range(schemes)
    )
    cells = tuple(
        cell(style.key, run, 20 + 4 * place + run, 55 + 3 * place + run % 3, 0.01)
        for place, style in enumerate(styles)
        for run in range(1, runs + 1)
    )
    parameters = {**result_set().parameters, "runs": runs, "schemes": [style.key for style in styles]}
    return result_set(styles=styles, cells=cells, parameters=parameters, published={})
