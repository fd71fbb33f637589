"""Tests on the machine's real network, which depend on its time.

A virtual machine may lose its processors to others. What was taken is counted (tools/stolen_time.py). A test that fails
meanwhile is repeated, at most twice. If it still fails, and processors were still taken, the test is undecided: it
says nothing about the code. So is a test that repeated its own measurements and saw the machine stall each time.
Undecided tests are listed, and too many of them fail the whole (tools/check.sh).
"""

from __future__ import annotations

import time
from typing import Final, NoReturn

import pytest
from _pytest.runner import runtestprotocol

from tools.stolen_time import STOLEN, processor_times, stolen_share

TRIES: Final = 3
UNDECIDED: Final = "UNDECIDED: "
"""Beginning of the reason of an undecided test."""


def undecided(why: str) -> NoReturn:
    """End a test whose own measurements, repeated, show that the machine stalled."""
    pytest.skip(UNDECIDED + why)


def run_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run a test, again if it fails while processors are taken away."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    for trial in range(1, TRIES + 1):
        before = processor_times()
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        share = stolen_share(before, processor_times())
        failed = [report for report in reports if report.failed]
        if not failed or share < STOLEN:
            break
        if trial < TRIES:
            time.sleep(trial)
            item._initrequest()  # type: ignore[attr-defined]  # fixtures are made again
            continue
        for report in failed:
            last_line = str(report.longrepr).strip().rsplit("\n", 1)[-1]
            why = f"{UNDECIDED}failed {TRIES} times while {100 * share:.0f} % of the processors' time was taken away"
            report.outcome = "skipped"
            report.longrepr = (str(item.path), item.location[1] or 0, f"{why}: {last_line}")
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def reason_of(report: pytest.TestReport) -> str:
    """Why a test was skipped or is undecided; empty for other reports."""
    if not report.skipped or not isinstance(report.longrepr, tuple):
        return ""
    return str(report.longrepr[2]).removeprefix("Skipped: ")
