"""External programs: as a run process takes them, and asking one a question."""

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
"""What is kept of each output of a program that is asked something: its end."""
SHOWN_LINES: Final = 6
"""Last lines that an error quotes."""
LOOK_S: Final = 0.05
"""How often a program is looked at that has closed its output, seconds."""


@dataclass(frozen=True)
class ProgramWords:
    """Sender and receiver of a flow. The run fills in ``{port}``, ``{address}`` and ``{seconds}`` in their words."""

    listens: End
    """The end that is started first, and listens."""
    sender: tuple[str, ...]
    receiver: tuple[str, ...]

    def document(self) -> dict[str, Any]:
        """As the run process reads it (``crates/ccgym-net/src/program/mod.rs``)."""
        return {"listens": self.listens, "sender": list(self.sender), "receiver": list(self.receiver)}

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> ProgramWords:
        """The inverse of :meth:`document`."""
        return cls(document["listens"], tuple(document["sender"]), tuple(document["receiver"]))


@dataclass(frozen=True)
class Answer:
    """How a program ended that was asked something."""

    status: int
    output: str
    """Its standard output."""
    errors: str
    """Its standard error."""

    def last_lines(self) -> str:
        """The last lines that it wrote, on one line."""
        lines = [line.strip() for line in f"{self.output}\n{self.errors}".splitlines() if line.strip()]
        return " | ".join(lines[-SHOWN_LINES:])


def ask(words: Sequence[str], timeout_s: float, where: str, hint: str = "") -> Answer:
    """Run a program to its end; as the user who called ``sudo``, if one did. It gets no input.

    Args:
        words: The program and its arguments.
        timeout_s: How long it may take, seconds. Then it is killed, with the others of its session.
        where: What it is, for errors.
        hint: What to do where it fails.

    Raises:
        RealPathError: It cannot be started, or does not end in time.
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
            hint=hint or "is the interpreter of its first line installed?",
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
            f"`{shlex.join(words)}` did not end within {timeout_s:g} s" + (f"; it said last: {said}" if said else ""),
            where=where,
            expected="an answer; it was killed",
            hint=hint or "run it by hand to see what it waits for",
        )
    return answer


def _read(process: subprocess.Popen[bytes], pipes: tuple[IO[bytes], IO[bytes]], deadline: float) -> tuple[str, str]:
    """The end of what a process writes, until it ends. Others that it started may keep the pipes open."""
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
    """The user who called ``sudo``, as arguments of ``Popen``; empty without ``sudo``."""
    uid, gid = os.environ.get("SUDO_UID", ""), os.environ.get("SUDO_GID", "")
    if os.geteuid() != 0 or not uid.isdecimal() or not gid.isdecimal() or uid == "0":
        return {}
    return {"user": int(uid), "group": int(gid), "extra_groups": []}
