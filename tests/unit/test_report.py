"""Figures by their structure, tables by their text, reports by what is in them."""

from __future__ import annotations

import csv
import io
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg as PageCanvas
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.text import Text
from rich.console import Console

from ccgym.config.catalog import PublishedResult
from ccgym.errors import ResultsError
from ccgym.evaluation.curves import FlowCurves, RunCurves
from ccgym.evaluation.engine import Silent
from ccgym.evaluation.metrics import PantheonMetrics, RunMetrics
from ccgym.evaluation.results import CellFailure, CellResult, ResultSet
from ccgym.evaluation.run import parse_contenders
from ccgym.evaluation.run_record import LinkRecord, RunRecord
from ccgym.report import pdf, run_figures
from ccgym.report.drawn import Drawn
from ccgym.report.evaluation_report import build_report, page_values, write_tables
from ccgym.report.evaluation_table import evaluation_table, exact_table, markdown
from ccgym.report.figures.delay import delay_figure, delay_limits
from ccgym.report.figures.mean import mean_figure
from ccgym.report.figures.summary import needs_log_axis, outward, summary_figure
from ccgym.report.figures.throughput import throughput_figure
from ccgym.report.page import render
from ccgym.report.style import MAX_LUMINANCE, PAPER, house_style, legible, luminance, save
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


def published(scheme: str, label: str, throughput: float, delay: float, loss: float) -> PublishedResult:
    return PublishedResult(
        scheme=scheme, label=label, runs=5, throughput_mbps=throughput, delay_p95_ms=delay, loss=loss
    )


def curves(flows: int = 1) -> RunCurves:
    line = np.linspace(10, 20, 60)
    part = FlowCurves(line, line, np.linspace(0.1, 29.9, 500), np.linspace(51, 66, 500))
    return RunCurves(0.5, np.full(60, 77.72), (part,) * flows)


class Counter(Silent):
    """Counts what was drawn."""

    def __init__(self) -> None:
        self.done: dict[str, int] = {}

    def begin(self, what: str, total: int, done: int = 0) -> None:
        self.done[what] = 0

    def advance(self, what: str, by: int = 1, note: str = "", *, kept: bool = False) -> None:
        self.done[what] += by


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
    assert set(texts(figure)) == {"TCP BBR", "TCP Cubic", "SCReAM", "better ↗"}, "and Eagle was not evaluated"
    hollow = [line for line in axes.get_lines() if line.get_markerfacecolor() == "white"]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in hollow] == [(65.94, 72.70)]
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


def test_markdown() -> None:
    lines = markdown(result_set()).splitlines()
    assert lines[0] == (
        "| scheme | runs | throughput (Mbit/s) | 95th %-ile delay (ms) | loss (%) | utilization (%) | "
        "published throughput (Mbit/s) | published 95th %-ile delay (ms) | published loss (%) |"
    )
    assert lines[2] == (
        "| TCP BBR | 3 | 72.70 ± 0.10 | 65.92 ± 0.01 | 3.40 ± 0.00 | 93.5 ± 0.1 | 72.70 | 65.94 | 3.43 |"
    )
    assert "Eagle" not in "".join(lines), "it was not evaluated"
    assert lines[-2:] == [
        "",
        "`77.72mbps`, 3 runs of 30 s, seed 1, simulated in virtual time: `python evaluate.py --trace 77.72mbps`. "
        "Published: Pantheon report of 2019-10-22.",
    ]


def test_a_table_without_published_numbers_has_no_such_columns() -> None:
    assert "published" not in markdown(result_set(published={})).casefold()


def test_ignored_runs_show_in_the_table() -> None:
    first, *rest = result_set().cells
    ignored = replace(first, invalid="too short")
    table = evaluation_table(result_set(cells=(ignored, *rest)))
    assert table.text(table.rows[0], "runs") == "2 of 3"


def test_csv_table_is_exact() -> None:
    found = list(csv.DictReader(io.StringIO(exact_table(result_set()).csv())))
    assert float(found[0]["throughput_mbps_mean"]) == pytest.approx(72.7)
    assert float(found[0]["loss_mean"]) == pytest.approx(0.034)
    assert found[0]["published_delay_p95_ms"] == "65.94"
    assert found[1]["published_loss"] == ""


# --- Reports -------------------------------------------------------------------------------------------------------


