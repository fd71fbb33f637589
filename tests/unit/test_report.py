"""Figures by their structure, tables by their text, reports by what is in them."""

from __future__ import annotations

import csv
import io
import re
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

from ccgym.evaluation.curves import FlowCurves, RunCurves
from ccgym.evaluation.metrics import PantheonMetrics, RunMetrics
from ccgym.evaluation.results import CellFailure, CellResult, PublishedPoint, ResultSet, SchemeStyle
from ccgym.evaluation.run_record import LinkRecord, RunRecord
from ccgym.report import run_figures
from ccgym.report.build import build_report, write_tables
from ccgym.report.delay_figure import delay_figure
from ccgym.report.html_report import html_report
from ccgym.report.style import house_style, save
from ccgym.report.summary_figure import mean_figure, needs_log_axis, outward, summary_figure
from ccgym.report.table import csv_table, markdown_table, rows
from ccgym.report.throughput_figure import throughput_figure

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
    record = RunRecord("a path <&>", 11, 30.0, "00ff", (), link, metrics)
    return CellResult(scheme, run, record, None, 1.7e9, 0.5)


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
            "bbr": PublishedPoint("TCP BBR", 5, 72.70, 65.94, 0.0343),
            "eagle": PublishedPoint("Eagle-v3", 5, 47.55, 55.64, 0.0155),
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


# --- Figures of a run ----------------------------------------------------------------------------------------------


def test_throughput_figure() -> None:
    with house_style():
        figure = throughput_figure(curves(2), metrics(2))
    axes = figure.axes[0]
    assert axes.get_xlabel() == "Time (s)"
    assert axes.get_ylabel() == "Throughput (Mbit/s)"
    assert axes.get_title() == "Average capacity 77.72 Mbit/s (shaded region)"
    assert [line.get_linestyle() for line in axes.get_lines()] == ["--", "-", "--", "-"]
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        "Flow 1 ingress (mean 72.75 Mbit/s)",
        "Flow 2 ingress (mean 72.75 Mbit/s)",
        "Flow 1 egress (mean 72.65 Mbit/s)",
        "Flow 2 egress (mean 72.65 Mbit/s)",
    ]
    assert any(isinstance(part, PolyCollection) for part in axes.collections), "the capacity is shaded"
    assert tuple(figure.get_size_inches()) == (12, 6)
    assert axes.get_ylim()[0] == 0
    # Ingress stands at the start of its bin, egress at its end with a leading 0.
    ingress, egress = axes.get_lines()[:2]
    assert (ingress.get_xdata()[0], egress.get_xdata()[0], egress.get_xdata()[-1]) == (0.0, 0.0, 30.0)
    assert egress.get_ydata()[0] == 0.0


def test_a_late_flow_is_not_drawn_before_it_starts() -> None:
    late = np.concatenate((np.zeros(20), np.full(40, 5.0)))
    part = FlowCurves(late, late, np.array([10.0]), np.array([51.0]))
    with house_style():
        figure = throughput_figure(RunCurves(0.5, np.empty(0), (part,)), metrics(1))
    ingress, egress = figure.axes[0].get_lines()
    assert (ingress.get_xdata()[0], egress.get_xdata()[0]) == (10.0, 10.0)
    assert figure.axes[0].get_title() == "", "without a capacity there is no title about it"


def test_delay_figure() -> None:
    with house_style():
        figure = delay_figure(curves(2), metrics(2))
    axes = figure.axes[0]
    assert axes.get_xlabel() == "Time (s)"
    assert axes.get_ylabel() == "Per-packet one-way delay (ms)"
    assert axes.get_xlim() == (0, 30)
    assert sum(len(line.get_xdata()) for line in axes.get_lines()) == 1000, "every point once"
    legend = axes.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == [
        "Flow 1 (95th percentile 65.98 ms)",
        "Flow 2 (95th percentile 65.98 ms)",
    ]


def test_a_flow_of_which_nothing_arrived_is_said_so() -> None:
    nothing = np.empty(0)
    part = numbers(0.0, None, 1.0)
    with house_style():
        figure = delay_figure(
            RunCurves(0.5, nothing, (FlowCurves(np.ones(3), nothing, nothing, nothing),)),
            RunMetrics(part, {1: part}, None),
        )
    legend = figure.axes[0].get_legend()
    assert legend is not None
    assert legend.get_texts()[0].get_text() == "Flow 1 (no packet left)"


