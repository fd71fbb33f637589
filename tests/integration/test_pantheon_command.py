"""``ccgym pantheon``: test.py's options mean what they mean there."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from ccgym.cli.pantheon import evaluate_words
from ccgym.errors import ConfigError
from tests.commands import pantheon as main
from tests.commands import parsed
from tests.refusals import explained, refused

PATH = (
    "--uplink-trace 77.72mbps.trace --downlink-trace 77.72mbps.trace "
    "--prepend-mm-cmds 'mm-delay 51 mm-loss uplink 0.0006' "
    "--extra-mm-link-args '--uplink-queue=droptail --uplink-queue-args=packets=94'"
)


def words(line: str) -> list[str]:
    return evaluate_words(parsed("pantheon", shlex.split(line)))


def test_every_option_has_its_counterpart() -> None:
    found = parsed(
        "evaluate",
        words(
            f"test local --schemes 'cubic bbr' -f 3 -t 20 --interval 5 --run-times 4 --random-order "
            f"--data-dir d {PATH} "
            "--append-mm-cmds 'mm-onoff uplink 1 1' --seed 7"
        ),
    )
    assert found.mahimahi == (
        "mm-delay 51 mm-loss uplink 0.0006 mm-link 77.72mbps.trace 77.72mbps.trace "
        "--uplink-queue=droptail --uplink-queue-args=packets=94 mm-onoff uplink 1 1"
    )
    assert (found.schemes, found.flows, found.runs, found.runtime_ns, found.interval_ns) == (
        "cubic,bbr",
        3,
        4,
        20 * 10**9,
        5 * 10**9,
    )
    assert (str(found.out), found.grow, found.random_order, found.seed) == ("d", True, True, 7)
    assert (found.logs, found.backend) == ("all", "emulated")


def test_defaults_are_pantheons() -> None:
    found = parsed("evaluate", words("test local --all"))
    assert found.mahimahi == "mm-link 12mbps.trace 12mbps.trace"
    assert (found.schemes, found.flows, found.runs, found.runtime_ns, found.interval_ns) == (
        "pantheon",
        1,
        1,
        30 * 10**9,
        0,
    )


def test_runs_are_numbered_from_the_one_asked_for() -> None:
    assert parsed("evaluate", words("test local --schemes bbr --start-run-id 4 --run-times 2")).runs == 5


def test_a_configuration_file_mixes_flows_and_the_command_line_wins(tmp_path: Path) -> None:
    file = tmp_path / "mixed.yml"
    file.write_text(
        "test-name: mixed\nruntime: 20\nrun-times: 2\ninterval: 5\n"
        "flows:\n- scheme: bbr\n- scheme: cubic\n- scheme: bbr\n"
    )
    found = parsed("evaluate", words(f"test -c {file} local -t 12"))
    assert (found.schemes, found.runtime_ns, found.runs) == ("bbr+cubic@5s+bbr@10s", 12 * 10**9, 2)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("test local --all --pkill-cleanup", "unsupported at --pkill-cleanup"),
        ("test local --all -f 0", "out-of-range at --flows"),
        ("test local", "argument-missing at test local"),
        ("test -c {file} local --schemes bbr", "options-conflict at one.yml"),
    ],
)
def test_what_is_refused_says_why(line: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "one.yml"
    file.write_text("flows: [{scheme: bbr}]\n")
    with refused(ConfigError, said):
        words(line.format(file=file))


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("flows: []", "argument-missing"),
        ("flows: [bbr]", "file-malformed"),
        ("[]", "file-malformed"),
        ("flows: [{scheme: bbr}]\nruntimes: 3", "unknown-key"),
        ("flows: {", "file-malformed"),
        ("\0", "file-malformed"),
    ],
)
def test_a_wrong_configuration_file_is_an_error(text: str, code: str, tmp_path: Path) -> None:
    file = tmp_path / "wrong.yml"
    file.write_text(text)
    with refused(ConfigError, f"{code} at wrong.yml"):
        words(f"test -c {file} local")


def test_from_test_to_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "data"
    common = ["test", "local", "--backend", "sim", "-t", "3", "--data-dir", str(data), "--random-order"]
    assert main([*common, "--schemes", "cubic bbr"]) == 0
    assert "equivalent command: " in capsys.readouterr().out
    first = (data / "cubic_datalink_run1.log").stat().st_mtime_ns
    assert main([*common, "--schemes", "cubic bbr", "--run-times", "1", "--start-run-id", "2"]) == 0
    assert (data / "cubic_datalink_run1.log").stat().st_mtime_ns == first, "the first run is kept"
    assert (data / "bbr_datalink_run2.log").exists()
    assert json.loads((data / "pantheon_metadata.json").read_text())["random_order"] is True
    assert main(["plot", "--data-dir", str(data), "--no-graphs"]) == 0
    assert main(["analyze", "--data-dir", str(data)]) == 0
    assert (data / "pantheon_report.pdf").exists()
    kept = (data / "results.json").read_bytes()
    capsys.readouterr()
    assert main(["plot", "--data-dir", str(data), "--no-graphs", "--schemes", "bbr"]) == 0
    shown = capsys.readouterr().out
    assert "TCP BBR" in shown
    assert "Cubic" not in shown
    assert (data / "results.json").read_bytes() == kept, "all schemes are still there"
    assert main(["plot", "--data-dir", str(data), "--no-graphs", "--schemes", "bbrr"]) == 2
    explained(capsys.readouterr().err, "unknown-scheme at --schemes")


def test_random_order_is_one_order_for_all_runs() -> None:
    from ccgym.evaluation.experiment import Experiment

    schemes = ["cubic", "bbr", "vegas", "copa", "reno", "bic", "htcp", "yeah"]
    planned = Experiment("12mbps", schemes, runs=2, random_order=True).planned()
    order = [run.contender.key for run in planned]
    assert order[:8] == order[8:]
    assert order[:8] != schemes
    assert sorted(order[:8]) == sorted(schemes)
    assert Experiment("12mbps", schemes, random_order=True).parameters() == Experiment("12mbps", schemes).parameters()
