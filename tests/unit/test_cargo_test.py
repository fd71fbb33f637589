"""Rust tests with real packets are tried again on a busy machine, and nothing else is."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.unit.scripts import TOOLS, load, program

CARGO = """
echo "$*" >> {calls}
tries=$(wc -l < {calls})
echo 'test waiting::is_fine ... ok'
printf '\nsuccesses:\n\n---- waiting::is_fine stdout ----\nSKIPPED: not root\nmore\n\n'
printf 'successes:\n    waiting::is_fine\n\n'
echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s'
[ $tries -gt {failures} ] && exit 0
echo 'test paths::are_held ... FAILED'
echo 'test result: FAILED. 81 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 9.25s'
echo 'test bytes_are_counted ... FAILED'
echo 'test result: FAILED. 12 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 9.25s'
echo 'error: 2 targets failed:'
echo '    `-p {package} --lib`'
echo '    `-p ccgym-net --test udp`'
exit 101
"""
cargo_test = load("cargo_test")

FIRST = "test --workspace --locked --no-fail-fast -- --show-output"
AGAIN = f"{FIRST} --exact bytes_are_counted paths::are_held"


def run(folder: Path, percent: int, failures: int, package: str = "ccgym-net") -> tuple[int, str, list[str]]:
    """Exit status, output and calls of cargo, on a machine of which so much is taken away."""
    calls = folder / "calls"
    program(folder / "bin" / "cargo", CARGO.format(calls=calls, failures=failures, package=package))
    code = (
        f"import itertools, sys; sys.path.insert(0, {str(TOOLS)!r}); import cargo_test\n"
        f"times = ((100 * n, {percent} * n) for n in itertools.count())\n"
        "cargo_test.processor_times = lambda: next(times)\n"
        "cargo_test.time.sleep = lambda s: None\n"
        "sys.exit(cargo_test.main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
        env={**os.environ, "PATH": f"{folder / 'bin'}:/usr/bin:/bin"},
    )  # fmt: skip
    assert done.stderr == ""
    return done.returncode, done.stdout, calls.read_text().splitlines()


@pytest.mark.parametrize(
    ("percent", "failures", "status", "tries"),
    [(0, 0, 0, 1), (40, 0, 0, 1), (40, 1, 0, 2), (1, 2, 0, 3), (40, 3, 101, 3), (0, 1, 101, 1)],
)
def test_what_failed_is_tried_again_where_the_machine_is_busy(
    tmp_path: Path, percent: int, failures: int, status: int, tries: int
) -> None:
    returned, said, calls = run(tmp_path, percent, failures)
    assert (returned, calls) == (status, [FIRST, *[AGAIN] * (tries - 1)])
    assert said.count("THIS MACHINE IS BUSY") == tries - 1
    assert "test waiting::is_fine ... ok" in said
    assert said.endswith("!!! NOT RUN: 1 Rust tests\nwaiting::is_fine: not root\n"), "loudly, and once"
    assert "more" not in said, "what passing tests print otherwise is not shown"


def test_what_does_not_depend_on_time_fails_at_once(tmp_path: Path) -> None:
    returned, _, calls = run(tmp_path, 40, 1, package="ccgym-core")
    assert (returned, calls) == (101, [FIRST])


def test_what_does_not_compile_fails_at_once(tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    run(tmp_path, 40, 0)
    program(tmp_path / "bin" / "cargo", f"echo $* >> {calls}; echo 'error: could not compile'; exit 101")
    calls.unlink()
    done = subprocess.run(
        [sys.executable, str(TOOLS / "cargo_test.py")], capture_output=True, text=True, timeout=60,
        env={**os.environ, "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"},
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (101, "error: could not compile\n")
    assert calls.read_text().splitlines() == [FIRST]


NAMED = "test held ... FAILED"
ONE = "test result: FAILED. 12 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 1.00s"
UDP = "    `-p ccgym-net --test udp`"


@pytest.mark.parametrize(
    ("lines", "tests"),
    [
        ([NAMED, ONE, UDP], ("held",)),
        # A name that is torn apart by what the test prints.
        (["test held ... noise", "FAILED", ONE, UDP], ()),
        # A second program that died without a word; an example in the documentation.
        ([NAMED, ONE, UDP, "    `-p ccgym-net --test tcp`"], ()),
        ([NAMED, ONE, "test src/lib.rs - send (line 3) ... FAILED", ONE, UDP, "    `-p ccgym-net --doc`"], ()),
    ],
)
def test_nothing_is_tried_again_that_the_names_do_not_explain(lines: list[str], tests: tuple[str, ...]) -> None:
    assert cargo_test.outcome_of(101, lines).tests == tests