# --- Summary -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "up", "expected"),
    [(5, True, 8), (5, False, 4), (8, True, 8), (8, False, 8), (-5, True, -4), (-5, False, -8), (0, True, 0)],
)
def test_outward(value: float, up: bool, expected: float) -> None:
    assert outward(value, up=up) == expected


@pytest.mark.parametrize(
    ("low", "high", "log"),
    [
        (52, 66, False),  # 32 … 128: a factor of 4, not more
        (52, 130, True),  # 32 … 256
        (0, 7, True),  # 0 … 8
        (0, 3.9, False),  # 0 … 4
        (-2, 2, True),
        (-1, 2, False),
    ],
)
def test_log_axis_rule(low: float, high: float, log: bool) -> None:
    assert needs_log_axis(low, high) is log


def texts(figure: object) -> list[str]:
    return [text.get_text() for text in figure.axes[0].texts]  # type: ignore[attr-defined]


def test_mean_figure() -> None:
    with house_style():
        figure = mean_figure(result_set())
    axes = figure.axes[0]
    left, right = axes.get_xlim()
    assert left > right, "the delay axis is inverted: better is to the right"
    assert axes.get_ylim()[0] == 0
    assert axes.get_xlabel() == "95th percentile one-way delay (ms)"
    assert axes.get_ylabel() == "Average throughput (Mbit/s)"
    assert {"TCP BBR", "TCP Cubic", "SCReAM", "Eagle-v3 (published)"} <= set(texts(figure))
    hollow = [line for line in axes.get_lines() if line.get_markerfacecolor() == "white"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in hollow] == [(65.94, 72.70), (55.64, 47.55)]
    assert axes.get_title(loc="left") == "simulated: 77.72mbps\n3 runs of 30 s each per scheme, 1 flow per run"


def test_names_cover_neither_marks_nor_each_other() -> None:
    crowd = tuple(SchemeStyle(f"s{i}", f"Scheme number {i}", "black", "o") for i in range(8))
    cells = tuple(cell(style.key, 1, 60 + 0.5 * i, 60 + 0.3 * i, 0) for i, style in enumerate(crowd))
    with house_style():
        figure = mean_figure(result_set(styles=crowd, cells=cells, published={}))
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    boxes = [text.get_window_extent(renderer) for text in figure.axes[0].texts if "Scheme" in text.get_text()]
    for place, box in enumerate(boxes):
        for other in boxes[place + 1 :]:
            assert not box.overlaps(other)


def test_summary_figure_has_one_mark_per_run_and_a_legend() -> None:
    with house_style():
        figure = summary_figure(result_set())
    axes = figure.axes[0]
    solid = [line for line in axes.get_lines() if line.get_markerfacecolor() != "white"]
    assert len(solid) == 9
    legend = axes.get_legend()
    assert legend is not None
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == ["TCP BBR", "TCP Cubic", "SCReAM", "published mean"]


def test_widely_spread_delays_get_a_log_axis() -> None:
    cells = (cell("bbr", 1, 10, 30, 0), cell("cubic", 1, 10, 900, 0))
    with house_style():
        figure = summary_figure(result_set(cells=cells, published={}))
    axes = figure.axes[0]
    assert axes.get_xscale() == "symlog"
    assert axes.get_xlim() == (1024, 16)


def test_an_experiment_without_a_valid_run_can_still_be_drawn() -> None:
    with house_style():
        for draw in (summary_figure, mean_figure):
            assert draw(result_set(cells=(), published={})).axes[0].get_ylim()[0] == 0


def test_equal_figures_are_equal_files(tmp_path: Path) -> None:
    for suffix in ("svg", "pdf", "png"):
        with house_style():
            for name in ("a", "b"):
                save(mean_figure(result_set()), tmp_path / f"{name}.{suffix}")
        assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


# --- Tables --------------------------------------------------------------------------------------------------------


def test_markdown_table() -> None:
    lines = markdown_table(result_set()).splitlines()
    assert lines[0] == (
        "| scheme | runs | throughput (Mbit/s) | 95th %-ile delay (ms) | loss (%) | utilisation (%) | "
        "published throughput (Mbit/s) | published 95th %-ile delay (ms) | published loss (%) |"
    )
    assert lines[2] == (
        "| TCP BBR | 3 | 72.70 ± 0.10 | 65.92 ± 0.01 | 3.40 ± 0.00 | 93.5 ± 0.1 | 72.70 | 65.94 | 3.43 |"
    )
    assert lines[-3] == "| Eagle-v3 | – | – | – | – | – | 47.55 | 55.64 | 1.55 |"
    assert lines[-2:] == [
        "",
        "`77.72mbps`, 3 runs of 30 s, seed 1, simulated in virtual time: `python evaluate.py --trace 77.72mbps`. "
        "Published: Pantheon report of 2019-10-22.",
    ]


