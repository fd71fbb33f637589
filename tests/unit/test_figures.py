"""The registry of figures: every file registers, every page draws what is registered for it."""

from __future__ import annotations

import pkgutil
from pathlib import Path
from typing import get_args

import pytest

from ccgym.errors import ConfigError
from ccgym.report import figures
from ccgym.report.figures import Page, all_figures, chosen_figure, figures_of
from tests.refusals import refused

PACKAGE = Path(figures.__file__).parent


def test_every_file_registers_a_figure_once_per_page() -> None:
    modules = {module.name for module in pkgutil.iter_modules([str(PACKAGE)])}
    each = [(one.draw.__module__, one.page) for one in all_figures().values()]
    assert len(set(each)) == len(each)
    assert modules == {module.rpartition(".")[2] for module, _ in each}
    assert {one.page for one in all_figures().values()} == set(get_args(Page))


def test_figures_of_tests_work_without_options() -> None:
    for one in figures_of("test"):
        assert one.options is not None
        assert chosen_figure(one.name).options == one.options()


def test_a_figure_with_options() -> None:
    chosen = chosen_figure({"sweep": {"x": "rate_mbps", "rows": [{"metric": "loss"}]}})
    assert chosen.figure.name == "sweep"
    assert chosen.options.model_dump()["rows"][0]["metric"] == "loss"


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ("sweeep", "unknown-figure at figures"),
        ({"sweep": {"columnz": "a"}}, "unknown-key at figures.sweep: columnz"),
        ({"strip": {"min": "x"}}, "wrong-type at figures.strip: min"),
        ({"strip": {}, "sweep": {}}, "wrong-type at figures"),
    ],
)
def test_mistakes_in_choices(choice: str | dict[str, object], message: str) -> None:
    with refused(ConfigError, message):
        chosen_figure(choice)
