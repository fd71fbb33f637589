"""``evaluate.py --experiment``: the command line, directories, and an experiment that is one YAML file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ccgym.errors import ResultsError
from ccgym.evaluation.run import parse_contenders
from ccgym.experiments.request import Request, claim_directory, default_directory, identity
from tests.commands import evaluate as main
from tests.refusals import refused
from tests.results_rows import document_of

DATA = Path(__file__).with_name("data") / "experiments"

CARD = """\
kind: scorecard
title: two paths
runs: 3
duration: 30s
quick: {runs: 1, duration: 10s}
sections:
  calibrated: {title: Emulators, paths: [77.72mbps]}
  small-buffers: {title: Small buffers, paths: [small-buffer-one-bdp]}
"""


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A working directory whose experiment ``calibrated`` has two paths."""
    (tmp_path / "configs" / "experiments").mkdir(parents=True)
    (tmp_path / "configs" / "experiments" / "calibrated.yaml").write_text(CARD)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(*words: str) -> list[str]:
    return ["--experiment", "calibrated", "--jobs", "1", "--schemes", "oracle,cubic,reno", *words]


# --- An experiment of one's own ------------------------------------------------------------------------------------


def test_a_new_experiment_is_one_yaml_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three paths, mixed flows, a sweep, two criteria, a figure: at most forty lines."""
    file = shutil.copy(DATA / "coexistence.yaml", tmp_path)
    assert len(Path(file).read_text().splitlines()) <= 40
    monkeypatch.chdir(tmp_path)
    assert main(["--experiment", "coexistence.yaml", "--schemes", "cubic,bbr", "--jobs", "2"]) == 0
    shown = capsys.readouterr().out
    out = tmp_path / "results" / "coexistence"
    for words in ("Coexistence with Cubic", "TCP BBR", "goodput ratio", "pass", "results/coexistence/coexistence.html"):
        assert words in shown
    document = document_of(out)
    bbr = next(one for one in document["outcomes"] if one["scheme"] == "bbr")
    assert [one["key"] for one in bbr["conditions"]][:3] == [
        "start=0s,path=slow", "start=5s,path=slow", "start=0s,path=fast",
    ]  # fmt: skip
    assert len(bbr["runs"]) == 3 * 2 * 2, "paths, starts, runs"
    assert [(one["metric"], one["group"]) for one in bbr["criteria"]] == [
        ("ratio", "path slow"), ("ratio", "path fast"), ("ratio", "path lossy"), ("delay_p95", ""),
    ]  # fmt: skip
    assert bbr["criteria"][3]["max"] == document["outcomes"][0]["criteria"][3]["value"], "Cubic's own delay"
    assert (out / "coexistence_sweep.svg").stat().st_size > 1000
    page = (out / "coexistence.html").read_text()
    assert page.count('data-type="image/svg+xml"') == 2
    assert main(["--experiment", "coexistence.yaml", "--schemes", "cubic,bbr", "--no-figures", "--json"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["outcomes"] == document["outcomes"]
    assert "24 were there already" in captured.err


# --- The command line ------------------------------------------------------------------------------------------------


def test_a_scorecard_from_the_command_line(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(typed("--quick", "--runtime", "2")) == 0
    output = capsys.readouterr().out
    for words in ("Oracle", "TCP Cubic", "score", "trained, held out"):
        assert (words in output) is (words != "trained, held out"), words
    files = ("scorecard.html", "scorecard_ranking.svg", "scorecard_heat_map.svg", "results.json", "scorecard.md")
    for name in files:
        assert str(Path("results", "calibrated-quick", name)) in output
        assert (tiny / "results" / "calibrated-quick" / name).stat().st_size > 100
    document = document_of(tiny / "results" / "calibrated-quick")
    assert document["parameters"]["runs"] == 1
    assert document["provenance"]["command"].startswith("ccgym evaluate --experiment calibrated")

    assert main(typed("--quick", "--runtime", "2", "--no-figures", "--json")) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["path_results"] == document["path_results"]
    assert "6 were there already" in captured.err


def test_a_failed_run_is_told_and_tried_again(
    tiny: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ccgym.evaluation.backends import simulated

    whole = simulated.Simulated.run

    def fail(self: Any, path: Any, flows: Any, *rest: Any) -> Any:
        if flows[0].scheme == "reno" and path.name == "77.72mbps":
            raise RuntimeError("out of luck")
        return whole(self, path, flows, *rest)

    words = typed("--runs", "1", "--runtime", "2", "--no-figures", "--out", "here")
    monkeypatch.setattr(simulated.Simulated, "run", fail)
    assert main(words) == 1
    output = capsys.readouterr().out
    assert "failed: 77.72mbps: reno, run 1" in output
    assert "out of luck" in output
    assert document_of(Path("here"))["failures"]
    monkeypatch.setattr(simulated.Simulated, "run", whole)
    assert main(words) == 0
    assert "5 were there already" in capsys.readouterr().out


def test_an_interruption_says_that_it_can_go_on(
    tiny: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ccgym.experiments import comparison as module

    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "run_experiment", interrupt)
    assert main(typed("--no-figures")) == 130
    assert "the same command continues" in capsys.readouterr().out


# --- Directories -----------------------------------------------------------------------------------------------------


def request(out: Path = Path(), **changes: Any) -> Request:
    return Request(schemes=parse_contenders("cubic"), out=out, **changes)


def test_default_directories(tiny: Path) -> None:
    assert default_directory("calibrated", request()) == Path("results/calibrated")
    assert default_directory("calibrated", request(quick=True)) == Path("results/calibrated-quick")
    assert default_directory("calibrated", request(backend="emulated")) == Path("results/calibrated-emulated")
    claim_directory("calibrated", request(Path("results/calibrated")))
    assert default_directory("calibrated", request(runs=7)) == Path("results/calibrated"), "runs may be added"
    other = default_directory("calibrated", request(seed=2))
    assert other.name.startswith("calibrated-")
    assert other != Path("results/calibrated")


def test_a_directory_is_one_experiment_s(tmp_path: Path) -> None:
    claim_directory("calibrated", request(tmp_path))
    claim_directory("calibrated", request(tmp_path, runs=9))
    with refused(ResultsError, "directory-taken"):
        claim_directory("calibrated", request(tmp_path, seed=2))
    with refused(ResultsError, "directory-taken"):
        claim_directory("stress_tests", request(tmp_path))
    assert identity("calibrated", request()) == identity("calibrated", request(runs=3, jobs=2))
