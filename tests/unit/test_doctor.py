"""``ccgym doctor``: the native check's findings, shown; what of it stops a backend."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ccgym.cli.main import main as cli
from ccgym.emulation import doctor, process
from ccgym.emulation.doctor import Finding, examine, obstacle, require
from ccgym.errors import PlatformError, RealPathError
from tests.refusals import explained, refused

FINE = [
    {"name": "rights", "status": "ok", "found": "root: namespaces of our own", "remedy": ""},
    {"name": "tun", "status": "warn", "found": "EPERM; veth pairs serve instead", "remedy": "sudo modprobe tun"},
    {"name": "path", "status": "ok", "found": "two ends made", "remedy": ""},
    {"name": "mahimahi", "status": "missing", "found": "not installed", "remedy": "apt-get install mahimahi"},
]


def answering(monkeypatch: pytest.MonkeyPatch, data: Any) -> list[dict[str, Any]]:
    """Have the native check answer with this; what it was told."""
    asked: list[dict[str, Any]] = []

    def answer(kind: str, fields: dict[str, Any], timeout_s: float) -> Any:
        assert kind == "doctor"
        asked.append(fields)
        return data

    monkeypatch.setattr(process, "output_of", answer)
    return asked


def test_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    answering(monkeypatch, FINE)
    findings = examine()
    assert findings[1] == Finding("tun", "warn", "EPERM; veth pairs serve instead", "sudo modprobe tun")
    assert obstacle("emulated", findings) is None, "limits are no obstacle"
    assert obstacle("mahimahi", findings) == findings[3]
    answering(monkeypatch, [{**FINE[0], "status": "missing"}, *FINE[1:]])
    assert obstacle("emulated", examine()) is not None


@pytest.mark.parametrize("data", [None, {}, "[]", [1], [{"name": "x"}], [{"name": "x", "status": "fine"}], [{}]])
def test_what_are_no_findings(monkeypatch: pytest.MonkeyPatch, data: object) -> None:
    answering(monkeypatch, data)
    with refused(RealPathError, "protocol-error at ccgym doctor"):
        examine()


def test_a_backend_that_cannot_work_here(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = answering(monkeypatch, FINE)
    require("emulated")
    with refused(PlatformError, "capability-missing at backend mahimahi"):
        require("mahimahi")
    assert [one["measure"] for one in asked] == [False, False]


def test_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    asked = answering(monkeypatch, FINE)
    assert cli(["doctor"]) == 0
    output = capsys.readouterr().out
    assert "→ sudo modprobe tun" in output
    assert "→ apt-get install mahimahi" in output
    assert "the emulated path works here" in output
    assert cli(["doctor", "--json", "--quick"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["works"] is True
    assert data["findings"][: len(FINE)] == FINE
    assert [one["name"] for one in data["findings"][len(FINE) :]] == ["program:iperf3", "program:utp"]
    assert [one["measure"] for one in asked] == [True, False]


def test_a_machine_where_nothing_works(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    answering(monkeypatch, [{**FINE[0], "status": "missing", "remedy": "be root"}, *FINE[1:]])
    assert cli(["doctor"]) == 1
    assert "cannot work here" in capsys.readouterr().out


def test_a_check_that_fails(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def fail(kind: str, fields: dict[str, Any], timeout_s: float) -> Any:
        raise RealPathError("no-answer", "no answer within 60 s", where="ccgym doctor")

    monkeypatch.setattr(doctor.process, "output_of", fail)
    assert cli(["doctor"]) == 2
    explained(capsys.readouterr().err, "no-answer at ccgym doctor")
