"""``ccgym report site``: pages in a real browser, the database, and that a YAML file is all an experiment takes."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from ccgym.cli.main import main as ccgym
from ccgym.errors import ResultsError
from ccgym.evaluation.store import read_run
from ccgym.report.site import load_results
from ccgym.report.site.pages import _values
from tests.browser import Browser, program
from tests.commands import evaluate, site
from tests.refusals import explained

EXPERIMENT = """
title: a link of the test's own
question: Does the queue matter?
setting: 12 Mbit/s, 40 ms, two flows
schemes: [cubic, vegas]
path: {rate: 12mbps, rtt: 40ms, queue: $queue}
sweep: {queue: [10p, 40p, 160p]}
flows: [{scheme: $scheme}, {scheme: $scheme}]
duration: 4s
runs: 2
metrics:
  throughput: {metric: goodput}
  delay: {metric: queueing_delay}
criteria: [{metric: throughput, min: 4}]
"""
"""All that the site needs to have a page on it."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two experiments, run: the test's own, and one of ours; a league; and an evaluation without a page."""
    directory = tmp_path_factory.mktemp("results")
    file = directory / "own_link.yaml"
    file.write_text(EXPERIMENT, encoding="utf-8")
    for given, name in ((str(file), "own_link"), ("ccperf", "ccperf")):
        words = ["--experiment", given, "--out", str(directory / name), "--no-figures"]
        assert evaluate(words) == 0
    league = ["--experiment", "league/prudentia", "--quick", "--schemes", "cubic,vegas,oracle"]
    assert evaluate([*league, "--out", str(directory / "prudentia")]) == 0
    words = ["--trace", "12mbps", "--schemes", "cubic", "--runtime", "2", "--runs", "1", "--no-figures"]
    assert evaluate([*words, "--out", str(directory / "slow link")]) == 0
    assert ccgym(["compare", "backends", *words, "--backends", "sim", "--out", str(directory / "gap")]) == 0
    return directory


@pytest.fixture(scope="module")
def pages(results: Path) -> Path:
    """The site of both."""
    assert site([str(results), "--out", str(results / "site"), "--title", "A test's site"]) == 0
    return results / "site"


@pytest.fixture(scope="module")
def process() -> Iterator[Browser]:
    if program() is None:
        pytest.skip("needs chromium: sudo apt-get install chromium")
    with Browser() as started:
        yield started


@pytest.fixture
def browser(process: Browser, pages: Path) -> Iterator[Browser]:
    """A browser in which pages ask for files of the site only, and have nothing to say."""
    process.requests.clear()
    process.said.clear()
    yield process
    assert process.said == []
    assert all(one.startswith((pages.as_uri(), "data:", "blob:")) for one in process.requests), process.requests


def texts(browser: Browser, what: str) -> list[str]:
    found = browser.run(f"[...document.querySelectorAll({json.dumps(what)})].map((one) => one.textContent.trim())")
    return [str(one) for one in found]


def settled(browser: Browser, expression: str) -> Any:
    """The value of an expression once it is there: scripts of conditions are loaded when they are wanted."""
    waiting = f"(async () => {{ for (let k = 0; k < 200; k++) {{ const found = {expression}; if (found) return found; "
    return browser.run(f"{waiting} await new Promise((done) => setTimeout(done, 20)); }} }})()")


@pytest.mark.long
def test_the_first_page_has_scores_and_finds_experiments(browser: Browser, pages: Path) -> None:
    browser.open(pages / "index.html")
    assert texts(browser, "h1") == ["A test's site"]
    scores = texts(browser, "#scoreboard ~ .scroll tbody tr td:nth-child(2)")
    assert sorted(scores) == sorted(["1 of 1", "1 of 1", "–", "–", "–"])
    browser.run("(() => { const s = document.getElementById('search'); s.value = 'queue 160p vegas'; "
                "s.dispatchEvent(new Event('input')); })()")  # fmt: skip
    assert texts(browser, ".entries li:not([hidden]) a") == ["a link of the test's own"]
    assert texts(browser, "#hits") == ["1 found"]


@pytest.mark.parametrize(("width", "dark"), [(1280, False), (800, True), (375, False)])
@pytest.mark.long
def test_an_experiment_shows_every_part_at_every_width(browser: Browser, pages: Path, width: int, dark: bool) -> None:
    browser.open(pages / "own_link" / "own_link.html", width=width, dark=dark)
    assert settled(browser, "document.querySelectorAll('#flow-metrics tbody tr').length") > 15
    heads = texts(browser, "h2, h3")
    order = ["Verdicts", "Over all conditions", "One run", "Parameters", "Command", "Flows", "Metrics of the flows",
             "Metrics of the bottleneck", "Metrics of the network", "Figures", "Comparison of schemes"]  # fmt: skip
    assert [one for one in heads if one in order] == order
    assert browser.run("document.documentElement.scrollWidth <= document.documentElement.clientWidth")
    # Two flows, three panels and the queue, two distributions; three plots of points; three comparisons.
    assert browser.run("document.querySelectorAll('#run-figures canvas').length") == 6
    assert browser.run("document.querySelectorAll('#run-figures svg.plot').length") == 3
    assert browser.run("document.querySelectorAll('#compared-figures .uplot, #compared-figures svg.plot').length") == 3


