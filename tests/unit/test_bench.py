"""``make bench``: what could not be measured is a failure, said once."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from ccgym.errors import RealPathError
from tests.unit.scripts import load

bench = load("bench")


@pytest.fixture
def real_path(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The benchmark of the emulated path, with mahimahi installed and runs that are none."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    spec = importlib.util.spec_from_file_location("bench_of_real_paths", checkout / "benches" / "real_path.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    flow = SimpleNamespace(goodput_mbps=2000.0)
    monkeypatch.setattr(module, "run", lambda path, where: SimpleNamespace(flows=[flow]))
    monkeypatch.setattr(module.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(module, "punctuality", lambda: None)
    monkeypatch.setattr(module, "endpoints", lambda: None)
    return module


def names(text: str) -> list[str]:
    return [json.loads(line)["name"] for line in text.splitlines()]


def test_a_path_that_fails_is_said_once_and_fails_the_benchmark(
    real_path: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert real_path.main() == 0
    measured = names(capsys.readouterr().out)
    assert len([name for name in measured if name.endswith("/mahimahi")]) == len(real_path.CHAINS)
    works = real_path.run

    def run(path: object, where: str) -> SimpleNamespace:
        if where == "mahimahi":
            raise RealPathError("run-failed", "no shell")
        return works(path, where)  # type: ignore[no-any-return]

    monkeypatch.setattr(real_path, "run", run)
    assert real_path.main() == 1
    shown = capsys.readouterr()
    assert names(shown.out) == [name for name in measured if not name.endswith("/mahimahi")]
    assert shown.err.count("no shell") == 1
    assert "FAILED: nothing was measured over mahimahi" in shown.err


def test_mahimahi_that_is_not_installed_is_no_failure(
    real_path: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(real_path.shutil, "which", lambda name: None)
    assert real_path.main() == 0
    shown = capsys.readouterr()
    measured = [f"path_gbps/{chain}" for chain in real_path.CHAINS] + ["tunnel_packets_per_second"]
    assert sorted(names(shown.out)) == sorted(measured)
    assert shown.err.count("mahimahi is not installed") == 1


def test_words_that_choose_nothing_are_a_mistake(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    results = {"nothing": 0, "link": 2}
    monkeypatch.setattr(bench, "LOG", tmp_path / "log")
    monkeypatch.setattr(bench, "run", lambda *arguments, **options: None)
    monkeypatch.setattr(bench, "with_onnx_runtime", dict)
    monkeypatch.setattr(bench, "passed_on", lambda command, env=None: (0, results[command[1]]))
    monkeypatch.setattr(bench, "HOT_PATHS", ())
    assert bench.main(["link"]) == 0
    assert bench.main(["nothing"]) == 2
    assert "no benchmark has a name that contains nothing" in capsys.readouterr().err


def test_lines_are_counted_and_the_status_comes_back() -> None:
    program = "print('one'); print('two'); raise SystemExit(3)"
    assert bench.passed_on([sys.executable, "-c", program]) == (3, 2)
