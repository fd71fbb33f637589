"""Parameters of schemes that are files, by the rule tables of taova."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

import ccgym
from ccgym.cli.endpoint import sender_job
from ccgym.errors import ConfigError
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.prepared_run import prepare
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.run import contenders
from ccgym.evaluation.runner import run_experiment
from ccgym.schemes.flow import flow_spec
from ccgym.schemes.reading import parse_scheme, scheme_of
from ccgym.schemes.registry import registry
from tests.commands import parsed
from tests.refusals import refused

PATH = ccgym.NetworkPath(rate="12mbps", rtt="40ms", queue="80p")


def table(window: int) -> bytes:
    """A rule table whose one rule holds a window, with a gap of 0.1 ms."""
    rule = bytes([0xF8, 0x01, window << 1, 0x81, 0x02]) + struct.pack("<d", 0.0) + b"\x89\x02" + struct.pack("<d", 0.1)
    return bytes([0x1A, len(rule)]) + rule


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    """A file with a window of 10 packets."""
    file = tmp_path / "rules.dna"
    file.write_bytes(table(10))
    return file


def test_only_the_table_of_taova_is_a_file() -> None:
    found = [(name, p["name"]) for name, entry in registry().items() for p in entry["parameters"] if p["file"]]
    assert ("taova", "table") in found
    assert ("learned", "policy") not in found


def test_a_path_becomes_name_and_version(rules: Path) -> None:
    choice = parse_scheme(f"taova:table={rules}")
    assert choice.params["table"].startswith("rules.dna@")
    assert choice.text == f"taova:table={rules}"
    assert choice.native_params == {"table": table(10).hex()}
    assert choice.key.startswith("taova_table_rules.dna_")
    assert choice.style.label == f"TaoVA-100x (table {choice.params['table']})"
    assert parse_scheme("taova").style.label == "TaoVA-100x (own table)"
    assert choice.checked() == choice
    flow = flow_spec({"scheme": "taova", "params": {"table": str(rules)}})
    assert flow.params == choice.params
    assert flow.native(0)["params"] == choice.native_params
    assert (flow.profile, flow.mss, flow.header, flow.initial_window) == ("udp", 1408, 60, 2)


def test_the_content_decides_what_a_run_does_and_is(rules: Path) -> None:
    flow = {"scheme": "taova", "params": {"table": str(rules)}}
    # Ten packets of 1468 bytes per 40 ms.
    run = ccgym.simulate(PATH, [flow], "10s")
    assert run.flows[0].throughput_mbps == pytest.approx(10 * 1468 * 8 / 40e3, rel=0.05)
    before = Experiment(path=PATH, schemes=contenders([f"taova:table={rules}"])).parameters()
    rules.write_bytes(table(20))
    after = Experiment(path=PATH, schemes=contenders([f"taova:table={rules}"])).parameters()
    assert before["schemes"] == after["schemes"]
    assert before["files"] != after["files"]
    assert ccgym.simulate(PATH, [flow], "10s").flows[0].throughput_mbps == pytest.approx(5.87, rel=0.05)


def test_results_of_another_table_are_not_taken_over(rules: Path, tmp_path: Path) -> None:
    def results() -> ResultSet:
        one = Experiment(path=PATH, schemes=contenders([f"taova:table={rules}"]), runtime_ns=1_000_000_000, runs=1)
        return run_experiment(one, tmp_path / "out", grow=True)

    first = results()
    assert first.trajectory_hash == results().trajectory_hash
    rules.write_bytes(table(20))
    assert first.trajectory_hash != results().trajectory_hash


def test_real_packets_get_the_content(rules: Path) -> None:
    job = sender_job(parsed("sender", ["--to", "127.0.0.1:5000", "--scheme", f"taova:table={rules}"]))
    assert job["flow"]["params"] == {"table": table(10).hex()}
    document = prepare(PATH, [scheme_of("taova", {"table": str(rules)})]).document
    assert json.loads(json.dumps(document))["flows"][0]["params"] == {"table": table(10).hex()}


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "file-unreadable at --schemes taova:table"),
        (b"not a table\n", "parameter-invalid at --schemes: scheme taova, parameter table"),
        (table(10)[:-1], "parameter-invalid at --schemes: scheme taova, parameter table"),
        (b"\0" * (2**20 + 1), "file-unreadable at --schemes taova:table"),
    ],
)
def test_files_that_are_none(tmp_path: Path, content: bytes | None, words: list[str]) -> None:
    file = tmp_path / "some.dna"
    if content is not None:
        file.write_bytes(content)
    with refused(ConfigError, words):
        parse_scheme(f"taova:table={file}", "--schemes")


def test_a_file_is_a_path() -> None:
    assert scheme_of("taova", {"table": ""}).checked().native_params == {"table": ""}
    for value in (5, True, None):
        with refused(ConfigError, "wrong-type at taova:table"):
            scheme_of("taova", {"table": value}).checked()