@pytest.mark.long
def test_each_link_has_a_line_where_only_ratios_have_a_mean(process: Browser, tmp_path: Path) -> None:
    file = tmp_path / "links.yaml"
    text = EXPERIMENT.replace("sweep: {queue: [10p, 40p, 160p]}", "sweep: {queue: [10p, 40p], rate: [1mbps, 12mbps]}")
    text = text.replace("rate: 12mbps, rtt", "rate: $rate, rtt").replace("runs: 2", "runs: 1")
    file.write_text(text.replace("{metric: queueing_delay}", "{metric: utilization}"), encoding="utf-8")
    assert evaluate(["--experiment", str(file), "--out", str(tmp_path / "links"), "--no-figures"]) == 0
    assert site([str(tmp_path), "--out", str(tmp_path / "site")]) == 0
    process.open(tmp_path / "site" / "links" / "links.html", part="#")
    choose = "(() => {{ for (const [id, at] of [['sweep-metric', {metric}], ['sweep-x', 0]]) {{ " \
             "document.getElementById(id).selectedIndex = at; " \
             "document.getElementById(id).dispatchEvent(new Event('change')); }} " \
             "return document.querySelectorAll('#sweep-figure .u-legend .u-series').length - 1; }})()"  # fmt: skip
    assert [process.run(choose.format(metric=place)) for place in (0, 1)] == [4, 2], "two schemes, two rates"


def test_identical_runs_have_no_deviation_on_the_site() -> None:
    spread = {"mean": 1.0, "std": 0.0, "count": 3}
    outcome = {
        "conditions": [
            {"key": "a", "metrics": {"x": spread}, "identical": True},
            {"key": "b", "metrics": {"x": spread}},
        ]
    }
    conditions = [{"key": "a"}, {"key": "b"}, {"key": "c"}]
    assert _values({"metrics": [{"key": "x"}]}, outcome, conditions) == [[[1.0, 0.0, 1]], [[1.0, 0.0, 3]], [None]]


@pytest.mark.long
def test_another_condition_and_scheme_show_other_numbers(browser: Browser, pages: Path, results: Path) -> None:
    browser.open(pages / "own_link" / "own_link.html", part="#condition=2&scheme=vegas")
    assert "160" in settled(browser, "document.getElementById('parameters').textContent")
    row = "[...document.querySelectorAll('#net-metrics tr')].find((one) => one.textContent.includes('agg_throughput'))"
    shown = float(settled(browser, f"{row}?.cells[1].textContent"))
    document = json.loads((results / "own_link" / "results.json").read_text(encoding="utf-8"))
    outcome = next(one for one in document["outcomes"] if one["scheme"] == "vegas")
    run = next(one for one in outcome["runs"] if one["condition"] == "queue=160p" and one["run"] == 1)
    expected = read_run(results / "own_link" / run["kept"]).data["detail"]["tables"]["net"]["mean_agg_throughput_l4"][0]
    assert shown == pytest.approx(expected, abs=0.006)
    best = texts(browser, "#compared tbody tr:nth-child(2) td.best")
    means = {one["scheme"]: one["conditions"][2]["metrics"]["delay"]["mean"] for one in document["outcomes"]}
    assert best[0].startswith(f"{min(means.values()):.3g}"[:3])


