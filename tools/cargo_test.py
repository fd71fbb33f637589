"""Run all Rust tests in one command; tests of QUIC, whose library takes long to compile, only if all are requested.

Tests of ccgym-net and of the crates in ``crates/optional`` send real packets in real time. If only such tests fail,
and the machine lost processor time during the run, the failed tests are repeated, at most twice. If they still fail,
the command fails.

Rust has no skipped tests: a test that cannot run here prints `SKIPPED: why` and passes. At the end, all such tests are
listed. ``tests/may_skip.txt`` contains the tests that may do so: any other skipped test makes the command fail.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from console import ROOT
from stolen_time import STOLEN, processor_times, stolen_share

TRIES: Final = 3
MAY_SKIP: Final = ROOT / "tests" / "may_skip.txt"
"""File with the names of the tests that may be skipped, and comments."""
QUIC: Final = ("ccgym-quic", "ccgym-quinn")
REAL_TIME: Final = {"ccgym-net", "ccgym-mahimahi", "ccgym-tunnel", *QUIC}
"""Packages with tests that depend on the machine's load."""


@dataclass(frozen=True)
class Outcome:
    """Result of one ``cargo test``."""

    status: int
    packages: frozenset[str] = frozenset()
    """Packages with a failed target."""
    tests: tuple[str, ...] = ()
    """Names of the failed tests; empty if they do not explain all failures, for example if a program crashes."""
    skipped: tuple[str, ...] = ()
    """Skipped tests, with their reasons."""


class Reader:
    """Separates the output of passing tests, which ``--show-output`` prints in sections, from all other lines."""

    def __init__(self) -> None:
        self.skipped: list[str] = []
        self._inside = False
        self._test = ""

    def is_shown(self, line: str) -> bool:
        """Return whether to show the next line."""
        if line == "successes:":
            self._inside = True
        elif line == "failures:" or line.startswith("test result:"):
            self._inside = False
        elif self._inside and (name := re.match(r"^---- (\S+) stdout ----$", line)):
            self._test = name[1]
        elif self._inside and (reason := re.match(r"^SKIPPED\b[^:]*: (.*)", line)):
            self.skipped.append(f"{self._test}: {reason[1]}")
        return not self._inside


def outcome_of(status: int, lines: Sequence[str], skipped: Sequence[str] = ()) -> Outcome:
    """Return the result from the output of ``cargo test --no-fail-fast``."""
    targets = [found[1] for line in lines if (found := re.match(r"^    `-p (\S+) ", line))]
    tests = [found[1] for line in lines if (found := re.match(r"^test (\S+) \.\.\. FAILED$", line))]
    counts = [int(found[1]) for line in lines if (found := re.match(r"^test result: FAILED\. .* (\d+) failed;", line))]
    if len(counts) != len(targets) or sum(counts) != len(tests):
        tests = []
    return Outcome(status, frozenset(targets), tuple(sorted(set(tests))), tuple(skipped))


def cargo_test(tests: Sequence[str]) -> Outcome:
    """Run the tests with these names, or all tests, and print their output."""
    command = ["cargo", "test", "--release", "--workspace", "--locked", "--no-fail-fast"]
    for package in ("ccgym-bench", "ccgym-protocol", *(() if os.environ.get("CCGYM_TEST_ALL") else QUIC)):
        command += ["--exclude", package]
    command += ["--tests", "--", "--show-output"]
    if tests:
        command += ["--exact", *tests]
    reader = Reader()
    # Twice as many parallel tests as processors: tests with real packets mostly wait.
    environment = {"RUST_TEST_THREADS": str(2 * (os.cpu_count() or 1)), **os.environ}
    with subprocess.Popen(
        command, env=environment, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            if reader.is_shown(line.rstrip("\n")):
                print(line, end="", flush=True)
                lines.append(line.rstrip("\n"))
    return outcome_of(process.returncode, lines, reader.skipped)


def main() -> int:
    """Run all tests, and return the exit status of the last try."""
    tests: Sequence[str] = ()
    skipped: dict[str, None] = {}
    for trial in range(1, TRIES + 1):
        before = processor_times()
        outcome = cargo_test(tests)
        share = stolen_share(before, processor_times())
        skipped |= dict.fromkeys(outcome.skipped)
        if outcome.status == 0:
            break
        tests = outcome.tests
        if not tests or not outcome.packages <= REAL_TIME or share < STOLEN or trial == TRIES:
            break
        print(
            f"== THIS MACHINE IS BUSY: {100 * share:.0f} % of its processors' time was taken away; "
            f"repeating: {' '.join(tests)}",
            flush=True,
        )
        time.sleep(trial)
    if skipped:
        print(f"\n!!! NOT RUN: {len(skipped)} Rust tests", *skipped, sep="\n", flush=True)
    listed = MAY_SKIP.read_text(encoding="utf-8").splitlines()
    unlisted = [one for one in skipped if one.split(": ")[0] not in listed]
    if unlisted:
        print(f"\n!!! FAILED: not in {MAY_SKIP.relative_to(ROOT)}:", *unlisted, sep="\n", flush=True)
    return outcome.status or int(bool(unlisted))


if __name__ == "__main__":
    sys.exit(main())
