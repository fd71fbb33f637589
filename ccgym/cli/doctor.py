"""``ccgym doctor``: show the support of this machine for real packets, with a remedy for each problem.

Exit status: 0, real packets work here, possibly with limits; 1, the emulated path cannot work; for other values see
:mod:`ccgym.cli.common`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from ccgym.cli.command import Command
from ccgym.cli.common import console, error_console, say, say_json
from ccgym.cli.options import AS_JSON
from ccgym.invocation import command

if TYPE_CHECKING:
    from ccgym.emulation.doctor import Finding

_LOOKS: Final = {"ok": ("ok", "green"), "warn": ("limited", "yellow"), "missing": ("missing", "bold red")}
"""Texts and colors of the states."""


def _doctor(arguments: argparse.Namespace) -> int:
    from ccgym.emulation.doctor import examine, obstacle
    from ccgym.schemes import programs

    with error_console().status("checking this machine …"):
        findings = [*examine(measure=not arguments.quick), *programs.findings()]
    works_here = obstacle("emulated", findings) is None
    if arguments.json:
        say_json({"works": works_here, "findings": [asdict(one) for one in findings]}, None)
    else:
        _show(findings, works_here)
    return 0 if works_here else 1


def _show(findings: Sequence[Finding], works_here: bool) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table("", "", "found", box=None, pad_edge=False, show_header=False)
    for finding in findings:
        word, color = _LOOKS[finding.status]
        found = Text(finding.found)
        if finding.remedy and finding.status != "ok":
            found.append(f"\n→ {finding.remedy}", style="dim")
        table.add_row(Text(word, style=color), finding.name, found)
    console().print(table)
    if works_here:
        say(f"\nthe emulated path works here: {command('evaluate')} --backend emulated …")
    else:
        say("\nthe emulated path cannot work here until the missing parts are installed; simulations do not need them")


COMMAND: Final = Command(
    "doctor",
    run=_doctor,
    description="""\
Check the requirements of real packets: namespaces and devices (as root or without), the kernel's
congestion controls, mahimahi's programs, external programs, the precision of timers, and the maximum
rate of an emulated path here. It measures for some seconds and changes nothing.
""",
    options={
        **AS_JSON,
        "--quick": "check without measurements",
    },
)
