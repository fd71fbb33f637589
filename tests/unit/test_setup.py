"""Setting up a checkout: what is found, what is said, and that nothing is done twice."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.unit.scripts import TOOLS, load, program

machine = load("machine")
console = load("console")
setup = load("setup")


def run_setup(**variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(TOOLS / "setup.sh"), "--profile", "demo"], env={"PATH": "/usr/bin:/bin", **variables},
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip


# --- Python --------------------------------------------------------------------------------------------------------


def test_a_python_that_is_too_old_is_refused_with_version_and_remedy(tmp_path: Path) -> None:
    old = program(tmp_path / "python3.8", '[ "$1" = --version ] && echo "Python 3.8.20" && exit 0\nexit 1')
    done = run_setup(PYTHON=str(old))
    assert done.returncode == 2
    assert "is Python 3.8.20; ccgym needs Python 3.10 or newer" in done.stderr
    assert "make demo PYTHON=python3.12" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_python_that_does_not_exist_is_named() -> None:
    done = run_setup(PYTHON="python3.99")
    assert done.returncode == 2
    assert "PYTHON=python3.99: there is no such program" in done.stderr


# --- Rust ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("cargo 1.85.0 (d73d2caf9 2024-12-31)", (1, 85, 0)),
        ("rustc-1.89", (1, 89, 0)),
        ("rust-1.85", (1, 85, 0)),
        ("1.96.0+dfsg1-1~deb12u2", (1, 96, 0)),
        ("error: no default toolchain", ()),
    ],
)
def test_versions_are_read(text: str, expected: tuple[int, ...]) -> None:
    assert machine.version_of(text) == expected


def test_the_minimum_compiler_is_the_workspace_s(checkout: Path) -> None:
    assert machine.minimum_rust(checkout) == (1, 85, 0)


def fake_toolchain(folder: Path, version: str, status: int = 0) -> Path:
    for name in ("cargo", "rustc"):
        program(folder / name, f'echo "{name} {version} (fake)"\nexit {status}')
    return folder


@pytest.fixture
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine whose only toolchain folder is the one given here."""
    folder = tmp_path / "bin"
    monkeypatch.setattr(machine, "toolchain_directories", lambda root: [(folder, {})])
    return folder


def test_a_new_enough_toolchain_is_taken(bare_machine: Path, checkout: Path) -> None:
    fake_toolchain(bare_machine, "1.85.0")
    found, _ = machine.find_toolchain(checkout)
    assert found is not None
    assert (found.bin, found.version) == (bare_machine, (1, 85, 0))


def test_an_old_toolchain_is_reported_and_not_taken(bare_machine: Path, checkout: Path) -> None:
    fake_toolchain(bare_machine, "1.63.0")
    found, too_old = machine.find_toolchain(checkout)
    assert found is None
    assert too_old is not None
    assert too_old.version == (1, 63, 0)


def test_a_proxy_without_a_toolchain_is_not_taken(bare_machine: Path, checkout: Path) -> None:
    fake_toolchain(bare_machine, "1.90.0", status=1)
    assert machine.find_toolchain(checkout) == (None, None)


def test_the_browsers_compiler_is_chosen_where_the_distribution_s_is_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = {"rustc": (1, 63, 0), "cargo": (0, 66, 0), "rustc-web": (1, 96, 0), "cargo-web": (1, 96, 0)}
    monkeypatch.setattr(machine, "apt_candidate", lambda package: shelf.get(package, ()))
    monkeypatch.setattr(machine, "apt_names", lambda prefix: [])
    assert machine.rust_packages((1, 85, 0)) == ["rustc-web", "cargo-web"]


def test_ubuntu_s_newest_versioned_compiler_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    shelf = {"rustc": (1, 75, 0), "cargo": (1, 75, 0), "rustfmt-1.89": (1, 89, 0)}
    for version in ("1.80", "1.85", "1.89"):
        shelf |= {f"rustc-{version}": machine.version_of(version), f"cargo-{version}": machine.version_of(version)}
    monkeypatch.setattr(machine, "apt_candidate", lambda package: shelf.get(package, ()))
    monkeypatch.setattr(machine, "apt_names", lambda prefix: ["rustc-1.80", "rustc-1.89", "rustc-1.85"])
    assert machine.rust_packages((1, 85, 0)) == ["rustc-1.89", "cargo-1.89", "rustfmt-1.89"]