def test_html_report_needs_nothing_else(tmp_path: Path) -> None:
    with house_style():
        save(mean_figure(result_set()), tmp_path / "pantheon_summary_mean.svg")
    results = result_set(failures=(CellFailure("cubic", 4, 5, "<no luck>"),))
    page = render("evaluation", **page_values(results, tmp_path))
    assert not re.search(r'src="(?!data:)', page), "nothing is fetched"
    assert re.findall(r'href="([^#"]+)"', page) == ["pantheon_summary_mean.svg"], "a larger one is a click away"
    assert "a path &lt;&amp;&gt;" in page
    assert "&lt;no luck&gt;" in page
    assert "python evaluate.py --trace 77.72mbps" in page
    assert "Average throughput: 72.60 Mbit/s (93.4% utilization)" in page
    assert page.count("Figure is missing") == 1 + 2 * 9, "all but the mean figure"
    assert "Pantheon report of 2019-10-22" in page


def test_build_report_writes_pantheons_files(tmp_path: Path) -> None:
    (tmp_path / "runs").mkdir()
    results = result_set(cells=result_set().cells[:2])
    for one in results.cells:
        (tmp_path / one.curves).write_bytes(curves().to_bytes())
    told = Counter()
    write_tables(results, tmp_path)
    build_report(results, tmp_path, jobs=1, observer=told)
    assert {file.name for file in tmp_path.iterdir() if file.is_file()} == {
        "bbr_datalink_throughput_run1.png",
        "bbr_datalink_throughput_run2.png",
        "bbr_datalink_delay_run1.png",
        "bbr_datalink_delay_run2.png",
        "bbr_datalink_throughput_run1_paper.pdf",
        "bbr_datalink_delay_run1_paper.pdf",
        "pantheon_summary.svg",
        "pantheon_summary.pdf",
        "pantheon_summary.png",
        "pantheon_summary_mean.svg",
        "pantheon_summary_mean.pdf",
        "pantheon_summary_mean.png",
        "pantheon_summary_paper.pdf",
        "pantheon_summary_mean_paper.pdf",
        "ccgym_figures.json",
        "pantheon_report.html",
        "pantheon_report.pdf",
        "pantheon_table.md",
        "pantheon_table.csv",
    }
    assert "Figure is missing" not in (tmp_path / "pantheon_report.html").read_text()
    assert (tmp_path / "pantheon_report.pdf").read_bytes().count(b"/Type /Page ") == 2 + 2
    assert told.done["figures"] == 2


# --- What is drawn, and by whom ------------------------------------------------------------------------------------


def with_curves(directory: Path, results: ResultSet, flows: int = 1) -> ResultSet:
    """Store curves for all runs of the results."""
    (directory / "runs").mkdir(exist_ok=True)
    for one in results.cells:
        (directory / one.curves).write_bytes(curves(flows).to_bytes())
    return results


def test_figures_are_drawn_even_where_no_worker_can_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = with_curves(tmp_path, result_set())
    monkeypatch.setattr(run_figures, "environment", lambda: {"PYTHONHOME": "/nowhere"})
    assert list(run_figures.drawn_runs(results, tmp_path, jobs=2)) == list(results.cells)
    assert len(list(tmp_path.glob("*.png"))) == 18


def test_workers_draw_what_one_process_draws(tmp_path: Path) -> None:
    for name, jobs in (("one", 1), ("two", 2)):
        (tmp_path / name).mkdir()
        results = with_curves(tmp_path / name, result_set())
        assert list(run_figures.drawn_runs(results, tmp_path / name, jobs)) == list(results.cells)
    alone = {file.name: file.read_bytes() for file in (tmp_path / "one").glob("*.png")}
    assert alone == {file.name: file.read_bytes() for file in (tmp_path / "two").glob("*.png")}


def test_a_run_that_cannot_be_drawn_is_an_error_here(tmp_path: Path) -> None:
    results = with_curves(tmp_path, result_set())
    (tmp_path / "runs" / "cubic_run2.npz").write_bytes(b"cut off")
    with pytest.raises(ResultsError, match=r"cubic_run2\.npz: the curves of a run cannot be read"):
        list(run_figures.drawn_runs(results, tmp_path, jobs=2))


