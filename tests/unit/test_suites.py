"""``evaluate.py --suite``: the command line, whose a directory is, and the registry of suites."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ccgym.cli.evaluate import main, parser
from ccgym.errors import ConfigError, ResultsError
from ccgym.evaluation.suites import SUITES, calibrated, suite, suite_names, suite_report
from ccgym.evaluation.suites.directory import claim, default_directory, identity
from ccgym.evaluation.suites.paths import SuitePath
from ccgym.evaluation.suites.protocol import SuiteRequest
from ccgym.schemes.registry import parse_schemes

TWO = (SuitePath("77.72mbps", "calibrated"), SuitePath("small-buffer-one-bdp", "small-buffers"))


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The suite ``calibrated`` has two paths; the working directory is empty."""
    monkeypatch.setattr(calibrated, "calibrated_paths", lambda: TWO)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(*words: str) -> list[str]:
    return ["--suite", "calibrated", "--jobs", "1", "--schemes", "oracle,cubic,reno", *words]


# --- The registry ----------------------------------------------------------------------------------------------------


def test_every_suite_that_is_there_can_be_had() -> None:
    assert "calibrated" in suite_names()
    for name in suite_names():
        found, report = suite(name), suite_report(name)
        assert found.name == name
        assert found.title
        assert found.schemes(real=False)
        assert callable(report.terminal)
        assert callable(report.write)


def test_a_suite_that_is_not_there_yet_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SUITES, "later", type(SUITES["calibrated"])("ccgym.no.such.module", "ccgym.neither"))  # type: ignore[index]
    assert "later" not in suite_names()
    with pytest.raises(ConfigError, match="later"):
        suite("later")


# --- The command line ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--suite", "calibrate"], "did you mean 'calibrated'"),
        (["--suite", "nothing"], "one of calibrated"),
        (["--suite", "calibrated", "--trace", "77.72mbps"], "--trace together with --suite"),
        (["--suite", "calibrated", "--mahimahi", "mm-delay 10"], "--mahimahi together with --suite"),
        (["--suite", "calibrated", "--flows", "2"], "--flows together with --suite"),
        (["--suite", "calibrated", "--interval", "1"], "--interval together with --suite"),
        (["--suite", "calibrated", "--logs", "all"], "--logs together with --suite"),
        (["--suite", "calibrated", "--runs", "0"], "--runs"),
        (["--suite", "calibrated", "--seed", "-1"], "--seed"),
        (["--suite", "calibrated", "--jobs", "0"], "--jobs"),
        (["--suite", "calibrated", "--runtime", "soon"], "--runtime"),
        (["--suite", "calibrated", "--runtime", "0"], "more than 0 s"),
        (["--suite", "calibrated", "--schemes", "cubci"], "did you mean 'cubic'"),
        (["--suite", "calibrated", "--backend", "simulator"], "--backend"),
        (["--suit", "calibrated"], "did you mean '--suite'"),
        (["--trace", "77.72mbps", "--quick"], "--quick without --suite"),
        ([], "--suite NAME"),
    ],
)
def test_mistakes_of_the_caller(
    words: list[str], expected: str, tiny: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    error = capsys.readouterr().err
    assert expected in error.replace("\n", " ")
    assert "Traceback" not in error


def test_help_explains_suites(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["--help"])
    text = capsys.readouterr().out
    for words in ("--suite", "--quick", "calibrated", "ccgym evaluate --suite calibrated"):
        assert words in text


def test_a_suite_from_the_command_line(tiny: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(typed("--quick", "--runtime", "2")) == 0
    output = capsys.readouterr().out
    for words in ("Oracle", "TCP Cubic", "score", "trained, held out"):
        assert (words in output) is (words != "trained, held out"), words
    files = ("scorecard.html", "scorecard_ranking.svg", "scorecard_heat_map.svg", "scorecard.json", "scorecard.md")
    for name in files:
        assert str(Path("results", "calibrated-quick", name)) in output
        assert (tiny / "results" / "calibrated-quick" / name).stat().st_size > 100
    document = json.loads((tiny / "results" / "calibrated-quick" / "scorecard.json").read_text())
    assert document["parameters"]["runs"] == 1
    assert document["provenance"]["command"].startswith("ccgym evaluate --suite calibrated")

    assert main(typed("--quick", "--runtime", "2", "--no-figures", "--json")) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out)["marks"] == document["marks"]
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
    assert json.loads(Path("here/scorecard.json").read_text())["failures"]
    monkeypatch.setattr(simulated.Simulated, "run", whole)
    assert main(words) == 0
    assert "5 were there already" in capsys.readouterr().out


def test_an_interruption_says_that_it_can_go_on(
    tiny: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(calibrated, "run_experiment", interrupt)
    assert main(typed("--no-figures")) == 130
    assert "the same command goes on" in capsys.readouterr().out


# --- Directories -----------------------------------------------------------------------------------------------------


def request(out: Path = Path(), **changes: Any) -> SuiteRequest:
    return SuiteRequest(schemes=tuple(parse_schemes("cubic")), out=out, **changes)


def test_default_directories(tiny: Path) -> None:
    assert default_directory("calibrated", request()) == Path("results/calibrated")
    assert default_directory("calibrated", request(quick=True)) == Path("results/calibrated-quick")
    assert default_directory("calibrated", request(backend="emulated")) == Path("results/calibrated-emulated")
    claim("calibrated", request(Path("results/calibrated")))
    assert default_directory("calibrated", request(runs=7)) == Path("results/calibrated"), "runs may be added"
    other = default_directory("calibrated", request(seed=2))
    assert other.name.startswith("calibrated-")
    assert other != Path("results/calibrated")


def test_a_directory_is_one_suites(tmp_path: Path) -> None:
    claim("calibrated", request(tmp_path))
    claim("calibrated", request(tmp_path, runs=9))
    with pytest.raises(ResultsError, match="seed: 1 there, 2 here"):
        claim("calibrated", request(tmp_path, seed=2))
    with pytest.raises(ResultsError, match="suite"):
        claim("weaknesses", request(tmp_path))
    assert identity("calibrated", request()) == identity("calibrated", request(runs=3, jobs=2))


def test_an_evaluations_directory_is_not_taken(tmp_path: Path) -> None:
    (tmp_path / "ccgym_manifest.json").write_text("{}")
    with pytest.raises(ResultsError, match="results of an evaluation"):
        claim("calibrated", request(tmp_path))


def test_a_directory_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ResultsError, match="cannot be written"):
        claim("calibrated", request(tmp_path / "file" / "below"))