# --- Distribution packages -----------------------------------------------------------------------------------------


def test_an_ordinary_user_is_given_one_command(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine, "is_root", lambda: False)
    monkeypatch.setattr(machine, "has_apt", lambda: True)
    monkeypatch.setattr(machine, "can_link", lambda: False)
    monkeypatch.setattr(machine, "can_make_venv", lambda: False)
    monkeypatch.setattr(machine, "venv_package", lambda: "python3-venv")
    monkeypatch.setattr(machine, "rust_packages", lambda minimum: ["rustc", "cargo"])
    with pytest.raises(console.SetupError) as caught:
        machine.ensure_system(need_venv=True, log=tmp_path / "log")
    message = str(caught.value)
    assert message.endswith("sudo apt-get install python3-venv gcc libc6-dev rustc cargo")
    assert "no C compiler that can link a program" in message


def test_root_gets_what_is_missing_installed(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    commands: list[list[str]] = []
    monkeypatch.setattr(machine, "is_root", lambda: True)
    monkeypatch.setattr(machine, "has_apt", lambda: True)
    monkeypatch.setattr(machine, "can_link", lambda: False)
    monkeypatch.setattr(machine, "can_make_venv", lambda: True)
    monkeypatch.setattr(machine, "rust_packages", lambda minimum: ["rustc", "cargo"])
    monkeypatch.setattr(machine, "run", lambda command, what, **rest: commands.append(list(command)))
    machine.ensure_system(need_venv=True, log=tmp_path / "log")
    assert commands[0] == ["apt-get", "update"]
    assert commands[1][-4:] == ["gcc", "libc6-dev", "rustc", "cargo"]


def test_a_missing_compiler_alone_is_left_to_the_fetcher(
    bare_machine: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(machine, "is_root", lambda: False)
    monkeypatch.setattr(machine, "can_link", lambda: True)
    monkeypatch.setattr(machine, "run", lambda *rest, **more: pytest.fail("nothing may be installed"))
    machine.ensure_system(need_venv=False, log=tmp_path / "log")
    assert machine.find_toolchain(TOOLS.parent) == (None, None)


# --- Doing nothing twice -------------------------------------------------------------------------------------------


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A checkout in small."""
    for name in (
        "pyproject.toml",
        "constraints.txt",
        "Cargo.toml",
        "Cargo.lock",
        "crates/a/src/lib.rs",
        "schemes/b.rs",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    (tmp_path / "ccgym").mkdir()
    (tmp_path / "ccgym" / "_core.abi3.so").touch()
    (tmp_path / ".venv").mkdir()
    return tmp_path


def all_done(tree: Path) -> object:
    state = setup.State.load(tree / ".venv" / "ccgym-setup.json")
    for step, stamp in setup.wanted(tree, "demo", "3.11").items():
        state.record(step, stamp)
    return setup.State.load(tree / ".venv" / "ccgym-setup.json")


def test_a_fresh_tree_needs_every_step(tree: Path) -> None:
    state = setup.State.load(tree / ".venv" / "ccgym-setup.json")
    assert setup.outstanding(tree, state, "demo", "3.11") == ["packages:demo", "native", "metadata", "smoke"]


def test_a_tree_that_is_set_up_needs_nothing(tree: Path) -> None:
    assert setup.outstanding(tree, all_done(tree), "demo", "3.11") == []


@pytest.mark.parametrize(
    ("changed", "steps"),
    [
        ("crates/a/src/lib.rs", ["native", "smoke"]),
        ("schemes/b.rs", ["native", "smoke"]),
        ("Cargo.lock", ["native", "smoke"]),
        ("constraints.txt", ["packages:demo"]),
        ("pyproject.toml", ["packages:demo", "metadata", "smoke"]),
    ],
)
def test_a_change_repeats_only_what_depends_on_it(tree: Path, changed: str, steps: list[str]) -> None:
    state = all_done(tree)
    (tree / changed).write_text("changed", encoding="utf-8")
    assert setup.outstanding(tree, state, "demo", "3.11") == steps


def test_touching_a_file_without_changing_it_repeats_nothing(tree: Path) -> None:
    state = all_done(tree)
    (tree / "schemes" / "b.rs").write_text("schemes/b.rs", encoding="utf-8")
    assert setup.outstanding(tree, state, "demo", "3.11") == []


def test_a_lost_module_is_built_again(tree: Path) -> None:
    state = all_done(tree)
    (tree / "ccgym" / "_core.abi3.so").unlink()
    assert setup.outstanding(tree, state, "demo", "3.11") == ["native"]


def test_another_profile_adds_only_what_it_has_beyond(tree: Path) -> None:
    assert setup.outstanding(tree, all_done(tree), "train", "3.11") == ["packages:train"]
    assert setup.outstanding(tree, all_done(tree), "dev", "3.11") == ["packages:dev", "quic"]


def test_a_lost_program_is_built_again(tree: Path) -> None:
    state = all_done(tree)
    for step, stamp in setup.wanted(tree, "dev", "3.11").items():
        state.record(step, stamp)
    assert setup.outstanding(tree, state, "dev", "3.11") == ["quic"]
    (tree / ".venv" / "bin").mkdir()
    (tree / ".venv" / "bin" / setup.QUIC).touch()
    assert setup.outstanding(tree, state, "dev", "3.11") == []


def test_a_damaged_state_file_means_that_nothing_was_done(tree: Path) -> None:
    (tree / ".venv" / "ccgym-setup.json").write_text("{", encoding="utf-8")
    assert setup.State.load(tree / ".venv" / "ccgym-setup.json").done == {}


# --- Failing -------------------------------------------------------------------------------------------------------


def test_a_failing_program_is_shown_with_its_last_words(tmp_path: Path) -> None:
    with pytest.raises(console.SetupError, match=r"(?s)compiling failed with status 3.*undefined symbol: foo"):
        console.run(["sh", "-c", "echo undefined symbol: foo; exit 3"], "compiling", log=tmp_path / "log")
    assert "undefined symbol: foo" in (tmp_path / "log").read_text(encoding="utf-8")


def test_a_program_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(console.SetupError, match="linking: cannot run no-such-linker"):
        console.run(["no-such-linker"], "linking", log=tmp_path / "log")


# --- The Makefile --------------------------------------------------------------------------------------------------


def make(checkout: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # As from a shell, also when the tests themselves run under make.
    env = {
        name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS", "JOBS")
    }
    return subprocess.run(["make", *arguments], cwd=checkout, env=env, capture_output=True, text=True, timeout=30)


def test_make_alone_lists_every_target(checkout: Path) -> None:
    done = make(checkout)
    assert done.returncode == 0
    phony = next(x for x in (checkout / "Makefile").read_text(encoding="utf-8").splitlines() if x.startswith(".PHONY:"))
    listed = {line.split()[1] for line in done.stdout.splitlines()}
    assert listed == set(phony.removeprefix(".PHONY:").split())


@pytest.mark.parametrize(
    ("target", "profile", "command"),
    [
        ("demo", "demo", "evaluate.py --trace 77.72mbps"),
        ("train", "train", "train.py --config aurora.yaml"),
        ("test", "dev", "tools/check.sh test"),
        ("test-long", "dev", "tools/check.sh test-long"),
        ("lint", "dev", "tools/check.sh lint"),
        ("bench", "dev", "tools/bench.py"),
    ],
)
def test_every_target_sets_up_first(checkout: Path, target: str, profile: str, command: str) -> None:
    lines = make(checkout, "--dry-run", target).stdout.splitlines()
    assert f"tools/setup.sh --profile {profile}" in lines[0]
    assert any(command in line for line in lines[1:])


def test_a_check_that_fails_fails_the_whole(tmp_path: Path, checkout: Path) -> None:
    (tmp_path / "tools").mkdir()
    script = tmp_path / "tools" / "check.sh"
    script.write_text((checkout / "tools" / "check.sh").read_text(encoding="utf-8"), encoding="utf-8")
    for name in ("ruff", "lint-imports", "cargo", "python"):
        program(tmp_path / "bin" / name, "echo fine $*")
    program(tmp_path / "bin" / "mypy", "echo units.py:3: error; exit 1")
    done = subprocess.run(
        ["bash", str(script), "test"], env={"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}, capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "units.py:3: error" in done.stdout
    assert "fine tools/cargo_test.py" in done.stdout
    assert "== pytest" in done.stdout, "the other parts run all the same"
    assert done.stdout.splitlines()[-1] == "test: FAILED: mypy"