def test_only_what_has_changed_is_drawn_again(tmp_path: Path) -> None:
    results = with_curves(tmp_path, result_set(cells=result_set().cells[:3]))

    def build(what: ResultSet) -> tuple[int, set[str]]:
        """Runs that were drawn, and the names of the figures that are new files."""
        before = {file: file.stat().st_mtime_ns for file in tmp_path.glob("*.p*")}
        told = Counter()
        build_report(what, tmp_path, jobs=1, observer=told)
        drawn = told.done.get("figures", 0)
        return drawn, {file.name for file in tmp_path.glob("*.p*") if file.stat().st_mtime_ns != before.get(file)}

    assert build(results)[0] == 3
    assert build(replace(results, provenance={**results.provenance, "started": "later"})) == (0, set())
    (tmp_path / "runs" / "bbr_run1.npz").write_bytes(replace(curves(), bin_s=0.4).to_bytes())
    (tmp_path / "bbr_datalink_delay_run2.png").unlink()
    (tmp_path / "pantheon_summary.png").write_bytes(b"edited")
    drawn, new = build(results)
    assert drawn == 2
    assert "bbr_datalink_delay_run3.png" not in new
    assert {"bbr_datalink_delay_run1.png", "bbr_datalink_delay_run2.png", "pantheon_report.pdf"} <= new
    assert {"pantheon_summary.png", "pantheon_summary_paper.pdf"} <= new
    other = replace(results.cells[0], record=replace(results.cells[0].record, metrics=metrics()))
    assert run_figures.run_inputs(tmp_path, other) != run_figures.run_inputs(tmp_path, results.cells[0])


def test_a_record_of_what_is_drawn_that_cannot_be_read_is_none(tmp_path: Path) -> None:
    figure = tmp_path / "a.png"
    figure.write_bytes(b"figure")
    record = Drawn(tmp_path)
    record.note("a", "inputs", [figure])
    record.write()
    assert Drawn(tmp_path).is_current("a", "inputs", [figure])
    assert not Drawn(tmp_path).is_current("a", "others", [figure])
    for text in ("[[", "[]", "{", "\xff"):
        (tmp_path / "ccgym_figures.json").write_text(text)
        assert not Drawn(tmp_path).is_current("a", "inputs", [figure])


# --- Screens of any width, and paper -------------------------------------------------------------------------------


def printed(table: object, width: int) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize("width", [40, 60, 80, 120, 160])
@pytest.mark.parametrize("scale", [1, 100])
def test_the_table_fits_and_loses_no_digit(width: int, scale: int) -> None:
    cells = tuple(
        cell(one.scheme, one.run, one.record.total.throughput_mbps, scale * (one.record.total.delay_p95_ms or 0), 0.1)
        for one in result_set().cells
    )
    results = result_set(cells=cells)
    shown = printed(evaluation_table(results), width)
    assert max(map(len, shown.splitlines())) <= width
    assert "…" not in shown
    numbers = re.findall(r"[\d.]+", shown)
    table = evaluation_table(results)
    for row in table.rows:
        label, *texts = table.texts(row)
        assert label in shown
        assert {number for text in texts for number in re.findall(r"[\d.]+", text)} <= set(numbers)


def test_a_wide_screen_has_one_line_per_scheme() -> None:
    lines = printed(evaluation_table(result_set()), 120).splitlines()
    assert sum("72.70 ± 0.10" in line and "65.94" in line for line in lines) == 1


def test_runs_of_the_same_packets_are_said_to_be_so(tmp_path: Path) -> None:
    cells = tuple(replace(one, record=replace(one.record, trajectory_hash="00ff")) for one in result_set().cells)
    results = with_curves(tmp_path, result_set(cells=cells))
    words = "3 runs, identical packets: nothing random on this path"
    table = evaluation_table(results)
    assert all(table.text(row, "runs") == "3 =" and "±" not in "".join(table.texts(row)) for row in table.rows)
    assert words in markdown(results)
    assert "±" not in printed(evaluation_table(results), 80)
    assert words in render("evaluation", **page_values(results, tmp_path))
    pages: list[str] = pdf_texts(results, tmp_path)
    assert words in "\n".join(pages)
    summary = results.as_dict()["summary"][0]
    assert summary["identical_runs"] is True
    assert summary["loss"]["std"] is None
    assert [line["identical_runs"] for line in csv.DictReader(io.StringIO(exact_table(results).csv()))] == ["True"] * 3
    assert "identical" not in markdown(result_set()), "different packets"
    alone = result_set(cells=tuple(one for one in cells if one.run == 1))
    assert "identical" not in markdown(alone), "one run is like no other"


def pdf_pages(results: ResultSet, directory: Path) -> list[Figure]:
    """The pages of the PDF, as they are written."""
    pages: list[Figure] = []

    class Pages(PdfPages):
        def savefig(self, figure: Any = None, **options: Any) -> None:
            pages.append(figure)
            super().savefig(figure, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pdf, "PdfPages", Pages)
        pdf.write_pdf(results, directory, directory / "report.pdf")
    return pages


def pdf_texts(results: ResultSet, directory: Path) -> list[str]:
    return ["\n".join(text.get_text() for text in page.texts) for page in pdf_pages(results, directory)]


