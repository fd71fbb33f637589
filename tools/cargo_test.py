"""All Rust tests in one command: with a selection of packages cargo would build every dependency anew.

Tests of ccgym-net send real packets in real time. Where only such tests fail, and the machine lost processors
meanwhile, those that failed are tried again. If the last try fails, so does the whole; pytest counts a test as not run
then, since its tests of real paths hold whole runs against expected ones (tests/busy_machine.py).
"""

from __future__ import annotations

import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from console import ROOT
from stolen_time import STOLEN, processor_times, stolen_share

TRIES: Final = 5
REAL_TIME: Final = {"ccgym-net"}
"""Packages whose tests depend on the machine's time."""


@dataclass(frozen=True)
class Outcome:
    """What came out of one ``cargo test``."""

    status: int
    packages: frozenset[str] = frozenset()
    """Those with a target that failed."""
    tests: tuple[str, ...] = ()
    """Names of the tests that failed; empty where they do not explain all that failed, as when a program dies."""


def outcome_of(status: int, lines: Sequence[str]) -> Outcome:
    """Read what ``cargo test --no-fail-fast`` printed."""
    targets = [found[1] for line in lines if (found := re.match(r"^    `-p (\S+) ", line))]
    tests = [found[1] for line in lines if (found := re.match(r"^test (\S+) \.\.\. FAILED$", line))]
    counts = [int(found[1]) for line in lines if (found := re.match(r"^test result: FAILED\. .* (\d+) failed;", line))]
    if len(counts) != len(targets) or sum(counts) != len(tests):
        tests = []
    return Outcome(status, frozenset(targets), tuple(sorted(set(tests))))


def cargo_test(tests: Sequence[str]) -> Outcome:
    """Run the tests of these names, or all, and pass on what they print."""
    command = ["cargo", "test", "--workspace", "--locked", "--no-fail-fast"]
    if tests:
        command += ["--", "--exact", *tests]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip("\n"))
    return outcome_of(process.returncode, lines)


def main() -> int:
    """Run all; the exit status of the last try."""
    tests: Sequence[str] = ()
    for trial in range(1, TRIES + 1):
        before = processor_times()
        outcome = cargo_test(tests)
        share = stolen_share(before, processor_times())
        if outcome.status == 0:
            return 0
        tests = outcome.tests
        if not tests or not outcome.packages <= REAL_TIME or share < STOLEN or trial == TRIES:
            break
        print(
            f"== THIS MACHINE IS BUSY: {100 * share:.0f} % of its processors' time was taken away; "
            f"trying again: {' '.join(tests)}",
            flush=True,
        )
        time.sleep(trial)
    return outcome.status


if __name__ == "__main__":
    sys.exit(main())
