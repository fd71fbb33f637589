"""Set up a checkout: virtual environment, Python packages, Rust toolchain, native module, smoke test.

Called by ``tools/setup.sh`` (that is, by every target of the Makefile) with any Python >= 3.11; standard library only.
It finds outdated steps and does only these. It is silent and fast if no step is outdated.

State is in ``.venv/ccgym-setup.json`` (fingerprints of the inputs of each step) and ``.venv/ccgym.env`` (a shell
sources it to get the environment and the toolchain). ``.cache/setup.log`` contains the output of all programs.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import importlib.util
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from console import ROOT, SetupError, run, say
from machine import Toolchain, ensure_system, find_toolchain, minimum_rust

#: Extras of pyproject.toml that each kind of use needs in addition to the package's dependencies.
PROFILES: dict[str, tuple[str, ...]] = {
    "demo": ("report",),
    "train": ("report", "train"),
    "test": ("report", "train", "docs", "dev"),
    "dev": ("report", "ray", "train", "docs", "dev"),
    "wheel": ("wheel",),
}

#: Sources of the native module.
NATIVE_INPUTS = ("Cargo.toml", "Cargo.lock", "crates", "schemes")

#: The program of QUIC flows (crates/optional/quic-flows), for the profile "dev".
QUIC = "ccgym-quic"

#: Sources of the installed metadata (console script, version, data).
METADATA_INPUTS = ("pyproject.toml", "Cargo.toml")


# --- What was done before --------------------------------------------------------------------------------------------


def fingerprint(root: Path, inputs: Sequence[str], *extra: str) -> str:
    """Return a hash over files and folders (names and contents) and further texts."""
    digest = hashlib.sha256()
    for name in inputs:
        top = root / name
        files = sorted(p for p in top.rglob("*") if p.is_file()) if top.is_dir() else [top]
        for file in files:
            digest.update(str(file.relative_to(root)).encode() + b"\0")
            digest.update(file.read_bytes() if file.exists() else b"absent")
            digest.update(b"\0")
    for text in extra:
        digest.update(text.encode() + b"\0")
    return digest.hexdigest()


@dataclass
class State:
    """Fingerprints of finished steps, in the virtual environment, so that they are deleted with it."""

    path: Path
    done: dict[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path) -> State:
        """Read the fingerprints; a missing or damaged file means that no step is finished."""
        try:
            done = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            done = {}
        return cls(path, done if isinstance(done, dict) else {})

    def record(self, step: str, stamp: str) -> None:
        """Record that a step is finished."""
        self.done[step] = stamp
        scratch = self.path.with_suffix(".new")
        scratch.write_text(json.dumps(self.done, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        scratch.replace(self.path)


def wanted(root: Path, profile: str, interpreter: str) -> dict[str, str]:
    """Return the current fingerprint of each step's inputs."""
    packages = {f"packages:{profile}": fingerprint(root, ("pyproject.toml", "constraints.txt"), profile, interpreter)}
    if profile == "wheel":  # tools/wheel.py compiles for each target
        return packages
    native = fingerprint(root, NATIVE_INPUTS)
    metadata = fingerprint(root, METADATA_INPUTS, interpreter)
    steps = {
        **packages,
        "native": native,
        "metadata": metadata,
        "smoke": native + metadata,
    }
    # QUIC flows are only for development: a library and its TLS must be compiled.
    return {**steps, "quic": native} if profile == "dev" else steps


def outstanding(root: Path, state: State, profile: str, interpreter: str) -> list[str]:
    """Return the outdated steps, in order; empty if all steps are up to date."""
    steps = [step for step, stamp in wanted(root, profile, interpreter).items() if state.done.get(step) != stamp]
    if profile != "wheel" and "native" not in steps and not any((root / "ccgym").glob("_core*.so")):
        steps.append("native")
    if profile == "dev" and "quic" not in steps and not (root / ".venv" / "bin" / QUIC).exists():
        steps.append("quic")
    return steps


