"""What set-up and the checks do to people: nothing twice, nothing unasked, and no failure becomes anything else."""

from __future__ import annotations

import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.real_time import TRIES

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))  # a folder of scripts and no package
bench, cargo_test, console, docs, machine, setup, wheel = map(
    importlib.import_module, ("bench", "cargo_test", "console", "docs", "machine", "setup", "wheel")
)
sys.path.remove(str(TOOLS))


def program(path: Path, script: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


# --- Set-up --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("script", ['[ "$1" = --version ] && echo "Python 3.8.20" && exit 0\nexit 1', ""])
def test_a_python_that_cannot_serve_is_refused(tmp_path: Path, script: str) -> None:
    python = program(tmp_path / "python", script) if script else tmp_path / "not-there"
    done = subprocess.run(
        [str(TOOLS / "setup.sh"), "--profile", "demo"], env={"PATH": "/usr/bin:/bin", "PYTHON": str(python)},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (done.returncode, "Traceback" in done.stderr) == (2, False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cargo 1.85.0 (d73d2caf9 2024-12-31)", (1, 85, 0)),
        ("rustc-1.89", (1, 89, 0)),
        ("1.96.0+dfsg1-1~deb12u2", (1, 96, 0)),
        ("error: no default toolchain", ()),
    ],
)
def test_versions_are_read(text: str, expected: tuple[int, ...]) -> None:
    assert machine.version_of(text) == expected


@pytest.fixture
def toolchain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only folder that may have a Rust toolchain."""
    monkeypatch.setattr(machine, "toolchain_directories", lambda root: [(tmp_path / "bin", {})])
    return tmp_path / "bin"


@pytest.mark.parametrize(
    ("version", "status", "found"), [("1.85.0", 0, True), ("1.63.0", 0, False), ("1.90", 1, False)]
)
def test_a_toolchain_must_run_and_be_new_enough(toolchain: Path, version: str, status: int, found: bool) -> None:
    for name in ("cargo", "rustc"):
        program(toolchain / name, f"echo {name} {version}; exit {status}")
    assert (machine.find_toolchain(TOOLS.parent)[0] is not None) == found


def test_the_distribution_s_compiler_that_is_new_enough_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = {"rustc": (1, 63, 0), "cargo": (0, 66, 0), "rustc-web": (1, 96, 0), "cargo-web": (1, 96, 0)}
    monkeypatch.setattr(machine, "apt_candidate", lambda package: shelf.get(package, ()))
    monkeypatch.setattr(machine, "apt_names", lambda prefix: [])
    assert machine.rust_packages((1, 85, 0)) == ["rustc-web", "cargo-web"]


@pytest.mark.parametrize("root", [True, False])
def test_only_root_gets_packages_installed(
    toolchain: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, root: bool
) -> None:
    commands: list[list[str]] = []
    for name, value in {"is_root": root, "has_apt": True, "can_link": False, "can_make_venv": True}.items():
        monkeypatch.setattr(machine, name, lambda value=value: value)
    monkeypatch.setattr(machine, "rust_packages", lambda minimum: ["rustc", "cargo"])
    monkeypatch.setattr(machine, "run", lambda command, what, **rest: commands.append(list(command)))
    needed = ["gcc", "libc6-dev", "rustc", "cargo"]
    if root:
        machine.ensure_system(need_venv=True, log=tmp_path / "log")
        assert commands[-1][-4:] == needed
    else:
        with pytest.raises(console.SetupError) as caught:
            machine.ensure_system(need_venv=True, log=tmp_path / "log")
        assert str(caught.value).endswith(" ".join(["apt-get", "install", *needed]))
        assert commands == []


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout in small."""
    for name in ("pyproject.toml", "constraints.txt", "Cargo.toml", "Cargo.lock", "crates/a/lib.rs", "schemes/b.rs"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    for name in ("ccgym/_core.abi3.so", f".venv/bin/{setup.QUIC}"):
        (tmp_path / name).parent.mkdir(parents=True)
        (tmp_path / name).touch()
    return tmp_path


def outstanding(tree: Path, profile: str = "demo", *, done: str = "") -> list[str]:
    state = setup.State.load(tree / ".venv" / "ccgym-setup.json")
    for step, stamp in setup.wanted(tree, done, "3.11").items() if done else ():
        state.record(step, stamp)
    steps: list[str] = setup.outstanding(tree, state, profile, "3.11")
    return steps


def test_a_fresh_or_damaged_tree_needs_every_step(tree: Path) -> None:
    every = ["packages:demo", "native", "metadata", "smoke"]
    assert outstanding(tree) == every
    (tree / ".venv" / "ccgym-setup.json").write_text("{", encoding="utf-8")
    assert outstanding(tree) == every


@pytest.mark.parametrize(
    ("changed", "steps"),
    [
        ("", []),
        ("crates/a/lib.rs", ["native", "smoke"]),
        ("Cargo.lock", ["native", "smoke"]),
        ("constraints.txt", ["packages:demo"]),
        ("pyproject.toml", ["packages:demo", "metadata", "smoke"]),
    ],
)
def test_a_change_repeats_only_what_depends_on_it(tree: Path, changed: str, steps: list[str]) -> None:
    assert outstanding(tree, done="demo") == []
    if changed:
        (tree / changed).write_text("changed", encoding="utf-8")
    assert outstanding(tree) == steps


def test_what_was_lost_is_built_again(tree: Path) -> None:
    (tree / ".venv" / "bin" / setup.QUIC).unlink()
    (tree / "ccgym" / "_core.abi3.so").unlink()
    assert outstanding(tree, "dev", done="dev") == ["native", "quic"]


def test_for_wheels_nothing_is_built_here(tree: Path) -> None:
    (tree / "ccgym" / "_core.abi3.so").unlink()
    assert outstanding(tree, "wheel") == ["packages:wheel"]


def test_a_wheel_needs_the_standard_library_of_its_target(tmp_path: Path) -> None:
    rustc = tmp_path / "rustc"
    rustc.write_text(f"#!/bin/sh\necho {tmp_path}/$4\n")
    rustc.chmod(0o755)
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "libstd-1.rlib").touch()
    toolchain = machine.Toolchain(tmp_path, (1, 85, 0))
    wheel.add_target(toolchain, "there")
    with pytest.raises(console.SetupError):
        wheel.add_target(toolchain, "x86_64-pc-windows-gnu")


@pytest.mark.parametrize("command", [["sh", "-c", "echo undefined symbol; exit 3"], ["no-such-linker"]])
def test_a_program_that_fails_ends_set_up(tmp_path: Path, command: list[str]) -> None:
    with pytest.raises(console.SetupError):
        console.run(command, "linking", log=tmp_path / "log")


# --- Checks --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["demo", "train", "test", "test-all", "lint", "bench", "site", "wheel"])
def test_every_target_sets_up_first(target: str) -> None:
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS", "JOBS"))}
    done = subprocess.run(["make", "-n", target], cwd=TOOLS.parent, env=env, capture_output=True, text=True)
    assert "tools/setup.sh --profile" in done.stdout.splitlines()[0]


@pytest.mark.parametrize(("what", "fails"), [("test", "python"), ("lint", "mypy"), ("lint", "")])
def test_a_part_that_fails_fails_the_whole(tmp_path: Path, what: str, fails: str) -> None:
    """And the other parts run all the same."""
    script = tmp_path / "tools" / "check.sh"
    script.parent.mkdir()
    script.write_text((TOOLS / "check.sh").read_text(encoding="utf-8"), encoding="utf-8")
    for name in ("ruff", "lint-imports", "cargo", "codespell", "mkdocs", "python", "mypy", "stubtest"):
        program(tmp_path / "bin" / name, f"echo {name} $* >> {tmp_path / 'ran'}; exit {int(name == fails)}")
    done = subprocess.run(["bash", str(script), what], env={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"})
    assert done.returncode == int(bool(fails))
    last = {"test": "python -m pytest tests/real", "lint": "cargo clippy"}[what]
    assert (tmp_path / "ran").read_text().splitlines()[-1].startswith(last)


CARGO = """
echo "$*" >> {calls}
echo 'test waiting ... ok'
printf '\nsuccesses:\n\n---- {skipped} stdout ----\nSKIPPED: not root\n\nsuccesses:\n    waiting\n\n'
echo 'test result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.01s'
[ $(wc -l < {calls}) -gt {failures} ] && exit 0
echo 'test paths::are_held ... FAILED'
echo 'test result: FAILED. 81 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 9.25s'
echo 'error: 1 target failed:'
echo '    `-p {package} --lib`'
exit 101
"""


@pytest.mark.parametrize(
    ("percent", "failures", "package", "skipped", "status", "tries"),
    [
        (0, 0, "ccgym-net", "tcp::cubic_fills_a_path", 0, 1),
        (40, 1, "ccgym-net", "tcp::cubic_fills_a_path", 0, 2),
        (40, 3, "ccgym-net", "tcp::cubic_fills_a_path", 101, 3),
        (0, 1, "ccgym-net", "tcp::cubic_fills_a_path", 101, 1),
        (40, 1, "ccgym-core", "tcp::cubic_fills_a_path", 101, 1),
        (0, 0, "ccgym-net", "tcp::nobody_listed_this", 1, 1),
    ],
)
def test_only_real_packets_on_a_busy_machine_are_tried_again(
    tmp_path: Path, percent: int, failures: int, package: str, skipped: str, status: int, tries: int
) -> None:
    calls = tmp_path / "calls"
    program(tmp_path / "bin" / "cargo", CARGO.format(calls=calls, failures=failures, package=package, skipped=skipped))
    code = (
        f"import itertools, sys; sys.path.insert(0, {str(TOOLS)!r}); import cargo_test\n"
        f"times = ((100 * n, {percent} * n) for n in itertools.count())\n"
        "cargo_test.processor_times = lambda: next(times)\n"
        "cargo_test.time.sleep = lambda s: None\n"
        "sys.exit(cargo_test.main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60,
        env={**os.environ, "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"},
    )  # fmt: skip
    assert (done.returncode, len(calls.read_text().splitlines())) == (status, tries)
    assert f"{skipped}: not root" in done.stdout.splitlines(), "what could not run is named"


def test_only_tests_that_explain_the_failure_are_tried_again() -> None:
    named, count = "test held ... FAILED", "test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered"
    target = "    `-p ccgym-net --test net`"
    assert cargo_test.outcome_of(101, [named, count, target]).tests == ("held",)
    assert cargo_test.outcome_of(101, [named, count, target, "    `-p ccgym-net --lib`"]).tests == (), "one died"
    assert cargo_test.outcome_of(101, ["error: could not compile"]).tests == ()


CONFTEST = """
import tests.real_time as real_time
ticks = iter(range(0, 10**6, 100))
def times():
    now = next(ticks)
    return now, now * {percent} // 100
real_time.processor_times = times
real_time.time.sleep = lambda s: None
def pytest_configure(config):
    config.addinivalue_line("markers", "real: on the network")
from tests.conftest import pytest_report_teststatus, pytest_terminal_summary
def pytest_runtest_protocol(item, nextitem):
    return real_time.run_protocol(item, nextitem)
"""


@pytest.mark.parametrize(
    ("percent", "needed", "status", "undecided"), [(20, TRIES, 0, 0), (20, TRIES + 1, 0, 1), (0, 2, 1, 0)]
)
def test_a_real_test_that_fails_is_undecided_only_where_processors_were_taken_away(
    tmp_path: Path, percent: int, needed: int, status: int, undecided: int
) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST.format(percent=percent))
    inner = f"tries = []\ndef test_it():\n    tries.append(1)\n    assert len(tries) >= {needed}\n"
    (tmp_path / "test_inner.py").write_text(inner)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path)],
        cwd=tmp_path, capture_output=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(TOOLS.parent), "CCGYM_UNDECIDED": str(tmp_path / "tally")},
    )  # fmt: skip
    tally = tmp_path / "tally"
    assert (done.returncode, len(tally.read_text().splitlines()) if tally.exists() else 0) == (status, undecided)