@pytest.mark.parametrize("flows", [1, 3, 20])
def test_the_pdf_shows_every_flow_and_covers_none(tmp_path: Path, flows: int) -> None:
    results = result_set(cells=(cell("bbr", 1, 72.6, 65.9, 0.03, flows),))
    with_curves(tmp_path, results, flows)
    list(run_figures.drawn_runs(results, tmp_path, jobs=1))
    pages = pdf_pages(results, tmp_path)
    shown = "\n".join(text.get_text() for page in pages for text in page.texts)
    assert all(f"-- Flow {flow}:" in shown for flow in range(1, flows + 1))
    assert len(pages) == (3 if flows <= 3 else 4)
    for page in pages:
        renderer = PageCanvas(page).get_renderer()  # type: ignore[no-untyped-call]
        boxes = [text.get_window_extent(renderer) for text in page.texts]
        pictures = [axes.get_window_extent(renderer) for axes in page.axes]
        assert not any(box.overlaps(picture) for box in boxes for picture in pictures)
        sheet = page.bbox
        assert all(box.y0 > 0 and box.x1 < sheet.x1 for box in boxes), "all on the page"


def test_paper_figures_have_the_width_of_a_column_and_legible_text() -> None:
    for draw in (
        lambda: mean_figure(result_set()),
        lambda: summary_figure(result_set()),
        lambda: throughput_figure(curves(3), metrics(3)),
        lambda: delay_figure(curves(3), metrics(3)),
    ):
        with house_style(PAPER):
            figure = draw()
            figure.draw_without_rendering()
            drawn = figure.get_tightbbox()
        assert drawn.x0 >= 0
        assert drawn.x1 <= 3.4
        assert drawn.y0 >= 0, "nothing is cut off"
        assert drawn.y1 <= figure.get_size_inches()[1]
        assert figure.get_size_inches()[0] == pytest.approx(3.4)
        assert figure.axes[0].get_title(loc="left") == figure.axes[0].get_title() == "", "the caption says it"
        sizes = [text.get_fontsize() for text in figure.findobj(Text) if text.get_text()]
        assert min(sizes) >= 7
        assert figure.axes[0].xaxis.label.get_fontsize() == 8


def test_every_scheme_has_a_color_that_shows_on_white() -> None:
    choices = [
        *parse_contenders("reno,cubic,vegas,bbr,copa,synthesized_bbr,oracle,aurora,eagle,eagle_v1,eagle_v2,indigo")
    ]
    choices += parse_contenders("tcp:bbr,tcp:cubic,tcp:reno,tcp:vegas,tcp:dctcp")
    pale = [one.style.label for one in choices if luminance(*to_rgb(one.style.color)) > MAX_LUMINANCE]
    assert not pale
    assert len({(one.style.color, one.style.marker) for one in choices}) == len(choices)
    assert len({one.style.color for one in choices[:12]}) == 12, "each of ours has a color of its own"


@pytest.mark.parametrize("color", ["gold", "white", "#ffeeff", "silver", "lime"])
def test_pale_colors_are_drawn_darker(color: str) -> None:
    assert luminance(*to_rgb(legible(color))) <= MAX_LUMINANCE


def test_labels_are_text_and_not_formulas(tmp_path: Path) -> None:
    style = SchemeStyle("odd", r"$\bad{ _x$ $5", "gold", "o")
    with house_style():
        figure = mean_figure(result_set(styles=(style,), cells=(cell("odd", 1, 60, 60, 0),), published={}))
        save(figure, tmp_path / "odd.svg")
    assert style.label in texts(figure)


def test_names_stay_off_error_bars_and_lines() -> None:
    results = result_set()
    wide = tuple(
        cell(one.scheme, one.run, 60 + 10 * STYLES.index(style), 60 + 2 * one.run, 0.0)
        for style in STYLES
        for one in results.cells
        if one.scheme == style.key
    )
    with house_style():
        figure = mean_figure(result_set(cells=wide, published={}))
    axes = figure.axes[0]
    renderer = figure.canvas.get_renderer()  # type: ignore[attr-defined]
    bars = [path for bar in axes.collections for path in bar.get_paths()]
    drawn = [axes.transData.transform_path(path) for path in bars]
    for text in axes.texts:
        box = Text.get_window_extent(text, renderer)
        assert not any(path.intersects_bbox(box, filled=False) for path in drawn), text.get_text()


@pytest.mark.parametrize(
    ("low", "high", "limits"),
    [(51.0, 66.0, (49.68, 67.32)), (1.0, 66.0, (0.0, 69.3)), (math.inf, 0.0, (0.0, 1.0)), (5.0, 5.0, (4.9, 5.1))],
)
def test_the_delay_axis_shows_the_queue(low: float, high: float, limits: tuple[float, float]) -> None:
    assert delay_limits(low, high) == pytest.approx(limits)