# --- The steps -------------------------------------------------------------------------------------------------------


@dataclass
class Setup:
    """One run of the set-up: its options and places."""

    root: Path
    profile: str
    venv: Path
    log: Path

    @property
    def python(self) -> str:
        """The virtual environment's interpreter."""
        return str(self.venv / "bin" / "python")

    def interpreter_version(self) -> str:
        """Version such as ``3.11`` of a working virtual environment, otherwise empty."""
        if Path(sys.prefix).resolve() == self.venv.resolve() and importlib.util.find_spec("pip"):
            return f"{sys.version_info[0]}.{sys.version_info[1]}"
        try:
            answer = subprocess.run(
                [self.python, "-c", "import sys, pip; print('%d.%d' % sys.version_info[:2])"],
                capture_output=True, text=True, timeout=60,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return ""
        return answer.stdout.strip() if answer.returncode == 0 else ""

    def make_venv(self) -> None:
        """Make a new virtual environment."""
        base = getattr(sys, "_base_executable", sys.executable)  # not the interpreter in the environment to be deleted
        say(f"Python {platform.python_version()} ({base}): making {self.venv.relative_to(self.root)}")
        run([base, "-m", "venv", "--clear", str(self.venv)], "making the virtual environment", log=self.log)

    def requirements(self) -> list[str]:
        """Return the packages of the profile, from pyproject.toml."""
        project = tomllib.loads((self.root / "pyproject.toml").read_text(encoding="utf-8"))
        extras = project["project"]["optional-dependencies"]
        return [
            *project["build-system"]["requires"],
            *project["project"]["dependencies"],
            *(requirement for extra in PROFILES[self.profile] for requirement in extras[extra]),
        ]

    def pip(self, what: str, *arguments: str, env: dict[str, str] | None = None) -> None:
        """Install packages with pinned versions into the virtual environment."""
        options = ("--disable-pip-version-check", "--prefer-binary", "--progress-bar=off", "--no-compile")
        env = {**(env or os.environ), "PIP_CONSTRAINT": str(self.root / "constraints.txt"), "PIP_NO_INPUT": "1"}
        run([self.python, "-m", "pip", "install", *options, *arguments], what, log=self.log, env=env)

    def toolchain(self) -> Toolchain:
        """Return a Rust toolchain that is new enough; download it if there is none."""
        found, too_old = find_toolchain(self.root)
        need = ".".join(str(part) for part in minimum_rust(self.root)[:2])
        if found is None:
            had = f"only Rust {'.'.join(map(str, too_old.version))} in {too_old.bin}" if too_old else "no Rust compiler"
            say(f"{had}, Rust {need} or newer is needed: downloading a toolchain into .cache/rust")
            try:
                self.pip("installing the toolchain fetcher", "puccinialin")
                run(
                    [self.python, "-m", "puccinialin", "--location", str(self.root / ".cache" / "rust")],
                    "fetching a Rust toolchain", log=self.log,
                    env={**os.environ, "RUSTUP_INIT_SKIP_PATH_CHECK": "yes"},
                )  # fmt: skip
            except SetupError as error:
                raise SetupError(
                    f"{error}\n\nThere is {had} and the download failed. Install Rust {need} or newer manually:\n"
                    "    Debian 13, Ubuntu 25.10 or newer:   sudo apt-get install cargo\n"
                    "    Debian 12:                          sudo apt-get install cargo-web rustc-web\n"
                    "    Ubuntu 22.04, 24.04:                sudo apt-get install cargo-1.85 rustc-1.85\n"
                    "    elsewhere:                          rustup (see the Rust project's own pages)"
                ) from error
            found, _ = find_toolchain(self.root)
            if found is None:
                raise SetupError(f"the fetched toolchain does not run; remove .cache/rust, or see {self.log}")
        return found

    def environment(self, toolchain: Toolchain) -> dict[str, str]:
        """Return the environment variables for the project's programs."""
        path = [str(self.venv / "bin")]
        if shutil.which("cargo") is None or Path(str(shutil.which("cargo"))).parent != toolchain.bin:
            path.append(str(toolchain.bin))
        own = {"VIRTUAL_ENV": str(self.venv), "PYO3_PYTHON": self.python}
        return {**own, **toolchain.env, "PATH": os.pathsep.join(path)}

    def inside(self, toolchain: Toolchain) -> dict[str, str]:
        """Return this process's variables, with the variables of the environment."""
        own = self.environment(toolchain)
        return {**os.environ, **own, "PATH": f"{own['PATH']}{os.pathsep}{os.environ.get('PATH', '')}"}

    def write_environment(self, toolchain: Toolchain) -> None:
        """Write the file that the Makefile's recipes source."""
        lines = ["# Written by tools/setup.py; source it to work by hand:  . .venv/ccgym.env"]
        for name, value in self.environment(toolchain).items():
            quoted = shlex.quote(value)
            lines.append(f'export {name}={quoted}:"$PATH"' if name == "PATH" else f"export {name}={quoted}")
        (self.venv / "ccgym.env").write_text("\n".join(lines) + "\n", encoding="utf-8")

    def add_rust_tools(self, toolchain: Toolchain) -> None:
        """Install the formatter and the linter, needed for development, if the toolchain lacks them."""
        missing = [t for t in ("cargo-fmt", "cargo-clippy") if not (toolchain.bin / t).exists()]
        rustup = toolchain.bin / "rustup"
        if missing and os.access(rustup, os.X_OK):
            with contextlib.suppress(SetupError):
                run([str(rustup), "component", "add", "rustfmt", "clippy"], "adding rustfmt and clippy", log=self.log,
                    env={**os.environ, **toolchain.env})  # fmt: skip

    def build(self, toolchain: Toolchain) -> None:
        """Compile the native module in release mode and copy it into the package of the checkout."""
        maturin = str(self.venv / "bin" / "maturin")
        run(
            [maturin, "develop", "--release", "--locked", "--skip-install"], "compiling the native module",
            log=self.log, env=self.inside(toolchain),
        )  # fmt: skip

    def build_quic(self, toolchain: Toolchain) -> None:
        """Compile the program of QUIC flows and copy it to the environment's programs."""
        run(
            ["cargo", "build", "--release", "--locked", "-p", QUIC], f"compiling {QUIC}",
            log=self.log, env=self.inside(toolchain),
        )  # fmt: skip
        target = Path(os.environ.get("CARGO_TARGET_DIR", self.root / "target"))
        scratch = self.venv / "bin" / f"{QUIC}.new"
        shutil.copy2(target / "release" / QUIC, scratch)
        scratch.replace(self.venv / "bin" / QUIC)

    def install_metadata(self, toolchain: Toolchain) -> None:
        """Install the checkout itself: console script, metadata, and a pointer to the sources."""
        name = "ccgym"
        version = re.search(r'^version\s*=\s*"([^"]+)"', (self.root / "Cargo.toml").read_text("utf-8"), re.MULTILINE)
        say(f"installing {name} {version.group(1) if version else ''} in place")
        self.pip("installing the checkout", "--no-deps", "--no-build-isolation", "--editable", str(self.root),
                 env=self.inside(toolchain))  # fmt: skip

    def smoke(self) -> None:
        """Import the package, simulate one second, print the result."""
        answer = subprocess.run(
            [self.python, str(self.root / "tools" / "smoke.py")], cwd=self.root, capture_output=True, text=True,
            timeout=120,
        )  # fmt: skip
        if answer.returncode != 0:
            raise SetupError(f"the smoke test failed:\n{answer.stdout}{answer.stderr}")
        say(answer.stdout.strip())


def set_up(setup: Setup, *, chosen: bool) -> None:
    """Update the checkout for the profile."""
    version = setup.interpreter_version()
    own = f"{sys.version_info[0]}.{sys.version_info[1]}"
    state = State.load(setup.venv / "ccgym-setup.json")
    reason = ""
    if version and chosen and version != own:
        reason = f"the virtual environment has Python {version}, but Python {own} was requested"
    elif version and state.done.get("root", str(setup.root)) != str(setup.root):
        reason = f"the checkout was moved here from {state.done['root']}"
    stale = bool(reason)
    steps = [] if stale or not version else outstanding(setup.root, state, setup.profile, version)
    if version and not stale and not steps and (setup.venv / "ccgym.env").exists():
        return
    setup.log.parent.mkdir(parents=True, exist_ok=True)
    setup.log.write_text("", encoding="utf-8")
    if stale:
        say(f"{reason}: starting again")
    ensure_system(need_venv=stale or not version, log=setup.log)
    if stale or not version:
        setup.make_venv()
        version = setup.interpreter_version()
        state = State.load(setup.venv / "ccgym-setup.json")
    state.record("root", str(setup.root))
    steps = outstanding(setup.root, state, setup.profile, version)
    stamps = wanted(setup.root, setup.profile, version)

    toolchain = setup.toolchain()
    setup.write_environment(toolchain)

    packages = f"packages:{setup.profile}"
    requirements = setup.requirements() if packages in steps else []
    if requirements and "native" in steps and not (setup.venv / "bin" / "maturin").exists():
        setup.pip("installing the build tool", *(r for r in requirements if r.startswith("maturin")))
    # Compiling uses the processors and installing uses the network: run both in parallel.
    with ThreadPoolExecutor() as pool:
        work = {}
        if packages in steps:
            say(f"installing {len(requirements)} Python packages and their dependencies, with pinned versions")
            what = f"installing the Python packages ({setup.profile})"
            work[packages] = pool.submit(setup.pip, what, *requirements)
        if "native" in steps:
            shown = ".".join(map(str, toolchain.version))
            say(f"compiling the native module in release mode (Rust {shown}, {toolchain.bin})")
            work["native"] = pool.submit(setup.build, toolchain)
        for step, task in work.items():
            if task.exception() is None:
                state.record(step, stamps[step])
                say(f"done: {step}")
    if failures := [error for task in work.values() if (error := task.exception()) is not None]:
        raise SetupError("\n".join(map(str, failures)))
    if "metadata" in steps:
        setup.install_metadata(toolchain)
        state.record("metadata", stamps["metadata"])
    if "quic" in steps:
        say(f"compiling {QUIC}, for flows quic:NAME")
        setup.build_quic(toolchain)
        state.record("quic", stamps["quic"])
    if setup.profile in ("test", "dev") and packages in steps:
        setup.add_rust_tools(toolchain)
    if "smoke" in stamps:
        setup.smoke()
        state.record("smoke", stamps["smoke"])
    say(f"ready for '{setup.profile}'")


@contextlib.contextmanager
def alone(root: Path) -> Iterator[None]:
    """Allow only one setup at a time in a checkout; a second setup waits for the first."""
    folder = root / ".cache"
    folder.mkdir(exist_ok=True)
    with (folder / "setup.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            say("another setup is running in this checkout: waiting for it")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the set-up, and return the exit status."""
    parser = argparse.ArgumentParser(prog="tools/setup.sh", description="Set up a checkout of ccgym.")
    parser.add_argument("--profile", choices=sorted(PROFILES), default="dev", help="what to install for")
    parser.add_argument("--chosen", action="store_true", help=argparse.SUPPRESS)  # the user named the interpreter
    options = parser.parse_args(arguments)
    setup = Setup(ROOT, options.profile, ROOT / ".venv", ROOT / ".cache" / "setup.log")
    try:
        with alone(ROOT):
            set_up(setup, chosen=options.chosen)
    except SetupError as error:
        print(f"setup: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nsetup: interrupted; run it again to continue where it stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
