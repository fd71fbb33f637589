"""Jobs: what a process with real packets gets, as one JSON document (``crates/ccgym-net/src/job.rs``).

This module imports nothing that is slow: ``ccgym shell`` uses it in every start.
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
    """A file without a name: it exists while a process holds its descriptor."""

    def __init__(self, name: str, content: bytes = b"") -> None:
        require_linux()
        self.fd = os.memfd_create(f"ccgym-{name}")
        self._open = True
        with open(self.path, "wb") as file:
            file.write(content)

    @property
    def path(self) -> str:
        """How this process opens it; and a child, which has it under the same number."""
        return f"/proc/self/fd/{self.fd}"

    def read(self) -> bytes:
        """All its content; nothing after it was closed."""
        return Path(self.path).read_bytes() if self._open else b""

    def close(self) -> None:
        """Close its descriptor."""
        if self._open:
            self._open = False
            os.close(self.fd)


def require_linux() -> None:
    """Raise :class:`PlatformError` where there can be no process that meets real packets."""
    if sys.platform != "linux":
        raise PlatformError(
            "capability-missing",
            "real packets need Linux",
            where=f"this system, {sys.platform}",
            expected="Linux, or the simulator",
            hint="simulate it here (--backend sim), or run it on Linux, in a virtual machine or a container",
        )


def memory(kind: str, fields: Mapping[str, Any]) -> Memory:
    """A job in memory.

    Args:
        kind: ``shell``, ``sender``, ``receiver``, ``run`` or ``doctor``.
        fields: What that job gets.
    """
    return Memory("job", json.dumps({kind: fields}).encode())


def command(job: Memory) -> list[str]:
    """The command line of a process of this very ccgym that does a job. It must inherit the job's descriptor."""
    return [sys.executable, str(Path(__file__).resolve().with_name("__main__.py")), str(job.fd)]


def become(kind: str, fields: Mapping[str, Any]) -> NoReturn:
    """Replace this process by one that does a job, so that exit status, signals and terminal are the job's.

    Raises:
        CcgymError: It cannot be started.
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
    """The environment that this process was started with; Python and libraries add variables of their own."""
    try:
        entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return dict(os.environb)
    return {name: value for name, equals, value in (entry.partition(b"=") for entry in entries) if equals}
