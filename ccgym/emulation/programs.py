"""External programs: their form for a run process, and short calls of a program."""

from __future__ import annotations

import os
import selectors
import shlex
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Final, Literal, TypeAlias

from ccgym.errors import RealPathError

End: TypeAlias = Literal["sender", "receiver"]
"""The two ends of a flow."""

KEPT_BYTES: Final = 2**16
"""Maximum size of each kept output of a short call; the end of the output is kept."""
SHOWN_LINES: Final = 6
"""Number of last lines in an error message."""
LOOK_S: Final = 0.05
"""Seconds between checks of a program that has closed its output."""


@dataclass(frozen=True)
class ProgramWords:
    """Sender and receiver of a flow. The run replaces ``{port}``, ``{address}`` and ``{seconds}`` in their words."""

    listens: End
    """The end that starts first and listens."""
    sender: tuple[str, ...]
    receiver: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """Return the form that the run process reads (``crates/ccgym-net/src/program/mod.rs``)."""
        return {"listens": self.listens, "sender": list(self.sender), "receiver": list(self.receiver)}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> ProgramWords:
        """Return the programs from :meth:`document`."""
        return cls(document["listens"], tuple(document["sender"]), tuple(document["receiver"]))


@dataclass(frozen=True)
class Answer:
    """Result of a short call of a program."""

    status: int
    output: str
    """Standard output of the program."""
    errors: str
    """Standard error of the program."""

    def last_lines(self) -> str:
        """Return the last lines that the program wrote, on one line."""
        lines = [line.strip() for line in f"{self.output}\n{self.errors}".splitlines() if line.strip()]
        return " | ".join(lines[-SHOWN_LINES:])


def ask(words: Sequence[str], timeout_s: float, where: str, hint: str = "") -> Answer:
    """Run a program to its end, without input; if ``sudo`` was used, as the user who called it.

    Args:
        words: The program and its arguments.
        timeout_s: Maximum duration, seconds. Then it is killed, with all processes of its session.
        where: Description of the call, for errors.
        hint: What to do if it fails.

    Raises:
        RealPathError: The program cannot be started, or does not end in time.
    """
    try:
        process = subprocess.Popen(
            list(words),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            **_caller(),
        )
    except OSError as error:
        raise RealPathError(
            "program-unstartable",
            f"{words[0]} cannot be started: {error.strerror}",
            where=where,
            expected="a program that can be executed",
            hint=hint or "check that the interpreter in its first line is installed",
        ) from None
    assert process.stdout is not None
    assert process.stderr is not None
    with process.stdout, process.stderr:
        output, errors = _read(process, (process.stdout, process.stderr), time.monotonic() + timeout_s)
        late = process.poll() is None
        if late:
            os.killpg(process.pid, signal.SIGKILL)
        answer = Answer(process.wait(), output, errors)
    if late:
        said = answer.last_lines()
        raise RealPathError(
            "no-answer",
            f"`{shlex.join(words)}` did not end within {timeout_s:g} s" + (f"; last output: {said}" if said else ""),
            where=where,
            expected="an answer; it was killed",
            hint=hint or "run it manually to see what it waits for",
        )
    return answer


def _read(process: subprocess.Popen[bytes], pipes: tuple[IO[bytes], IO[bytes]], deadline: float) -> tuple[str, str]:
    """Return the end of a process's output, when it ends. Processes that it started may keep the pipes open."""
    kept = {pipe: b"" for pipe in pipes}
    with selectors.DefaultSelector() as selector:
        for pipe in pipes:
            selector.register(pipe, selectors.EVENT_READ)
        while time.monotonic() < deadline:
            ended = process.poll() is not None
            ready = selector.select(0 if ended else LOOK_S) if selector.get_map() else []
            for key, _ in ready:
                pipe = next(one for one in pipes if one is key.fileobj)
                data = os.read(key.fd, KEPT_BYTES)
                if not data:
                    selector.unregister(pipe)
                kept[pipe] = (kept[pipe] + data)[-KEPT_BYTES:]
            if ended and not ready:
                break
            if not ended and not selector.get_map():
                time.sleep(LOOK_S)
    output, errors = (kept[pipe].decode(errors="replace") for pipe in pipes)
    return output, errors


def _caller() -> dict[str, Any]:
    """Return the user who called ``sudo`` as arguments of ``Popen``; empty without ``sudo``."""
    uid, gid = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if os.geteuid() != 0 or not uid.isdecimal() or not gid.isdecimal() or uid == "0":
        return {}
    return {"user": int(uid), "group": int(gid), "extra_groups": []}
