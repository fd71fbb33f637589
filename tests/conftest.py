"""What every test shares: hypothesis profiles, the long tests, and the tests on the machine's real network."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

import hypothesis
import pytest

from tests.real_time import UNDECIDED, reason_of, run_protocol

# Small networks learn faster in one thread, and several tests run at once. Set before torch is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Effort of the property tests: HYPOTHESIS_PROFILE, else `ci` where CI is set, else `dev`. `ci` is derandomized: a
# submission is judged by itself, and the random search goes on in `dev` and `long`.
hypothesis.settings.register_profile("dev", max_examples=50, deadline=None)
hypothesis.settings.register_profile("ci", max_examples=100, deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.register_profile("long", max_examples=2000, deadline=None, print_blob=True)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--run-long", action="store_true", help="run the tests that take minutes, too")


def pytest_configure(config: pytest.Config) -> None:
    chosen = os.environ.get("HYPOTHESIS_PROFILE") or (
        "long" if config.getoption("--run-long") else "ci" if os.environ.get("CI") else "dev"
    )
    hypothesis.settings.load_profile(chosen)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave the long tests out unless they were asked for, by --run-long or by an own -m expression."""
    if config.getoption("--run-long") or config.getoption("markexpr"):
        return
    for item in items:
        if item.get_closest_marker("long"):
            item.add_marker(pytest.mark.skip(reason="takes minutes: make test-all, or pytest --run-long"))


# --- Tests on the real network -----------------------------------------------------------------------------------


@cache
def _missing(need: str) -> str:
    """Why a need of a `real` test is not met here, with the remedy; empty when it is."""
    if need == "root":
        return "" if os.geteuid() == 0 else "needs root: run as root"
    if need == "tun":
        return (
            "" if os.access("/dev/net/tun", os.R_OK | os.W_OK) else "needs /dev/net/tun: modprobe tun, or run as root"
        )
    if need == "netns":
        command = ["unshare", "--net", "--", "true"]
        if os.geteuid() != 0:
            command[1:1] = ["--user", "--map-root-user"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=10)
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"needs network namespaces: unshare does not run ({error})"
        return "" if done.returncode == 0 else f"needs network namespaces: {done.stderr.strip()}"
    if need == "mahimahi":
        from ccgym.emulation import doctor

        found = doctor.obstacle("mahimahi", doctor.examine(measure=False))
        return "" if found is None else f"needs mahimahi: {found.name}: {found.found}"
    return "" if shutil.which(need) else f"needs the program {need}: install it"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a `real` test whose needs are not met."""
    for marker in item.iter_markers("real"):
        reasons = [reason for reason in map(_missing, marker.args) if reason]
        if reasons:
            pytest.skip("; ".join(reasons))


def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool | None:
    """Repeat a `real` test that fails while processors are taken away; see :mod:`tests.real_time`."""
    return run_protocol(item, nextitem) if item.get_closest_marker("real") else None


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    """Undecided tests are counted apart from skipped ones."""
    return ("undecided", "U", "UNDECIDED") if reason_of(report).startswith(UNDECIDED) else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name each test that could not run on this machine, or decided nothing: a green run without them says less."""
    skipped = [(report.nodeid, reason_of(report), report) for report in terminalreporter.stats.get("skipped", [])]
    not_run = [(name, why) for name, why, report in skipped if "real" in report.keywords or why.startswith("needs ")]
    undecided = [(report.nodeid, reason_of(report)) for report in terminalreporter.stats.get("undecided", [])]
    if not_run:
        terminalreporter.section(f"NOT RUN: {len(not_run)} tests", sep="!", yellow=True, bold=True)
    for name, reason in not_run:
        terminalreporter.write_line(f"{name}: {reason}", yellow=True)
    for name, reason in undecided:
        terminalreporter.write_line(f"{name}: {reason}", yellow=True, bold=True)
    # tools/check.sh bounds how many there may be in all its parts.
    if undecided and (tally := os.environ.get("CCGYM_UNDECIDED")):
        with Path(tally).open("a", encoding="utf-8") as file:
            file.writelines(f"{name}: {reason}\n" for name, reason in undecided)


# --- Places ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session", autouse=True)
def _logs_of_sb3(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Stable-Baselines3 makes a folder for each model without a logger: in pytest's folder, which pytest cleans."""
    os.environ["SB3_LOGDIR"] = str(tmp_path_factory.mktemp("sb3"))


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The root of the checkout."""
    return Path(__file__).resolve().parent.parent
