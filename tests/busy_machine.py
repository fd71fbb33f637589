"""Tests on the machine's real network, on a machine whose processors others take away.

What was taken is counted (tools/stolen_time.py), so that a failure in such a moment is told from one of ours: the test
is tried again, and in the end it counts as not run, loudly.
"""

from __future__ import annotations

import time
from typing import Final

import pytest
from _pytest.runner import runtestprotocol

from tools.stolen_time import STOLEN, processor_times, stolen_share

TRIES: Final = 3
NOT_RUN: Final[pytest.StashKey[list[tuple[str, str]]]] = pytest.StashKey()
"""Names and reasons of tests that say nothing about this machine."""


def run_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run a test that depends on time, again if it failed while the machine was not its own."""
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
            item._initrequest()  # type: ignore[attr-defined]  # fixtures are made anew
            continue
        why = f"THIS MACHINE IS BUSY: {100 * share:.0f} % of its processors' time was taken away; the test failed"
        item.config.stash[NOT_RUN].append((item.nodeid, why))
        for report in failed:
            said = str(report.longrepr).strip().rsplit("\n", 1)[-1]
            report.outcome = "skipped"
            report.longrepr = (str(item.path), item.location[1] or 0, f"Skipped: {why}: {said}")
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True
