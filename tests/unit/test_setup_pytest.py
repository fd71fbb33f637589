"""The test suite's own manners: long tests wait to be asked, and tests that could not run are named."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SUITE = """
import pytest

@pytest.mark.long
def test_minutes(): pass

@pytest.mark.real("no-such-program-anywhere")
def test_network(): raise AssertionError("must not run")

@pytest.mark.real()
def test_without_needs(): pass

def test_elsewhere(): pytest.skip("needs another machine")

def test_otherwise(): pytest.skip("is covered by another test")
"""


@pytest.fixture
def suite(tmp_path: Path, checkout: Path) -> Path:
    (tmp_path / "conftest.py").write_text((checkout / "tests" / "conftest.py").read_text("utf-8"), encoding="utf-8")
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    long: x\n    real: x\n", encoding="utf-8")
    (tmp_path / "test_it.py").write_text(SUITE, encoding="utf-8")
    return tmp_path


def pytest_in(folder: Path, *arguments: str) -> str:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_long_tests_wait_to_be_asked(suite: Path) -> None:
    assert "1 passed, 4 skipped" in pytest_in(suite)
    assert "2 passed, 3 skipped" in pytest_in(suite, "--run-long")
    assert "1 passed, 3 skipped, 1 deselected" in pytest_in(suite, "-m", "not long")


def test_real_tests_that_could_not_run_are_named_with_the_remedy(suite: Path) -> None:
    output = pytest_in(suite)
    assert "NOT RUN: 2 tests" in output
    assert "test_it.py::test_elsewhere: needs another machine" in output
    assert "test_it.py::test_network: needs the program no-such-program-anywhere: install it" in output
