"""Tests on the machine's real network, on a machine whose processors others take away.

A virtual machine may lose its processors for tens of milliseconds, and no real path keeps a schedule then. What was
taken is counted (`steal` in `/proc/stat`), so that a failure in such a moment is told from one of ours: the test is
tried again, and in the end it counts as not run, loudly.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Final

import pytest
from _pytest.runner import runtestprotocol

TRIES: Final = 3
STOLEN: Final = 0.01
"""Share of the processors' time from which on a failure may be the machine's; where nothing else runs it is 0."""

NOT_RUN: Final[pytest.StashKey[list[tuple[str, str]]]] = pytest.StashKey()
"""Names and reasons of tests that say nothing about this machine."""


def processor_times() -> tuple[int, int]:
    """Time so far of all processors, and how much of it was stolen, in ticks; zeros where that is not known."""
    try:
        words = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:]
        return sum(map(int, words[:8])), int(words[7])
    except (OSError, ValueError, IndexError):
        return 0, 0


def stolen_share(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Part of the time between two readings that was stolen."""
    elapsed = after[0] - before[0]
    return (after[1] - before[1]) / elapsed if elapsed > 0 else 0.0


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
