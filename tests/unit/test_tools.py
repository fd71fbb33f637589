"""What set-up does to people: nothing twice, nothing unasked, and no failure becomes anything else; tables of pages."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[2] / "tools"
sys.path.insert(0, str(TOOLS))  # a folder of scripts and no package
console, docs, machine, setup = map(importlib.import_module, ("console", "docs", "machine", "setup"))
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


@pytest.mark.parametrize("command", [["sh", "-c", "echo undefined symbol; exit 3"], ["no-such-linker"]])
def test_a_program_that_fails_ends_set_up(tmp_path: Path, command: list[str]) -> None:
    with pytest.raises(console.SetupError):
        console.run(command, "linking", log=tmp_path / "log")


# --- Pages ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A page that names a good table, a broken one and one that does not exist; it does not show a fourth."""
    for name, value in {"ROOT": tmp_path, "DOCS": tmp_path / "docs", "BUILT": tmp_path / "docs" / "_build"}.items():
        monkeypatch.setattr(docs, name, value)
    tables = {
        "good": lambda: ["| [x](other.md) | [y](../README.md#top) |"],
        "bad": lambda: [str(1 / 0)],
        "unused": list,
    }
    monkeypatch.setattr(docs, "BLOCKS", {"docs/page.md": tables})
    written = tmp_path / "docs" / "page.md"
    (tmp_path / "docs" / "img").mkdir(parents=True)
    for file in (tmp_path / "README.md", tmp_path / "docs" / "other.md"):
        file.touch()
    names = ("good", "bad", "unknown")
    written.write_text("\n".join(f"<!-- table: {name} -->" for name in names), encoding="utf-8")
    return written


def test_each_table_that_cannot_be_shown_is_told(page: Path) -> None:
    wrong = docs.build(docs.BUILT)
    assert len(wrong) == 3
    for name in ("bad", "unknown", "unused"):
        assert any(name in line for line in wrong)


def test_links_of_built_pages_lead_to_the_same_files(page: Path) -> None:
    docs.build(docs.BUILT)
    built = docs.BUILT / "page.md"
    assert "](other.md)" in built.read_text(encoding="utf-8")
    assert "](../../README.md#top)" in built.read_text(encoding="utf-8")
    assert "table:" in page.read_text(encoding="utf-8")  # what is in git stays