def test_a_table_without_published_numbers_has_no_such_columns() -> None:
    assert "published" not in markdown_table(result_set(published={})).casefold()


def test_ignored_runs_show_in_the_table() -> None:
    first, *rest = result_set().cells
    ignored = CellResult(first.scheme, first.run, first.record, "too short", 0.0, 0.1)
    assert rows(result_set(cells=(ignored, *rest)))[0].runs == "2 of 3"


def test_csv_table_is_exact() -> None:
    found = list(csv.DictReader(io.StringIO(csv_table(result_set()))))
    assert float(found[0]["throughput_mbps_mean"]) == pytest.approx(72.7)
    assert float(found[0]["loss_mean"]) == pytest.approx(0.034)
    assert found[0]["published_delay_p95_ms"] == "65.94"
    assert found[1]["published_loss"] == ""


# --- Reports -------------------------------------------------------------------------------------------------------


def test_html_report_needs_nothing_else(tmp_path: Path) -> None:
    with house_style():
        save(mean_figure(result_set()), tmp_path / "pantheon_summary_mean.svg")
    page = html_report(result_set(failures=(CellFailure("cubic", 4, 5, "<no luck>"),)), tmp_path)
    assert not re.search(r'(src|href)="(?!data:|#)', page), "nothing is fetched"
    assert "a path &lt;&amp;&gt;" in page
    assert "&lt;no luck&gt;" in page
    assert "python evaluate.py --trace 77.72mbps" in page
    assert "Average throughput: 72.60 Mbit/s (93.4% utilization)" in page
    assert page.count("Figure is missing") == 1 + 2 * 9, "all but the mean figure"
    assert "Pantheon report of 2019-10-22" in page


def test_build_report_writes_pantheons_files(tmp_path: Path) -> None:
    (tmp_path / "cells").mkdir()
    results = result_set(cells=result_set().cells[:2])
    for one in results.cells:
        (tmp_path / "cells" / f"{one.scheme}_run{one.run}.npz").write_bytes(curves().to_bytes())
    steps = []
    write_tables(results, tmp_path)
    build_report(results, tmp_path, jobs=1, progress=steps.append)
    assert {file.name for file in tmp_path.iterdir() if file.is_file()} == {
        "bbr_datalink_throughput_run1.png",
        "bbr_datalink_throughput_run2.png",
        "bbr_datalink_delay_run1.png",
        "bbr_datalink_delay_run2.png",
        "pantheon_summary.svg",
        "pantheon_summary.pdf",
        "pantheon_summary.png",
        "pantheon_summary_mean.svg",
        "pantheon_summary_mean.pdf",
        "pantheon_summary_mean.png",
        "pantheon_report.html",
        "pantheon_report.pdf",
        "pantheon_table.md",
        "pantheon_table.csv",
    }
    assert "Figure is missing" not in (tmp_path / "pantheon_report.html").read_text()
    assert (tmp_path / "pantheon_report.pdf").read_bytes().count(b"/Type /Page ") == 3 + 2
    assert sum(step.advance for step in steps if step.what == "figures") == 2


class BrokenPool:
    """A pool whose workers cannot start: the caller's script has no main guard."""

    def __init__(self, **_: object) -> None:
        pass

    def __enter__(self) -> BrokenPool:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def submit(self, *_: object) -> Future[None]:
        future: Future[None] = Future()
        future.set_exception(BrokenProcessPool("no worker started"))
        return future


def test_figures_are_drawn_even_where_no_worker_can_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cells").mkdir()
    for one in result_set().cells:
        (tmp_path / "cells" / f"{one.scheme}_run{one.run}.npz").write_bytes(curves().to_bytes())
    monkeypatch.setattr(run_figures, "ProcessPoolExecutor", BrokenPool)
    drawn = list(run_figures.drawn_runs(result_set(), tmp_path, jobs=2))
    assert drawn == list(result_set().cells)
    assert len(list(tmp_path.glob("*.png"))) == 18
