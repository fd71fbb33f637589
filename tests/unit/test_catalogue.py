"""The catalogue of published experiments: every file is part of a set, every part can be run, the command."""

from __future__ import annotations

from pathlib import Path

import pytest

from ccgym.cli.main import main
from ccgym.config.yaml_loader import parse_yaml
from ccgym.errors import ConfigError
from ccgym.experiments.catalogue import load_catalogue
from ccgym.experiments.expand import conditions
from ccgym.experiments.load import load_experiment
from tests.refusals import refused

FOLDER = Path(__file__).parents[2] / "configs/experiments"
CATALOGUE = load_catalogue()


@pytest.mark.parametrize("name", CATALOGUE.parts)
def test_every_part_can_be_expanded(name: str) -> None:
    """Both ways, also the quick one, are checked as they are read."""
    found = load_experiment(name, quick=True)
    whole = load_experiment(name)
    for quick, full in zip(found.experiments, whole.experiments, strict=True):
        assert 1 <= len(conditions(quick)) <= len(conditions(full))
        assert full.source, "it says where it comes from"


def test_every_file_belongs_to_a_set() -> None:
    listed: set[str] = set()
    for file in FOLDER.glob("*.yaml"):
        data = parse_yaml(file.read_text(), file.name).data
        listed |= set(data.get("include", []))
        listed |= {name for row in data.get("rows", []) for name in row.get("tests", [])}
    listed |= {f"{name}.yaml" for name in CATALOGUE.parts}
    files = {str(file.relative_to(FOLDER)) for file in FOLDER.glob("*/*.yaml")}
    assert files <= listed, f"list it in a set: {sorted(files - listed)}"


def test_a_catalogue_is_no_experiment() -> None:
    with refused(ConfigError, "unsupported at --experiment"):
        load_experiment("benchmark")


def test_the_command_lists_its_parts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["benchmark", "--list"]) == 0
    shown = capsys.readouterr().out
    assert all(name in shown for name in CATALOGUE.parts)


def test_parts_leave_reports_and_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "benchmark"
    only = "c4,league/prudentia"
    assert main(["benchmark", "reno", "--quick", "--only", only, "--no-figures", "--out", str(out)]) == 0
    table = (out / "benchmark.md").read_text()
    assert "TCP Reno 1 of 6" in table
    assert "TCP Reno rating" in table
    assert (out / "c4" / "c4.md").is_file()
    assert (out / "prudentia" / "results.json").is_file()
    capsys.readouterr()
