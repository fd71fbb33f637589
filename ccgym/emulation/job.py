"""Jobs: the input of a process with real packets, as one JSON document (``crates/ccgym-net/src/job.rs``).

This module imports only fast modules: ``ccgym shell`` uses it in every start.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

from ccgym.errors import CcgymError, PlatformError


class Memory:
    """A file without a name: it exists while a process has its descriptor open."""

    def __init__(self, name: str, content: bytes = b"") -> None:
        require_linux()
        self.fd = os.memfd_create(f"ccgym-{name}")
        self._open = True
        with open(self.path, "wb") as file:
            file.write(content)

    @property
    def path(self) -> str:
        """Path to open the file, in this process and in a child, where the descriptor has the same number."""
        return f"/proc/self/fd/{self.fd}"

    def read(self) -> bytes:
        """Return the whole content; empty after the file was closed."""
        return Path(self.path).read_bytes() if self._open else b""

    def close(self) -> None:
        """Close the descriptor."""
        if self._open:
            self._open = False
            os.close(self.fd)


def require_linux() -> None:
    """Raise :class:`PlatformError` if this system does not support processes with real packets."""
    if sys.platform != "linux":
        raise PlatformError(
            "capability-missing",
            "real packets need Linux",
            where=f"this system, {sys.platform}",
            expected="Linux, or the simulator",
            hint="simulate it here (--backend sim), or run it on Linux, in a virtual machine or a container",
        )


def memory(kind: str, fields: Mapping[str, Any]) -> Memory:
    """Return a job as a file in memory.

    Args:
        kind: ``shell``, ``sender``, ``receiver``, ``run`` or ``doctor``.
        fields: Input of the job.
    """
    return Memory("job", json.dumps({kind: fields}).encode())


def command(job: Memory) -> list[str]:
    """Return the command line of a process for a job, with this ccgym. It must inherit the job's descriptor."""
    return [sys.executable, str(Path(__file__).resolve().with_name("__main__.py")), str(job.fd)]


def become(kind: str, fields: Mapping[str, Any]) -> NoReturn:
    """Replace this process by a process for a job, which has the exit status, the signals and the terminal.

    Raises:
        CcgymError: The process cannot be started.
    """
    job = memory(kind, fields)
    line = command(job)
    os.set_inheritable(job.fd, True)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(line[0], line, environment_at_start())
    except OSError as error:
        raise CcgymError(
            "program-unstartable", f"{line[0]} cannot be started: {error.strerror}", where=f"ccgym {kind}"
        ) from error


def environment_at_start() -> dict[bytes, bytes]:
    """Return the environment at the start of this process, without variables that Python and libraries add."""
    try:
        entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return dict(os.environb)
    return {name: value for name, equals, value in (entry.partition(b"=") for entry in entries) if equals}
