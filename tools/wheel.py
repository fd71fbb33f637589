"""Build the wheels and the source distribution into ``dist/``; the command of ``make wheel``.

    python tools/wheel.py [TARGET...]       as in: python tools/wheel.py aarch64-unknown-linux-gnu

Targets have Rust's names. zig links for all targets on one machine, against glibc 2.17 on Linux, so that a wheel
runs on any Linux since 2014. Rust's standard library for a target is from rustup, or from Debian's packages.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from console import ROOT, SetupError, run, say
from machine import Toolchain, find_toolchain, has_apt, install_packages, is_root

LINUX = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
DIST = ROOT / "dist"
MATURIN = (sys.executable, "-m", "maturin")
LOG = ROOT / ".cache" / "wheel.log"

#: Debian's names of the processors.
DEBIAN = {"x86_64": "amd64", "aarch64": "arm64"}


def has_target(toolchain: Toolchain, target: str) -> bool:
    """Return whether Rust's standard library for a target is installed."""
    asked = [str(toolchain.bin / "rustc"), "--print", "target-libdir", "--target", target]
    folder = subprocess.run(asked, env={**os.environ, **toolchain.env}, capture_output=True, text=True).stdout.strip()
    return any(Path(folder).glob("libstd-*"))


def add_target(toolchain: Toolchain, target: str) -> None:
    """Install Rust's standard library for a target, if it is missing."""
    if has_target(toolchain, target):
        return
    say(f"adding Rust's standard library for {target}")
    if os.access(toolchain.bin / "rustup", os.X_OK):
        run([str(toolchain.bin / "rustup"), "target", "add", target], "rustup target add", log=LOG,
            env={**os.environ, **toolchain.env})  # fmt: skip
    elif is_root() and has_apt() and target in LINUX:
        processor = DEBIAN[target.partition("-")[0]]
        owner = subprocess.run(["dpkg", "-S", (toolchain.bin / "rustc").resolve()], capture_output=True, text=True)
        package = "libstd-rust-web-dev" if owner.stdout.startswith("rustc-web") else "libstd-rust-dev"
        run(["dpkg", "--add-architecture", processor], "dpkg --add-architecture", log=LOG)
        run(["apt-get", "update"], "apt-get update", log=LOG)
        install_packages([f"{package}:{processor}"], LOG)
    if not has_target(toolchain, target):
        raise SetupError(
            f"Rust's standard library for {target} is not installed. With rustup:\n    rustup target add {target}"
        )


def build(target: str) -> None:
    """Build the wheel for a target."""
    say(f"building the wheel for {target}")
    portable = ["--compatibility", "manylinux2014"] if target in LINUX else []
    run([*MATURIN, "build", "--release", "--locked", "--zig", "--target", target, *portable, "-o", str(DIST)],
        f"building for {target}", log=LOG)  # fmt: skip


def main() -> int:
    """Build all targets, and return the exit status."""
    LOG.parent.mkdir(exist_ok=True)
    LOG.write_text("", encoding="utf-8")
    try:
        toolchain, _ = find_toolchain(ROOT)
        if toolchain is None:
            raise SetupError("there is no Rust toolchain: `make wheel` installs one")
        start = time.monotonic()
        run([*MATURIN, "sdist", "-o", str(DIST)], "packing the sources", log=LOG)
        for target in sys.argv[1:] or LINUX:
            add_target(toolchain, target)
            build(target)
    except SetupError as error:
        print(f"wheel: {error}", file=sys.stderr)
        return 2
    for file in sorted(DIST.iterdir()):
        say(f"{file.stat().st_size / 1e6:6.1f} MB  {file.relative_to(ROOT)}")
    say(f"built in {time.monotonic() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
