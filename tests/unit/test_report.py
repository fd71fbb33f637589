"""Tables by their text, reports by what is in them, and what of them is drawn again."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import replace
from pathlib import Path

import pytest
from pypdf import PdfReader
from rich.console import Console

from ccgym.errors import ResultsError
from ccgym.evaluation.kept_arrays import packed
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.run_numbers import FlowRecord
from ccgym.evaluation.scheme_summary import CellFailure, CellResult
from ccgym.report import drawing_process, run_figures
from ccgym.report.evaluation_report import build_report, page, write_tables
from ccgym.report.evaluation_table import evaluation_table, exact_table, explanation, markdown
from ccgym.report.figure_cache import FigureCache
from ccgym.report.figures.mean import mean_figure
from ccgym.report.pdf import write_pdf
from ccgym.report.style import house_style, save
from tests.refusals import refused
from tests.unit.made_up_results import cell, curves, many, metrics, result_set
from tests.watching import Watching


def test_markdown() -> None:
    lines = markdown(result_set()).splitlines()
    assert lines[2] == (
        "| TCP BBR | 3 | 72.70 ± 0.10 | 65.92 ± 0.01 | 3.40 ± 0.00 | 93.5 ± 0.1 | 72.70 | 65.94 | 3.43 |"
    )
    assert "Eagle" not in "".join(lines), "it was not evaluated"
    assert "`python evaluate.py --trace 77.72mbps`" in lines[-1]
    assert "published" not in markdown(result_set(published={})).casefold(), "columns of nothing"


def test_ignored_runs_show_in_the_table() -> None:
    first, *rest = result_set().cells
    table = evaluation_table(result_set(cells=(replace(first, invalid="too short"), *rest)))
    assert table.text(table.rows[0], "runs") == "2 of 3"


def test_csv_table_is_exact() -> None:
    found = list(csv.DictReader(io.StringIO(exact_table(result_set()).csv())))
    assert float(found[0]["throughput_mbps_mean"]) == pytest.approx(72.7)
    assert float(found[0]["loss_mean"]) == pytest.approx(0.034)
    assert found[0]["published_delay_p95_ms"] == "65.94"
    assert found[1]["published_loss"] == ""


FRAMES = ["frame_delay_ms", "frame_delay_p95_ms", "frame_loss", "bit_rate_mbps"]


def video(*, flows: int = 1) -> ResultSet:
    """SCReAM carries video, in ``flows`` flows beside one that carries none; the others do not."""

    def carried(one: CellResult) -> CellResult:
        if one.scheme != "scream":
            return one
        flow = FlowRecord("scream", 0, 30, 8, 51, 0, 8, 45, 40, 30, 20, 7.9, 1000, 0, 0, 0, 0, 0, None)
        frames = tuple(
            replace(flow, frame_delay_ms=30.0 + one.run + 2 * place, frame_delay_p95_ms=44.0, frame_loss=0.0125,
                    bit_rate_mbps=2.5)
            for place in range(flows)
        )  # fmt: skip
        return replace(one, record=replace(one.record, flows=(*frames, flow)))

    return result_set(cells=tuple(map(carried, result_set().cells)))


def test_schemes_that_carry_video_have_columns_of_frames() -> None:
    table = evaluation_table(video())
    assert [column.name for column in table.columns][6:10] == FRAMES
    texts = {row.values["scheme"]: [table.text(row, name) for name in FRAMES] for row in table.rows}
    assert texts == {
        "TCP BBR": ["–"] * 4,
        "TCP Cubic": ["–"] * 4,
        "SCReAM": ["32.0 ± 1.0", "44.0 ± 0.0", "1.25 ± 0.00", "2.50 ± 0.00"],
    }
    # Two flows with video: their mean, run by run. The one without counts nowhere.
    two = evaluation_table(video(flows=2))
    assert two.text(two.rows[2], "frame_delay_ms") == "33.0 ± 1.0"
    bbr, _, scream = csv.DictReader(io.StringIO(exact_table(video()).csv()))
    assert float(scream["frame_loss_mean"]) == pytest.approx(0.0125)
    assert float(scream["frame_delay_ms_std"]) == pytest.approx(1.0)
    assert bbr["frame_loss_mean"] == ""
    # Without video there is nothing of them.
    assert not {column.name for column in evaluation_table(result_set()).columns} & set(FRAMES)
    assert "frame" not in markdown(result_set()) + exact_table(result_set()).csv() + explanation(result_set())


def test_pages_have_the_numbers_of_frames(tmp_path: Path) -> None:
    html = page(video(), tmp_path).html(tmp_path)
    texts = pdf_texts(with_curves(tmp_path, video()), tmp_path)
    for shown in (html, " ".join(" ".join(texts).split())):
        assert "32.0 ± 1.0" in shown
        assert "1.25 ± 0.00" in shown


@pytest.mark.long
def test_the_pdf_says_which_scheme_is_better(tmp_path: Path) -> None:
    texts = pdf_texts(with_curves(tmp_path, many(12, 3)), tmp_path)
    pairs = [re.findall(r"^− Scheme", text, re.MULTILINE) for text in texts]
    assert sum(map(len, pairs)) == 12 * 11 / 2
    heads = [text.count("difference") for text in texts]
    assert all(head for head, own in zip(heads, pairs, strict=True) if own), "each page has the head of the table"
    assert sum(map(bool, pairs)) > 1


def test_html_report_needs_nothing_else(tmp_path: Path) -> None:
    with house_style():
        save(mean_figure(result_set()), tmp_path / "pantheon_summary_mean.svg")
    results = result_set(failures=(CellFailure("cubic", 4, 5, "<no luck>"),))
    html = page(results, tmp_path).html(tmp_path)
    assert not re.search(r'src="(?!data:)', html), "nothing is fetched"
    links = re.findall(r'href="([^#"]+)"', html)
    assert links == ["explore.html", "pantheon_summary_mean.svg"], "a larger one is a click away"
    assert "a path &lt;&amp;&gt;" in html
    assert "&lt;no luck&gt;" in html
    assert "python evaluate.py --trace 77.72mbps" in html
    assert "72.60 Mbit/s (93.4%" in html
    assert html.count("Figure is missing") == 2 + 2 * 9, "all but the mean figure"
    assert "Pantheon report of 2019-10-22" in html


def test_build_report_writes_pantheons_files(tmp_path: Path) -> None:
    results = with_curves(tmp_path, result_set(cells=result_set().cells[:2]))
    told = Watching()
    write_tables(results, tmp_path)
    build_report(results, tmp_path, jobs=1, observer=told)
    of_run = [
        f"bbr_datalink_{of}_run{end}" for of in ("throughput", "delay") for end in ("1.png", "2.png", "1_paper.pdf")
    ]
    of_all = [
        f"pantheon_{name}{end}"
        for name in ("summary", "summary_mean", "throughput_time")
        for end in (".svg", ".pdf", ".png", "_paper.pdf")
    ]
    pages = ["pantheon_report.html", "pantheon_report.pdf", "pantheon_table.md", "pantheon_table.csv", "explore.html"]
    there = {file.name for file in tmp_path.iterdir() if file.is_file()}
    assert there == {*of_run, *of_all, *pages, "ccgym_figures.json"}
    assert "Figure is missing" not in (tmp_path / "pantheon_report.html").read_text()
    assert sum(len(one.images) for one in PdfReader(tmp_path / "pantheon_report.pdf").pages) == 3 + 2 * 2
    assert told.stages["figures"] == 2


def with_curves(directory: Path, results: ResultSet, flows: int = 1) -> ResultSet:
    """Store curves for all runs of the results."""
    (directory / "runs").mkdir(exist_ok=True)
    for one in results.cells:
        (directory / one.curves).write_bytes(packed(curves(flows).arrays()))
    return results


@pytest.mark.long
def test_workers_draw_what_one_process_draws(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pictures = []
    for name, jobs in (("one", 1), ("two", 2), ("no worker can start", 2)):
        (tmp_path / name).mkdir()
        results = with_curves(tmp_path / name, result_set())
        if name.startswith("no"):
            monkeypatch.setattr(drawing_process, "environment", lambda: {"PYTHONHOME": "/nowhere"})
        assert list(run_figures.drawn_runs(results, tmp_path / name, jobs)) == list(results.cells)
        pictures.append({file.name: file.read_bytes() for file in (tmp_path / name).glob("*.png")})
    assert len(pictures[0]) == 18
    assert pictures[0] == pictures[1] == pictures[2]


@pytest.mark.long
def test_two_processes_draw_the_figures_that_one_draws(tmp_path: Path) -> None:
    drawn = []
    for jobs in (1, 2):
        out = tmp_path / f"{jobs}"
        out.mkdir()
        build_report(with_curves(out, replace(result_set(), directory=out)), out, jobs, runs=False)
        drawn.append({file.name: file.read_bytes() for file in out.glob("pantheon_[st]*.*")})
    assert len(drawn[0]) == 9
    assert drawn[0] == drawn[1]


@pytest.mark.long
def test_a_run_that_cannot_be_drawn_is_an_error_here(tmp_path: Path) -> None:
    results = with_curves(tmp_path, result_set())
    (tmp_path / "runs" / "cubic_run2.npz").write_bytes(b"cut off")
    with refused(ResultsError, "results-damaged at runs/cubic_run2.npz"):
        list(run_figures.drawn_runs(results, tmp_path, jobs=2))


@pytest.mark.long
def test_only_what_has_changed_is_drawn_again(tmp_path: Path) -> None:
    results = with_curves(tmp_path, result_set(cells=result_set().cells[:3]))

    def build(what: ResultSet) -> tuple[int, set[str]]:
        """Runs that were drawn, and the names of the figures that are new files."""
        before = {file: file.stat().st_mtime_ns for file in tmp_path.glob("*.p*")}
        told = Watching()
        build_report(what, tmp_path, jobs=1, observer=told)
        drawn = told.stages.get("figures", 0)
        return drawn, {file.name for file in tmp_path.glob("*.p*") if file.stat().st_mtime_ns != before.get(file)}

    assert build(results)[0] == 3
    assert build(replace(results, provenance={**results.provenance, "started": "later"})) == (0, set())
    (tmp_path / "runs" / "bbr_run1.npz").write_bytes(packed(replace(curves(), bin_s=0.4).arrays()))
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
    record = FigureCache(tmp_path)
    record.note("a", "inputs", [figure])
    record.write()
    assert FigureCache(tmp_path).is_current("a", "inputs", [figure])
    assert not FigureCache(tmp_path).is_current("a", "others", [figure])
    for text in ("[[", "[]", "{", "\xff"):
        (tmp_path / "ccgym_figures.json").write_text(text)
        assert not FigureCache(tmp_path).is_current("a", "inputs", [figure])


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
    table = evaluation_table(result_set(cells=cells))
    shown = printed(table, width)
    lines = shown.splitlines()
    assert max(map(len, lines)) <= width
    assert "…" not in shown
    if width >= 120:
        assert sum("72.70 ± 0.10" in line and "65.94" in line for line in lines) == 1, "a line per scheme"
    numbers = re.findall(r"[\d.]+", shown)
    for row in table.rows:
        label, *texts = table.texts(row)
        assert label in shown
        assert {number for text in texts for number in re.findall(r"[\d.]+", text)} <= set(numbers)


def test_runs_of_the_same_packets_have_no_deviation(tmp_path: Path) -> None:
    cells = tuple(replace(one, record=replace(one.record, trajectory_hash="00ff")) for one in result_set().cells)
    hashes_alone = result_set(cells=cells)
    assert not any(one.identical_runs for one in hashes_alone.schemes), "their numbers differ"
    first = {one.scheme: one.record for one in reversed(cells)}
    cells = tuple(replace(one, record=first[one.scheme]) for one in cells)
    results = with_curves(tmp_path, result_set(cells=cells))
    table = evaluation_table(results)
    assert all(table.text(row, "runs") == "3 =" and "±" not in "".join(table.texts(row)) for row in table.rows)
    assert "±" not in printed(evaluation_table(results), 80)
    summary = results.as_dict()["summary"][0]
    assert summary["identical_runs"] is True
    assert summary["loss"]["std"] is None
    assert [line["identical_runs"] for line in csv.DictReader(io.StringIO(exact_table(results).csv()))] == ["True"] * 3
    assert "identical" not in markdown(result_set()), "different packets"
    alone = result_set(cells=tuple(one for one in cells if one.run == 1))
    assert "identical" not in markdown(alone), "one run is like no other"


def pdf_texts(results: ResultSet, directory: Path) -> list[str]:
    """The texts of the PDF, page by page."""
    write_pdf(page(results, directory), directory, directory / "report.pdf")
    return [one.extract_text() for one in PdfReader(directory / "report.pdf").pages]


@pytest.mark.parametrize("flows", [1, 3, 20])
@pytest.mark.long
def test_the_pdf_shows_every_flow_and_both_figures(tmp_path: Path, flows: int) -> None:
    results = result_set(cells=(cell("bbr", 1, 72.6, 65.9, 0.03, flows),))
    with_curves(tmp_path, results, flows)
    list(run_figures.drawn_runs(results, tmp_path, jobs=1))
    shown = "\n".join(pdf_texts(results, tmp_path))
    assert all(f"-- Flow {flow}:" in shown for flow in range(1, flows + 1))
    assert shown.count("Figure is missing") == 3, "the summaries were not drawn, the figures of the run were"
    assert sum(len(one.images) for one in PdfReader(tmp_path / "report.pdf").pages) == 2
