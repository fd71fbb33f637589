"""All Rust tests in one command; those of QUIC, whose library takes long to compile, where all tests are wanted.

Tests of ccgym-net and of the crates in ``crates/optional`` send real packets in real time. Where only such tests fail,
and the machine lost processors meanwhile, those that failed are repeated, at most twice. If they still fail, so does
the whole.

A Rust test cannot be marked as not run: one that finds that it cannot run here prints `SKIPPED: why` and passes. At the
end all of these are named. Those that may do so are listed in ``tests/may_skip.txt``: any other one fails the whole.
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
"""Names of the tests that may find that they cannot run, and comments."""
QUIC: Final = ("ccgym-quic", "ccgym-quinn")
REAL_TIME: Final = {"ccgym-net", "ccgym-mahimahi", "ccgym-tunnel", *QUIC}
"""Packages whose tests depend on the machine's time."""


@dataclass(frozen=True)
class Outcome:
    """What came out of one ``cargo test``."""

    status: int
    packages: frozenset[str] = frozenset()
    """Those with a target that failed."""
    tests: tuple[str, ...] = ()
    """Names of the tests that failed; empty where they do not explain all that failed, as when a program dies."""
    skipped: tuple[str, ...] = ()
    """Tests that found that they cannot run here, with their reasons."""


class Reader:
    """Tells what passing tests print, which is shown by ``--show-output`` in sections of its own, from all else."""

    def __init__(self) -> None:
        self.skipped: list[str] = []
        self._inside = False
        self._test = ""

    def is_shown(self, line: str) -> bool:
        """Whether the next line is text."""
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
    """Read what ``cargo test --no-fail-fast`` printed."""
    targets = [found[1] for line in lines if (found := re.match(r"^    `-p (\S+) ", line))]
    tests = [found[1] for line in lines if (found := re.match(r"^test (\S+) \.\.\. FAILED$", line))]
    counts = [int(found[1]) for line in lines if (found := re.match(r"^test result: FAILED\. .* (\d+) failed;", line))]
    if len(counts) != len(targets) or sum(counts) != len(tests):
        tests = []
    return Outcome(status, frozenset(targets), tuple(sorted(set(tests))), tuple(skipped))


def cargo_test(tests: Sequence[str]) -> Outcome:
    """Run the tests of these names, or all, and pass on what they print."""
    command = ["cargo", "test", "--release", "--workspace", "--locked", "--no-fail-fast"]
    for package in ("ccgym-bench", "ccgym-protocol", *(() if os.environ.get("CCGYM_TEST_ALL") else QUIC)):
        command += ["--exclude", package]
    command += ["--tests", "--", "--show-output"]
    if tests:
        command += ["--exact", *tests]
    reader = Reader()
    # Twice as many at once as processors: those that send real packets wait most of their time.
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
    """Run all; the exit status of the last try."""
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