def test_the_database_has_the_numbers_of_the_results(pages: Path, results: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow: pip install 'ccgym[report]'")
    document = json.loads((results / "own_link" / "results.json").read_text(encoding="utf-8"))
    runs = {(o["scheme"], r["condition"], r["run"]): r for o in document["outcomes"] for r in o["runs"]}
    values = [row for row in pyarrow.read_table(pages / "values.parquet").to_pylist() if row["results"] == "own_link"]
    assert len(values) == 2 * len(runs) == 24
    for row in values:
        assert row["value"] == runs[row["scheme"], row["condition"], row["run"]]["values"][row["metric"]]
    series = pyarrow.read_table(pages / "series.parquet").to_pylist()
    own = [
        row for row in series if (row["results"], row["scheme"], row["condition"]) == ("own_link", "cubic", "queue=40p")
    ]
    assert {row["flow"] for row in own} == {1, 2}
    # The bins of both flows together are the whole goodput of the run.
    mean = sum(row["throughput_mbps"] for row in own) / (len(own) / 2)
    assert mean == pytest.approx(runs["cubic", "queue=40p", 1]["values"]["throughput"], rel=0.02)
    with closing(sqlite3.connect(pages / "ccgym.sqlite")) as database:
        assert database.execute("SELECT count(*) FROM runs WHERE results = 'own_link'").fetchone() == (12,)
        seeds = database.execute("SELECT DISTINCT seed FROM runs WHERE condition = 'queue=10p' AND run = 1").fetchall()
        assert seeds == [(str(runs["cubic", "queue=10p", 1]["seed"]),)]
        rows = dict(database.execute("SELECT name, rows FROM files").fetchall())
        assert rows["values.parquet"] == len(pyarrow.read_table(pages / "values.parquet"))


def test_no_results_and_unfinished_ones_end_in_one_error(
    tmp_path: Path, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert site([str(tmp_path), "--out", str(tmp_path / "site")]) == 2
    explained(capsys.readouterr().err, "results-missing")
    unfinished = tmp_path / "own_link"
    unfinished.mkdir()
    marker = results / "own_link" / "ccgym_experiment.json"
    (unfinished / marker.name).write_bytes(marker.read_bytes())
    assert site([str(unfinished), "--out", str(tmp_path / "site")]) == 2
    explained(capsys.readouterr().err, "results-missing at results.json")
    assert not (tmp_path / "site").exists()


def places(document: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The way to every value of a document; of a list, the first element only."""
    inside = document.items() if isinstance(document, dict) else list(enumerate(document))[:1]
    for key, value in inside:
        yield (*path, key)
        if isinstance(value, (dict, list)):
            yield from places(value, (*path, key))


def changed(document: Any, path: tuple[Any, ...], value: Any) -> Any:
    copy = json.loads(json.dumps(document))
    holder = copy
    for key in path[:-1]:
        holder = holder[key]
    if value is Ellipsis:
        del holder[path[-1]]
    else:
        holder[path[-1]] = value
    return copy


@pytest.mark.parametrize("name", ["own_link", "prudentia", "gap"])
def test_a_tampered_document_is_one_error_or_a_site(name: str, tmp_path: Path, results: Path) -> None:
    given = tmp_path / name
    shutil.copytree(results / name, given)
    file = given / "results.json"
    document = json.loads(file.read_text())
    short = {key: value for key, value in document.items() if key not in ("notes", "failures", "left")}
    refused = 0
    for place in places(short):
        for value in (..., None, "x", [1], {"x": 1}):
            file.write_text(json.dumps(changed(document, place, value)))
            try:
                load_results(given)
            except ResultsError:
                refused += 1
    assert refused >= 40
    for place in [("provenance",), ("schemes",), ("parameters",), ("tests",), ("outcomes",)]:
        file.write_text(json.dumps(changed(document, place, None)))
        code = site([str(given), "--out", str(tmp_path / "site")])
        assert code == (2 if name == "own_link" or place == ("provenance",) else code)


@pytest.mark.parametrize(
    "place",
    [("name",), ("schemes", 0, "key"), ("tests", 0, "name"), ("outcomes", 0, "runs", 0, "kept")],
)
@pytest.mark.parametrize("name", ["../../outside", "{outside}", "a/b/../../../c", "..", ".hidden", "", "x\0y"])
def test_names_never_become_paths(place: tuple[Any, ...], name: str, tmp_path: Path, results: Path) -> None:
    given = tmp_path / "given"
    shutil.copytree(results / "own_link", given)
    file = given / "results.json"
    document = json.loads(file.read_text())
    before = sorted(tmp_path.rglob("*"))
    file.write_text(json.dumps(changed(document, place, name.format(outside=tmp_path / "outside"))))
    assert site([str(given), "--out", str(tmp_path / "site")]) == 2
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.long
def test_what_has_a_report_of_its_own_is_there_with_its_ratings(browser: Browser, pages: Path, results: Path) -> None:
    browser.open(pages / "index.html")
    ranking = json.loads((results / "prudentia" / "results.json").read_text(encoding="utf-8"))["rankings"]["prudentia"]
    expected = {
        one["label"]: f"{one['score']['mean']:.2f}".replace("-", "−") for one in ranking if not one["reference"]
    }
    rows = browser.run(
        "[...document.querySelectorAll('#scoreboard ~ .scroll tbody tr')].map("
        "(row) => [row.cells[0].textContent.trim(), row.cells[row.cells.length - 1].textContent])"
    )
    shown = {label: rating for label, rating in rows if rating != "–"}
    assert shown == expected
    assert len(shown) == 2
    links = browser.run("[...document.querySelectorAll('#reports ~ .entries a')].map((one) => one.href)")
    assert [Path(one).name for one in links] == ["gap_report.md", "prudentia.html", "pantheon_table.md"]
    browser.open(pages / "reports" / "prudentia" / "prudentia.html")
    assert browser.run("document.querySelectorAll('figure img, img').length") >= 3
    assert (pages / "reports" / "slow link" / "pantheon_table.md").exists()


def test_below_a_directory_what_cannot_be_used_is_left_out(
    tmp_path: Path, results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    marker = results / "own_link" / "ccgym_experiment.json"
    (tmp_path / "unfinished").mkdir()
    (tmp_path / "unfinished" / marker.name).write_bytes(marker.read_bytes())
    (tmp_path / "other").mkdir()
    (tmp_path / "ccperf").symlink_to(results / "ccperf")
    assert site([str(tmp_path), "--out", str(tmp_path / "site")]) == 0
    said = capsys.readouterr().out
    assert "unfinished/results.json" in said
    assert "other" not in said
    assert (tmp_path / "site" / "ccperf" / "ccperf.html").exists()
    assert site([str(tmp_path / "other"), "--out", str(tmp_path / "site")]) == 2