def test_benchmarks_count_their_lines_and_words_that_choose_nothing_are_a_mistake(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    line = json.dumps({"name": "link", "value": 1, "unit": "s"})
    passed = bench.passed_on([sys.executable, "-c", f"print({line!r}); raise SystemExit(3)"])
    assert (passed, capsys.readouterr().out) == ((3, 1), f"{line}\n")
    monkeypatch.setattr(bench, "LOG", tmp_path / "log")
    monkeypatch.setattr(bench, "run", lambda *arguments, **options: None)
    monkeypatch.setattr(bench, "passed_on", lambda command: (0, 0))
    monkeypatch.setattr(bench, "HOT_PATHS", ())
    assert bench.main(["nothing"]) == 2


# --- Pages ---------------------------------------------------------------------------------------------------------


def test_each_table_that_cannot_be_shown_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    tables = {"good": lambda: ["| a |"], "bad": lambda: [str(1 / 0)], "unused": list}
    monkeypatch.setattr(docs, "BLOCKS", {"docs/page.md": tables})
    names = ("good", "bad", "unknown")
    text = docs.filled("docs/page.md", "\n".join(f"<!-- table: {name} -->" for name in names))
    assert text.splitlines()[0] == "| a |"
    assert len(caplog.records) == 3
    for name in ("bad", "unknown", "unused"):
        assert any(name in record.getMessage() for record in caplog.records)


@pytest.mark.parametrize(
    ("sections", "block", "warnings"),
    [
        (docs.TEMPLATE, "parameters", 0),
        (docs.TEMPLATE[::-1], "parameters", 1),
        (docs.TEMPLATE[:-1], "parameters", 1),
        (docs.TEMPLATE, "portrait", 1),
        ([title for title in docs.TEMPLATE if title != "Parameters"], "portrait", 0),
    ],
)
def test_pages_of_schemes_have_the_sections_of_the_template(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, sections: list[str], block: str, warnings: int
) -> None:
    monkeypatch.setattr(docs, "BLOCKS", {"docs/page.md": {"scheme": list, block: list}})
    markers = [f"<!-- table: {name} -->" for name in ("scheme", block)]
    docs.filled("docs/page.md", "\n".join(markers + [f"## {title}" for title in sections]))
    assert len(caplog.records) == warnings


@pytest.mark.parametrize(
    ("link", "there"),
    [
        ("../../README.md#install", "../index.md#install"),
        ("../../configs/aurora.yaml", "../tree/configs/aurora.yaml"),
        ("/docs/schemes/reno.md", "../schemes/reno.md"),
        ("experiments.md", "experiments.md"),
        ("no-such-page.md", "no-such-page.md"),
    ],
)
def test_links_of_pages_lead_to_the_same_files_in_the_site(link: str, there: str) -> None:
    assert docs.linked(docs.DOCS / "guides" / "evaluate.md", f"[x]({link})") == f"[x]({there})"
