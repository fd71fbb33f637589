"""Errors: their codes and parts, how they travel, what the command line prints, and the nearest known name."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import ccgym
from ccgym.cli.common import STATUS_ERROR, run
from ccgym.config.configurations import find_config
from ccgym.errors import CODES, CcgymError, UnitError, known_code
from ccgym.evaluation.backends import backend
from ccgym.schemes.reading import parse_scheme
from ccgym.units import parse_rate
from tests.refusals import explained


def test_errors_have_a_code_and_four_parts_and_travel() -> None:
    error = UnitError("unknown-unit", "'5mpbs'", expected="a rate", hint="did you mean 'mbps'?", where="rate")
    again = pickle.loads(pickle.dumps(error))
    parts = UnitError, "unknown-unit", "'5mpbs'", "a rate", "did you mean 'mbps'?"
    assert (type(again), again.code, again.found, again.expected, again.hint) == parts
    placed = error.at("--set path")
    assert (placed.code, placed.where) == ("unknown-unit", "--set path: rate")
    assert isinstance(error, ValueError)
    lines = str(error).splitlines()
    assert [part in line for part, line in zip(("rate: ", "a rate", "mbps"), lines, strict=True)] == [True] * 3


def test_codes_are_those_of_the_table() -> None:
    with pytest.raises(AssertionError):
        CcgymError("no-such-code", "x")
    assert known_code("unit-missing", "run-failed") == "unit-missing"
    assert [known_code(sent, "run-failed") for sent in ("of another version", None, 5)] == ["run-failed"] * 3
    assert all(meaning.endswith(".") for meaning in CODES.values())


def test_errors_of_rust_have_known_codes_and_every_code_has_an_error() -> None:
    root = Path(__file__).parents[2]
    rust = [file.read_text(encoding="utf-8") for top in ("crates", "schemes") for file in (root / top).rglob("*.rs")]
    python = [file.read_text(encoding="utf-8") for file in (root / "ccgym").rglob("*.py") if file.name != "errors.py"]
    given = re.findall(r'(?:Error::of|Error::unknown|\.coded)\(\s*"([a-z0-9-]+)"', "\n".join(rust))
    assert set(given) <= CODES.keys()
    quoted = set(re.findall(r'"([a-z0-9-]+)"', "\n".join(rust + python)))
    assert CODES.keys() <= quoted


def test_the_command_line_prints_the_code(capsys: pytest.CaptureFixture[str]) -> None:
    def body() -> int:
        raise CcgymError("unit-missing", "'5'", where="--rate")

    assert run(body) == STATUS_ERROR
    explained(capsys.readouterr().err, "unit-missing at --rate")


@pytest.mark.parametrize(
    ("mistake", "meant"),
    [
        (lambda: parse_scheme("cubci"), "cubic"),
        (lambda: ccgym.NetworkPath.from_any("77.27mbps"), "77.72mbps"),
        (lambda: ccgym.NetworkPath.from_any({"rat": "5mbps", "rtt": "9ms"}), "rate"),
        (lambda: find_config(Path("aurra.yaml")), "aurora"),
        (lambda: backend("simm"), "sim"),
        (lambda: parse_rate("5mpbs"), "mbps"),
    ],
)
def test_the_nearest_known_name_is_suggested(mistake: Callable[[], object], meant: str) -> None:
    with pytest.raises(CcgymError) as caught:
        mistake()
    assert f"'{meant}'" in caught.value.hint
