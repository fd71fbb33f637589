"""Suites: what ``ccgym evaluate --suite NAME`` runs, by name.

==============  ==================================================================================================
``protocol``    what a suite is, and what shows its results
``directory``   whose a suite's directory is
``calibrated``  Pantheon's emulators and Indigo's synthetic links: a scorecard over paths
``paths``       those paths, in sections and groups
``score``       one number for a run on a path; who dominates whom
``bootstrap``   how sure a ranking is
``scorecard``   all of it together
``trained``     whether a policy was trained on a path
``weaknesses``  (:mod:`ccgym.evaluation.weaknesses`) one test per known weakness of learned congestion control
==============  ==================================================================================================
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final, cast

from ccgym.errors import ConfigError, did_you_mean, shown
from ccgym.evaluation.suites.protocol import Suite, SuiteReport


@dataclass(frozen=True)
class SuiteEntry:
    """Where a suite is; nothing is imported until it is asked for."""

    suite: str
    """Module whose ``SUITE`` is a :class:`~ccgym.evaluation.suites.protocol.Suite`."""
    report: str
    """Module whose ``REPORT`` is a :class:`~ccgym.evaluation.suites.protocol.SuiteReport`."""

    @property
    def installed(self) -> bool:
        """Whether its module is there."""
        try:
            return find_spec(self.suite) is not None
        except ModuleNotFoundError:
            return False


SUITES: Final[Mapping[str, SuiteEntry]] = {
    "calibrated": SuiteEntry("ccgym.evaluation.suites.calibrated", "ccgym.report.scorecard_report"),
    "weaknesses": SuiteEntry("ccgym.evaluation.weaknesses", "ccgym.report.weaknesses_report"),
}
"""The suites by name, in the order of ``--help``."""


def suite_names() -> list[str]:
    """The suites that are there."""
    return [name for name, entry in SUITES.items() if entry.installed]


def suite(name: str, where: str = "suite") -> Suite:
    """The suite of that name.

    Raises:
        ConfigError: There is none.
    """
    names = suite_names()
    if name not in names:
        raise ConfigError(
            shown(name), where=where, expected=f"one of {', '.join(names)}", hint=did_you_mean(name, names)
        )
    return cast(Suite, import_module(SUITES[name].suite).SUITE)


def suite_report(name: str) -> SuiteReport[Any]:
    """What shows the results of the suite of that name; it needs the packages for figures only to draw."""
    return cast("SuiteReport[Any]", import_module(SUITES[name].report).REPORT)
