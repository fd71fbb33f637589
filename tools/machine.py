"""Find the tools of this machine: a Rust toolchain, a linker, the distribution's packages."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from console import ROOT, SetupError, run, say


def version_of(text: str) -> tuple[int, ...]:
    """Return the first dotted number in a text, as a tuple: ``cargo 1.85.0 (…)`` -> ``(1, 85, 0)``."""
    found = re.search(r"(\d+)\.(\d+)(?:\.(\d+))?", text)
    return tuple(int(part) for part in found.groups(default="0")) if found else ()


def minimum_rust(root: Path) -> tuple[int, ...]:
    """Return the oldest compiler that can build the workspace (``rust-version`` in Cargo.toml)."""
    found = re.search(r'^rust-version\s*=\s*"([^"]+)"', (root / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE)
    if not found:
        raise SetupError("Cargo.toml names no rust-version")
    return version_of(found.group(1))


@dataclass(frozen=True)
class Toolchain:
    """A directory with ``cargo`` and ``rustc``, and the environment variables that they need."""

    bin: Path
    version: tuple[int, ...]
    env: dict[str, str] = field(default_factory=dict)


def probe_toolchain(directory: Path, env: dict[str, str] | None = None) -> Toolchain | None:
    """Return the toolchain in a directory, if it exists and runs (a rustup proxy without a toolchain does not)."""
    env = env or {}
    versions = []
    for program in ("cargo", "rustc"):
        if not os.access(directory / program, os.X_OK):
            return None
        path = f"{directory}{os.pathsep}{os.environ.get('PATH', '')}"
        try:
            answer = subprocess.run(
                [str(directory / program), "--version"], env={**os.environ, "PATH": path, **env}, cwd=ROOT,
                stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return None
        if answer.returncode != 0 or not version_of(answer.stdout):
            return None
        versions.append(version_of(answer.stdout))
    return Toolchain(directory, min(versions), env)


def toolchain_directories(root: Path) -> list[tuple[Path, dict[str, str]]]:
    """Return folders for a toolchain, best first: the path, Cargo's folders, versioned packages, ccgym's bootstrap."""
    places = [Path(entry) for entry in os.environ.get("PATH", "").split(os.pathsep) if entry]
    if "CARGO_HOME" in os.environ:
        places.append(Path(os.environ["CARGO_HOME"]) / "bin")
    places.append(Path.home() / ".cargo" / "bin")
    places += sorted(Path("/usr/lib").glob("rust-*/bin"), key=lambda p: version_of(p.parent.name), reverse=True)
    own = root / ".cache" / "rust"
    return [(place, {}) for place in dict.fromkeys(places)] + [
        (own / "cargo" / "bin", {"CARGO_HOME": str(own / "cargo"), "RUSTUP_HOME": str(own / "rustup")})
    ]


def find_toolchain(root: Path) -> tuple[Toolchain | None, Toolchain | None]:
    """Return the first toolchain that is new enough, and the newest older one (for the message)."""
    too_old: Toolchain | None = None
    for directory, env in toolchain_directories(root):
        found = probe_toolchain(directory, env)
        if found is None:
            continue
        if found.version >= minimum_rust(root):
            return found, too_old
        if too_old is None or found.version > too_old.version:
            too_old = found
    return None, too_old


def can_link() -> bool:
    """Return whether a C program can be linked, as Rust needs: a compiler alone lacks the C library's start files."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return False
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch) / "probe.c"
        source.write_text("#include <stdlib.h>\nint main(void) { return EXIT_SUCCESS; }\n", encoding="utf-8")
        done = subprocess.run([compiler, str(source), "-o", str(Path(scratch) / "probe")], capture_output=True)
    return done.returncode == 0


