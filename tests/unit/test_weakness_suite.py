"""The suite of weakness tests: what it keeps and goes on from, errors, files, tables, figures, the command line."""

from __future__ import annotations

import csv
import fcntl
import io
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ccgym.errors import ConfigError, ResultsError, SimulationError
from ccgym.evaluation.suites import suite, suite_report
from ccgym.evaluation.suites.protocol import SilentProgress, SuiteRequest
from ccgym.evaluation.weaknesses import SUITE, TESTS
from ccgym.evaluation.weaknesses import suite as suite_module
from ccgym.evaluation.weaknesses.base import Weakness, located
from ccgym.evaluation.weaknesses.responsiveness import Responsiveness
from ccgym.evaluation.weaknesses.results import Spread, WeaknessResults
from ccgym.evaluation.weaknesses.runs import Cell, RunResult, cells_of
from ccgym.evaluation.weaknesses.self_inflicted_loss import SelfInflictedLoss
from ccgym.evaluation.weaknesses.suite import CSV_FILE, RESULTS_FILE, WeaknessSuite
from ccgym.report import style
from ccgym.report.weaknesses_report import WORDS, figures_of_test, quantity
from ccgym.schemes.registry import SchemeChoice, parse_schemes, styles

BY_NAME = {test.name: test for test in TESTS}


# --- Resume, damage, failures, errors -------------------------------------------------------------------


class Progress(SilentProgress):
    """Remembers what it was told."""

    def __init__(self) -> None:
        self.begun: list[tuple[int, int]] = []
        self.steps = 0
        self.notices: list[str] = []

    def notice(self, text: str) -> None:
        self.notices.append(text)

    def begin(self, what: str, total: int, done: int = 0) -> None:
        self.begun.append((total, done))

    def advance(self, what: str, by: int = 1, note: str = "", *, kept: bool = False) -> None:
        self.steps += by


class Small(SelfInflictedLoss):
    """A test that takes no time."""

    def conditions(self, *, quick: bool) -> Any:
        return [one for one in super().conditions(quick=quick) if located(rate_mbps=10, one_way_ms=20)(one)]


def run(
    directory: Path, schemes: str, tests: list[Weakness], progress: Progress | None = None, **request: Any
) -> WeaknessResults:
    chosen = {"quick": True, "jobs": 1, **request}
    return WeaknessSuite(tests).run(
        SuiteRequest(schemes=tuple(parse_schemes(schemes)), out=directory, **chosen), progress
    )


def test_finished_runs_are_kept(tmp_path: Path) -> None:
    progress = Progress()
    first = run(tmp_path, "cubic", [Small()], progress, runs=2)
    assert progress.begun == [(8, 0)]
    assert progress.steps == 8
    again = Progress()
    second = run(tmp_path, "cubic", [Small()], again, runs=2)
    assert again.begun == [(8, 8)]
    assert again.steps == 0
    assert second.to_json()["outcomes"] == first.to_json()["outcomes"]


def test_further_schemes_and_repetitions_only_add(tmp_path: Path) -> None:
    run(tmp_path, "cubic", [Small()], runs=1)
    progress = Progress()
    results = run(tmp_path, "reno,cubic", [Small()], progress, runs=2)
    assert progress.begun == [(16, 4)]
    assert [style.key for style in results.styles] == ["reno", "cubic"]
    alone = run(tmp_path / "other", "cubic", [Small()], runs=2)
    assert alone.outcomes["self_inflicted_loss", "cubic"].as_dict() == (
        results.outcomes["self_inflicted_loss", "cubic"].as_dict()
    ), "a scheme's results do not depend on its company"


def test_an_interrupted_suite_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = run(tmp_path / "whole", "cubic", [Small()])
    execute = Cell.execute
    ran: list[str] = []

    def until_the_third(cell: Cell, halt: object) -> RunResult:
        ran.append(cell.name)
        if len(ran) == 3:
            raise KeyboardInterrupt
        return execute(cell)

    monkeypatch.setattr(Cell, "execute", until_the_third)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path / "cut", "cubic", [Small()])
    assert not (tmp_path / "cut" / RESULTS_FILE).exists()
    monkeypatch.undo()
    progress = Progress()
    resumed = run(tmp_path / "cut", "cubic", [Small()], progress)
    assert progress.begun == [(4, 3)], "what ended all the same after it stopped is kept, too"
    assert resumed.to_json()["outcomes"] == whole.to_json()["outcomes"]


