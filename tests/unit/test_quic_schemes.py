"""QUIC by a library among the schemes: names, styles, seeds, what is refused and where."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from ccgym.cli.main import main as cli
from ccgym.config.path import NetworkPath
from ccgym.emulation import quic as program
from ccgym.emulation.plan import Plan
from ccgym.errors import SchemeNotFoundError
from ccgym.evaluation.experiment import Experiment
from ccgym.evaluation.run import parse_contenders
from ccgym.schemes.flow import flow_spec
from ccgym.schemes.quic import QuicScheme
from ccgym.schemes.reading import parse_scheme

PATH = NetworkPath(rate="12mbps", rtt="20ms", queue="20p", name="test")


@pytest.fixture
def search_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place where programs are looked for; it is empty."""
    monkeypatch.setattr(program.sysconfig, "get_path", lambda name: str(tmp_path / "scripts"))
    monkeypatch.setenv("PATH", str(tmp_path))
    return tmp_path


def test_a_quic_scheme() -> None:
    choice = parse_scheme("quic:cubic")
    assert (choice.key, choice.text, choice.title, choice.algorithm) == (
        "quic_cubic",
        "quic:cubic",
        "quic:cubic",
        "cubic",
    )
    assert choice.kernel is None
    assert choice.style.label == "QUIC Cubic (quinn)"
    native = flow_spec({"scheme": "quic:bbr", "start": "1s"}).native(0)
    assert (native["scheme"], native["params"], native["mss"] + native["header"]) == ("quic:bbr", {}, 1500)


def test_our_scheme_of_that_name_is_another() -> None:
    assert not QuicScheme.claims("quic")
    assert not QuicScheme.claims("quic:mode=x")
    assert parse_scheme("quic").style.label != parse_scheme("quic:cubic").style.label


def test_styles_are_its_own() -> None:
    every = parse_contenders("quic:cubic,quic:bbr,quic:reno,tcp:cubic,tcp:bbr,tcp:reno,cubic,bbr,reno")
    looks = [(one.style.color, one.style.marker) for one in every]
    assert len(set(looks)) == len(looks) == 9


def test_it_meets_the_same_losses_as_ours() -> None:
    made = Experiment(path=PATH, schemes=parse_contenders("quic:bbr,bbr,cubic"), backend="emulated")
    library, ours, other = (made.run_seed(one, 1) for one in made.schemes)
    assert library == ours != other


def test_without_the_program_it_is_unavailable(search_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    choice = parse_scheme("quic:bbr")
    reason = choice.why_unavailable()
    assert "make setup" in reason
    assert Plan(spec={}).document(Path("result"))["quic"] is None
    assert cli(["schemes", "show", "quic:bbr"]) == 0
    assert "unavailable" in capsys.readouterr().out


def test_where_the_program_is_looked_for(search_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    on_path = search_path / program.PROGRAM
    on_path.touch(0o755)
    assert program.program() == on_path
    beside_python = search_path / "scripts" / program.PROGRAM
    beside_python.parent.mkdir()
    beside_python.touch(0o755)
    assert program.program() == beside_python, "first"
    assert Plan(spec={}).document(Path("result"))["quic"] == str(beside_python)
    assert cli(["schemes", "--json"]) == 0
    rows = [row for row in json.loads(capsys.readouterr().out) if row.get("quic")]
    assert [(row["name"], row["available"]) for row in rows] == [(f"quic:{name}", True) for name in program.LABELS]


def test_the_program_says_which_controllers_it_has(search_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    on_path = search_path / program.PROGRAM
    on_path.write_text("#!/bin/sh\n[ \"$1\" = --controllers ] && printf 'cubic Cubic\\nmine My own\\n../x Bad\\n'\n")
    on_path.chmod(0o755)
    choice = parse_scheme("quic:mine")
    assert (choice.key, choice.style.label) == ("quic_mine", "QUIC My own (quinn)")
    assert cli(["schemes", "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out) if row.get("quic")}
    assert list(rows) == ["quic:cubic", "quic:mine"]
    assert rows["quic:cubic"]["reference"]
    assert not rows["quic:mine"]["reference"]
    with pytest.raises(SchemeNotFoundError):
        parse_scheme("quic:bbr")
    # One that does not say has the library's own.
    on_path.write_text("#!/bin/sh\nexit 2\n")
    os.utime(on_path, ns=(0, 0))
    assert parse_scheme("quic:bbr").style.label == "QUIC BBR (quinn)"


def test_another_build_of_ones_own_controller_is_another_scheme(search_path: Path) -> None:
    on_path = search_path / program.PROGRAM

    def built(number: int) -> tuple[Experiment, dict[str, Any], dict[str, str]]:
        on_path.write_text(f"#!/bin/sh\n# {number}\nprintf 'cubic Cubic\\nmine Mine\\n'\n")
        on_path.chmod(0o755)
        os.utime(on_path, ns=(number, number))
        made = Experiment(path=PATH, schemes=parse_contenders("quic:cubic,quic:mine"), backend="emulated", runs=1)
        return made, made.parameters(), {run.contender.key: run.digest for run in made.planned("none")}

    (_, before, old), (made, after, new) = built(1), built(2)
    assert (old["quic_cubic"] == new["quic_cubic"], old["quic_mine"] == new["quic_mine"]) == (True, False)
    assert before != after
    assert made.continues(before)