def is_root() -> bool:
    """Return whether distribution packages may be installed without asking the user."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


def has_apt() -> bool:
    """Return whether this is Debian or a system derived from it."""
    return shutil.which("apt-get") is not None


def apt_candidate(package: str) -> tuple[int, ...]:
    """Return the installable version of a distribution package; empty if there is none."""
    answer = subprocess.run(
        ["apt-cache", "policy", package], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}
    )
    found = re.search(r"Candidate: (?:\d+:)?(\S+)", answer.stdout)
    return version_of(found.group(1)) if found and found.group(1) != "(none)" else ()


def apt_names(prefix: str) -> list[str]:
    """Return the names of the distribution packages with a prefix."""
    return subprocess.run(["apt-cache", "pkgnames", prefix], capture_output=True, text=True).stdout.split()


def rust_packages(minimum: tuple[int, ...]) -> list[str]:
    """Return a new enough compiler package: Debian's, its newer one for browsers, or Ubuntu's versioned ones."""
    kinds = [["rustc", "cargo", "rustfmt", "rust-clippy"], ["rustc-web", "cargo-web", "rustfmt-web", "rust-web-clippy"]]
    for name in sorted(apt_names("rustc-1."), key=version_of, reverse=True):
        if re.fullmatch(r"rustc-1\.\d+", name):
            version = name.removeprefix("rustc-")
            kinds.append([name, f"cargo-{version}", f"rustfmt-{version}", f"rust-{version}-clippy"])
    for compiler, cargo, *tools in kinds:
        if apt_candidate(compiler) >= minimum and apt_candidate(cargo):
            return [compiler, cargo, *(tool for tool in tools if apt_candidate(tool))]
    return []


def venv_package() -> str:
    """Return the distribution package that lets this interpreter make virtual environments."""
    own = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    default = Path("/usr/bin/python3")
    is_default = default.exists() and default.resolve().name == own
    return "python3-venv" if is_default else f"{own}-venv"


def can_make_venv() -> bool:
    """Return whether this interpreter has venv and ensurepip (separate packages in Debian)."""
    return all(importlib.util.find_spec(module) is not None for module in ("venv", "ensurepip"))


def install_packages(packages: Sequence[str], log: Path) -> None:
    """Install distribution packages as root."""
    say(f"installing distribution packages: {' '.join(packages)}")
    env = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    run(["apt-get", "install", "-y", "--no-install-recommends", *packages], "apt-get install", log=log, env=env)


def remedy(packages: Sequence[str]) -> str:
    """Return the command that installs missing packages, for a user who is not root."""
    if has_apt():
        return f"Run this once, then repeat your command:\n    sudo apt-get install {' '.join(packages)}"
    return (
        "Install with your system's package manager, then repeat your command: a C compiler with the C library's "
        f"headers, Python's venv module, and Rust {'.'.join(map(str, minimum_rust(ROOT)[:2]))} or newer"
    )


def ensure_system(*, need_venv: bool, log: Path) -> None:
    """Install the missing distribution packages as root; otherwise raise an error with one command for all.

    If only a Rust compiler is missing, this is no error: it can be downloaded without root.
    """
    missing: list[str] = []
    reasons: list[str] = []
    if need_venv and not can_make_venv():
        missing.append(venv_package())
        reasons.append(f"Python {platform.python_version()} ({sys.executable}) cannot make virtual environments")
    if not can_link():
        missing += ["gcc", "libc6-dev"]
        reasons.append("no C compiler that can link a program was found")
    no_rust = find_toolchain(ROOT)[0] is None
    if not missing and not no_rust:
        return
    if is_root() and has_apt():
        say("distribution packages are missing: refreshing the package lists")
        with contextlib.suppress(SetupError):  # offline, or a source is down: existing lists may be enough
            run(["apt-get", "update"], "apt-get update", log=log)
        packages = missing + (rust_packages(minimum_rust(ROOT)) if no_rust else [])
        if not Path("/etc/ssl/certs/ca-certificates.crt").exists():
            packages.append("ca-certificates")  # cargo and pip fetch over TLS
        if packages:
            install_packages(packages, log)
        return
    if missing:
        rust = rust_packages(minimum_rust(ROOT)) if no_rust and has_apt() else []
        raise SetupError(f"{'; '.join(reasons)}.\n{remedy([*missing, *rust])}")