def test_damaged_lines_are_run_again(tmp_path: Path) -> None:
    whole = run(tmp_path, "cubic", [Small()])
    (file,) = (tmp_path / "runs").iterdir()
    lines = file.read_text().splitlines(keepends=True)
    assert len(lines) == 4
    # One with a changed number, one cut off in the middle.
    file.write_text(lines[0].replace("loss", "Loss", 1) + lines[1] + lines[2] + lines[3][: len(lines[3]) // 2])
    progress = Progress()
    again = run(tmp_path, "cubic", [Small()], progress)
    assert progress.begun == [(4, 2)]
    assert progress.notices == ["self_inflicted_loss_cubic.jsonl: 2 damaged lines; running those again"]
    assert again.to_json()["outcomes"] == whole.to_json()["outcomes"]
    run(tmp_path, "cubic", [Small()], third := Progress())
    assert third.begun == [(4, 4)]


def test_a_test_that_changed_is_run_again(tmp_path: Path) -> None:
    class Newer(Small):
        version = 2

    run(tmp_path, "cubic", [Small()])
    run(tmp_path, "cubic", [Newer()], progress := Progress())
    assert progress.begun == [(4, 0)]


def test_a_failed_run_leaves_its_test_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    execute = Cell.execute

    def failing(cell: Cell, halt: object) -> RunResult:
        if cell.condition.at["buffer_bdp"] == 0.2 and cell.choice.key == "cubic":
            raise SimulationError("out of luck")
        return execute(cell)

    monkeypatch.setattr(Cell, "execute", failing)
    results = run(tmp_path, "cubic,reno", [Small()])
    assert len(results.failures) == 1
    assert "self_inflicted_loss · cubic · rate=10mbps,owd=20ms,buffer=0.2bdp · run 1" in results.failures[0]
    assert "out of luck" in results.failures[0]
    assert results.outcome(results.tests[0], "cubic").verdict == "incomplete"
    assert results.outcome(results.tests[0], "reno").verdict == "pass"
    monkeypatch.undo()
    assert run(tmp_path, "cubic,reno", [Small()]).outcome(results.tests[0], "cubic").verdict == "pass"


def test_a_baseline_that_failed_decides_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    execute = Cell.execute

    def failing(cell: Cell, halt: object) -> RunResult:
        if cell.choice.key == "cubic":
            raise RuntimeError("a bug")
        return execute(cell)

    monkeypatch.setattr(Cell, "execute", failing)
    results = run(tmp_path, "reno", [Responsiveness()])
    assert [style.key for style in results.styles] == ["reno"], "the baseline is no contestant"
    assert results.outcome(results.tests[0], "reno").verdict == "incomplete"
    assert all("RuntimeError: a bug" in failure for failure in results.failures)


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"backend": "emulated"}, "backend: backend emulated"),
        ({"backend": "simulated"}, "no backend is called"),
        ({"runtime_ns": 10**9}, "every test has lengths of its own"),
        ({"runs": 0}, "whole number from 1 to 1000"),
        ({"runs": 1001}, "whole number from 1 to 1000"),
    ],
)
def test_requests_that_make_no_sense(tmp_path: Path, request_: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        run(tmp_path, "cubic", [Small()], **request_)
    assert not any(tmp_path.iterdir())


def test_schemes_that_cannot_be_simulated(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="tcp:cubic"):
        WeaknessSuite([Small()]).run(SuiteRequest(schemes=(SchemeChoice("tcp:cubic"),), out=tmp_path))
    with pytest.raises(ConfigError, match="no scheme"):
        WeaknessSuite([Small()]).run(SuiteRequest(schemes=(), out=tmp_path))


def test_directories_of_others(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "ccgym_manifest.json").write_text("{}")
    with pytest.raises(ResultsError, match="results of an evaluation"):
        run(tmp_path / "taken", "cubic", [Small()])
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match="cannot be written"):
        run(tmp_path / "file", "cubic", [Small()])
    (tmp_path / "locked").mkdir()
    with (tmp_path / "locked" / ".ccgym_lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(ResultsError, match="another evaluation is writing"):
            run(tmp_path / "locked", "cubic", [Small()])


def test_numbers_on_disk(tmp_path: Path) -> None:
    results = run(tmp_path, "aurora,cubic", [Small()], runs=2)
    document = json.loads((tmp_path / RESULTS_FILE).read_text())
    assert document == json.loads(json.dumps(results.to_json()))
    assert document["format"] == "ccgym-weaknesses"
    assert document["schemes"][0]["trained_on"] == "1.2–6 Mbit/s, 50–500 ms one way"
    assert document["schemes"][1]["trained_on"] is None
    outcome = document["outcomes"][0]
    assert {"test", "scheme", "verdict", "headline", "criteria", "conditions", "runs"} == outcome.keys()
    assert {run["run"] for run in outcome["runs"]} == {1, 2}
    rows = list(csv.DictReader(io.StringIO((tmp_path / CSV_FILE).read_text())))
    assert len(rows) == 2 * 4 * 2, "schemes, conditions, measures"
    assert {row["inside_training_range"] for row in rows if row["scheme"] == "aurora"} == {"no"}
    assert {row["inside_training_range"] for row in rows if row["scheme"] == "cubic"} == {""}
    assert all(float(row["min"]) <= float(row["mean"]) <= float(row["max"]) for row in rows)


def test_cubic_is_as_responsive_as_cubic(tmp_path: Path) -> None:
    results = run(tmp_path, "cubic", [Responsiveness()])
    outcome = results.outcome(results.tests[0], "cubic")
    assert outcome.verdict == "pass"
    assert all(one.margin == 0 for one in outcome.criteria)
    assert len(outcome.runs) == 5
    series = outcome.series()["drawn"]
    assert len(series["t_s"]) == len(series["rate_mbps"]) == 300
    # Not bin by bin: what was in flight arrives after the capacity fell.
    assert 0.3 * sum(series["capacity_mbps"]) < sum(series["rate_mbps"]) <= sum(series["capacity_mbps"])


def test_spreads() -> None:
    assert Spread.of([1.0, 5.0, 3.0]) == Spread(3.0, 2.0, 1.0, 5.0, 3)
    assert Spread.of([1.0]).std == 0.0


def test_the_suite_is_registered() -> None:
    assert suite("weaknesses") is SUITE
    assert [test.name for test in SUITE.tests] == [
        "intra_rtt_fairness",
        "bandwidth_sweep",
        "cubic_friendliness",
        "responsiveness",
        "self_inflicted_loss",
        "startup_recovery",
        "stale_estimates",
    ]
    names = [choice.title for choice in SUITE.schemes()]
    assert names[:3] == ["cubic", "bbr", "copa"]
    assert "aurora" in names


# --- The report ----------------------------------------------------------------------------------------------------


def invented(schemes: str = "cubic,aurora", runs: int = 2) -> WeaknessResults:
    """Results of all tests with invented numbers."""
    choices = parse_schemes(schemes)
    generator = np.random.Generator(np.random.PCG64(0))

    def result(cell: Cell) -> RunResult:
        fractions = {measure.key: float(generator.random()) for measure in cell.test.measures}
        times = [1.0, 2.0, 3.0]
        series = {"t_s": times, "rate_mbps": [1.0, 2.0, 3.0], "capacity_mbps": [4.0, 4.0, 4.0]}
        over_time = series if cell.run == 1 and cell.test.name in ("responsiveness", "stale_estimates") else None
        return RunResult(cell.condition.key, cell.run, cell.seed, fractions, "00", 0.1, over_time)

    made = [cell for test in TESTS for cell in cells_of(test, choices, runs=runs, seed=1, quick=True)]
    found = {cell.digest: result(cell) for cell in made}
    return WeaknessResults(
        parameters={"seed": 1, "runs": runs, "quick": True, "schemes": []},
        provenance={
            "path": "p",
            "command": "c",
            "started": "now",
            "versions": {"a": "1"},
            "system": "s",
            "simulated_s": 1,
        },
        styles=styles(choices),
        trained_on={"aurora": "slow paths"},
        tests=TESTS,
        outcomes={
            (test.name, choice.key): outcome
            for test in TESTS
            for choice, outcome in suite_module._judged(test, choices, made, found)
        },
        failures=("intra_rtt_fairness · cubic: <broken>",),
    )


@pytest.fixture(scope="module")
def results() -> WeaknessResults:
    return invented()


def test_the_report_has_a_figure_per_test(results: WeaknessResults, tmp_path: Path) -> None:
    report = suite_report("weaknesses")
    progress = Progress()
    written = report.write(results, tmp_path, progress, figures=True)
    assert [file.file.name for file in written][:2] == ["weaknesses.html", "weakness_overview.svg"]
    figures = [name for test in TESTS for name in figures_of_test(test)]
    for name in ("weakness_overview", *figures):
        for suffix in ("svg", "pdf", "png"):
            assert (tmp_path / f"{name}.{suffix}").stat().st_size > 1000
    assert progress.begun == [(len(figures) + 2, 0)]
    assert progress.steps == len(figures) + 2
    page = (tmp_path / "weaknesses.html").read_text(encoding="utf-8")
    assert page.count("data:image/svg+xml") == len(figures) + 1
    assert "Figure is missing" not in page
    assert "&lt;broken&gt;" in page
    assert "Aurora was trained on slow paths" in page
    assert "a quick look: fewer conditions" in page
    for test in TESTS:
        assert f'id="{test.name}"' in page
        for scheme, outcome in results.of_test(test):
            cell = re.escape(f"{outcome.headline}") + r"\s+" + WORDS[outcome.verdict]
            assert re.search(cell, page), f"{scheme.label} in the table of the overview"


def test_tables_without_figures(results: WeaknessResults, tmp_path: Path) -> None:
    from rich.console import Console

    written = suite_report("weaknesses").write(results, tmp_path, SilentProgress(), figures=False)
    assert [file.file.name for file in written] == ["weaknesses.md", RESULTS_FILE, CSV_FILE]
    table = (tmp_path / "weaknesses.md").read_text(encoding="utf-8").splitlines()
    assert table[0] == "| test | numbers | passes | TCP Cubic | Aurora |"
    assert [line.split(" | ")[0][2:] for line in table[2 : 2 + len(TESTS)]] == [test.title for test in TESTS]
    assert table[-1].startswith("2 repetitions of every condition")
    for width in (60, 80, 160):
        console = Console(width=width, record=True, file=io.StringIO())
        for part in suite_report("weaknesses").terminal(results):
            console.print(part)
        text = " ".join(console.export_text().split())
        assert "Aurora was trained on slow paths" in text
        assert "FAIL" in text
        # What is tested, what the numbers are, and when it passes.
        for test in TESTS:
            assert f"{test.title}: {test.question} Passes: {test.brief}." in text
            assert not re.search(r"\bD\d", text)
        outcomes = [outcome for test in TESTS for _, outcome in results.of_test(test)]
        numbers = [number for outcome in outcomes for number in re.findall(r"[\d.]+", outcome.headline)]
        assert set(numbers) <= set(re.findall(r"[\d.]+", text)), "no digit is cut"
    changing = next(test for test in TESTS if test.name == "responsiveness")
    assert quantity(results, changing) == "utilization, queueing delay"


def test_figures_say_what_was_measured(results: WeaknessResults) -> None:
    from ccgym.report.figures.verdicts import verdicts_figure

    with style.house_style():
        texts = {text.get_text() for text in verdicts_figure(results).axes[0].texts}
        for test in TESTS:
            for scheme, outcome in results.of_test(test):
                assert outcome.headline in texts
                assert scheme.label in texts
        chosen = figures_of_test(BY_NAME["intra_rtt_fairness"])["weakness_intra_rtt_fairness"]
        fairness = chosen.draw(results, BY_NAME["intra_rtt_fairness"])
        assert [axes.get_title() for axes in fairness.axes] == [f"buffer {size} BDP" for size in ("0.2", "1", "4")]
        for axes, buffer in zip(fairness.axes, (0.2, 1.0, 4.0), strict=True):
            cubic = axes.lines[0]
            rows = [one for one in results.outcomes["intra_rtt_fairness", "cubic"].conditions]
            own = [one for one in rows if one.at["buffer_bdp"] == buffer]
            assert np.asarray(cubic.get_xdata()).tolist() == [one.at["one_way_ms"] for one in own]
            assert np.asarray(cubic.get_ydata()).tolist() == [one.measures["ratio"].mean for one in own]


def test_a_test_without_runs_can_be_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything failed: the report says so instead of falling over."""
    monkeypatch.setattr(style, "SUFFIXES", (".svg",))
    made = invented()
    choices = parse_schemes("cubic,aurora")
    cells = [cell for test in TESTS for cell in cells_of(test, choices, runs=1, seed=1, quick=True)]
    outcomes = {
        (test.name, choice.key): outcome
        for test in TESTS
        for choice, outcome in suite_module._judged(test, choices, cells, {})
    }
    empty = WeaknessResults(made.parameters, made.provenance, made.styles, {}, made.tests, outcomes, ("all of them",))
    assert {outcome.verdict for outcome in outcomes.values()} == {"incomplete"}
    suite_report("weaknesses").write(empty, tmp_path, SilentProgress(), figures=True)
    assert "incomplete" in (tmp_path / "weaknesses.md").read_text(encoding="utf-8")


def test_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from ccgym.cli.evaluate import main
    from ccgym.evaluation import weaknesses

    monkeypatch.setattr(weaknesses, "SUITE", WeaknessSuite([Small()]))
    words = ["--suite", "weaknesses", "--schemes", "cubic", "--quick", "--jobs", "1", "--out", str(tmp_path / "out")]
    assert main([*words, "--no-figures"]) == 0
    shown = capsys.readouterr().out
    assert "Self-inflicted" in shown
    assert "weaknesses.csv" in shown
    assert main([*words[:-1], str(tmp_path / "other"), "--no-figures", "--runtime", "5"]) == 2
    assert "every test has lengths of its own" in capsys.readouterr().err
