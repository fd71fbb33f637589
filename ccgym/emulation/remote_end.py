"""``ccgym tunnel-end`` on the other machine, controlled over SSH.

It reads one line of JSON and answers with lines of JSON (:mod:`ccgym.cli.tunnel_end`). It ends all that it started
when its standard input closes, so that nothing is left there: SSH closes it when this process ends, is killed, or
loses the connection.
"""

from __future__ import annotations

import json
import os
import queue
import select
import shlex
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any, Final

from ccgym.config.hosts import SSH, Hosts
from ccgym.emulation.child_output import ChildOutput
from ccgym.emulation.process import GRACE_S, SLACK_S, TURN_S
from ccgym.emulation.remote_messages import (
    COMMAND,
    MAX_RESULT,
    MAX_SHOWN,
    READERS,
    RESULT,
    SHOWN_LINES,
    greeting,
    read_message,
    text_of,
    unpacked_half,
)
from ccgym.errors import PlatformError, RealPathError, known_code, located

HELLO_S: Final = 60.0
"""Maximum time for the login on the other machine and the start of ccgym, seconds."""


_MAX_WORDS: Final = 2**20
"""Maximum length of other lines, and of output that is not from ccgym, bytes; more output is an error."""
_MAX_MESSAGES: Final = 16
"""Maximum number of unread messages; the other end waits if there are more."""

_SSH_FAILED: Final = 255
_NOT_FOUND: Final = (126, 127)
"""Exit statuses: SSH could not connect; the shell on the other machine did not find the program."""

_REFUSED: Final = (
    ("Host key verification failed", "the key of that machine is unknown here"),
    ("Permission denied", "it does not accept this user without a password or other input"),
    ("Could not resolve hostname", "there is no machine with that name"),
)
"""Messages of SSH, and their meanings."""


class RemoteEnd:
    """``ccgym tunnel-end`` on the other machine. Use it as a context manager: leaving it ends all that it started."""

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._where = f"remote {hosts.remote_path}"
        self._trial = f"{'ssh' if hosts.ssh == SSH else hosts.ssh} {hosts.host} true"
        self._messages: queue.Queue[Mapping[str, Any] | RealPathError | None] = queue.Queue(_MAX_MESSAGES)
        self._errors = ChildOutput()
        self._noise: deque[str] = deque(maxlen=SHOWN_LINES)
        self._longest_result = _MAX_WORDS
        """Maximum size of a result, packed or unpacked, bytes."""
        self._ended = threading.Event()
        try:
            # A separate session: Ctrl-C in the terminal reaches only this process, which then ends SSH properly.
            self._process = subprocess.Popen(
                [*hosts.ssh_words, hosts.host, remote_command(hosts)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors.fd,
                start_new_session=True,
            )
        except OSError as error:
            self._errors.close()
            raise PlatformError(
                "program-unstartable",
                f"{hosts.ssh_words[0]} cannot be started: {error.strerror}",
                where="--ssh",
                expected="a program that runs a command on another machine, like ssh",
                hint="install the OpenSSH client, or name another program with --ssh",
            ) from error
        self._errors.begun()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> RemoteEnd:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def hello(self, halt: threading.Event | None = None) -> Mapping[str, Any]:
        """Return its first message: ``version``, and ``git``, the summary of its checkout.

        Raises:
            RealPathError: The machine cannot be reached, or has no ccgym or another version.
        """
        said: Mapping[str, Any] = self.wait("hello", HELLO_S, halt)
        own = greeting()["version"]
        if said["version"] != own:
            raise RealPathError(
                "version-mismatch",
                f"the other machine has ccgym {said['version']}",
                where=self._where,
                expected=f"ccgym {own}, as here",
                hint="install the same version on both machines",
            )
        return said

    def send(
        self, request: Mapping[str, Any], halt: threading.Event | None = None, longest_result: int = _MAX_WORDS
    ) -> None:
        """Send a request.

        Args:
            request: The request.
            halt: Set by another thread to stop the run.
            longest_result: Maximum size of the result, bytes.

        Raises:
            RealPathError: The other end does not read the request, or the run was stopped.
        """
        assert self._process.stdin is not None
        self._longest_result = min(longest_result, MAX_RESULT)
        data, told, deadline = memoryview(json.dumps(request).encode() + b"\n"), 0, time.monotonic() + SLACK_S
        sink = self._process.stdin.fileno()
        os.set_blocking(sink, False)
        room = select.poll()
        room.register(sink, select.POLLOUT)
        with suppress(BrokenPipeError):  # The wait for its answer finds the reason.
            while told < len(data):
                if room.poll(TURN_S * 1e3):
                    told += os.write(sink, data[told:])
                else:
                    self._go_on(deadline, SLACK_S, "a reader of its request", halt)

    def wait(
        self,
        kind: str,
        timeout_s: float,
        halt: threading.Event | None = None,
        watch: Callable[[], object] = lambda: None,
    ) -> Any:
        """Return the next message, which must be of this kind.

        Args:
            kind: ``hello``, ``ntp``, ``listening`` or ``result``.
            timeout_s: Maximum waiting time, seconds.
            halt: Set by another thread to stop the run.
            watch: Called repeatedly while waiting; it may raise.

        Raises:
            RealPathError: The run failed there, the message is of another kind or missing, or the connection ended.
        """
        deadline = time.monotonic() + timeout_s
        while True:
            with suppress(queue.Empty):
                message = self._messages.get(timeout=TURN_S)
                break
            watch()
            self._go_on(deadline, timeout_s, f"its {kind}", halt)
        if message is None:
            raise self._gone()
        if isinstance(message, RealPathError):
            raise message
        if "error" in message:
            error = message["error"] if isinstance(message["error"], Mapping) else {"found": message["error"]}
            parts = [error.get(part) for part in ("found", "where", "expected", "hint")]
            found, where, expected, hint = (
                text_of(part if isinstance(part, str) else "", 8 * MAX_SHOWN) for part in parts
            )
            code = known_code(error.get("code"), "run-failed")
            raise RealPathError(
                code,
                found or "it failed, without a reason",
                where=f"{self._where}: {where}" if where else self._where,
                expected=expected,
                hint=hint,
            )
        try:
            content = message[kind]
            with located(self._where):
                return unpacked_half(content, self._longest_result) if kind == "result" else READERS[kind](content)
        except (KeyError, TypeError, ValueError, OverflowError):
            raise RealPathError(
                "protocol-error",
                ", ".join(text_of(key, MAX_SHOWN) for key in list(message)[:SHOWN_LINES]) or "an empty message",
                where=self._where,
                expected=f"its {kind}",
                hint="install the same version on both machines",
            ) from None

    def _go_on(self, deadline: float, timeout_s: float, expected: str, halt: threading.Event | None) -> None:
        """Raise if the run is stopped, or the time is over."""
        if halt is not None and halt.is_set():
            raise RealPathError("run-abandoned", "the run was stopped", where=self._where)
        if time.monotonic() > deadline:
            raise RealPathError(
                "no-answer",
                f"no message within {timeout_s:.0f} s{self._quoted()}",
                where=self._where,
                expected=expected,
                hint=f"check that `{self._trial}` ends immediately",
            )

    def end(self) -> None:
        """Close its standard input, and kill SSH if it does not end; the other machine detects both."""
        assert self._process.stdin is not None
        self._ended.set()
        try:
            with suppress(OSError):
                self._process.stdin.close()
            self._process.wait(timeout=GRACE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        finally:
            self._reader.join(timeout=GRACE_S)
            self._errors.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        line, noise = bytearray(), 0
        with self._process.stdout as stream:
            while chunk := os.read(stream.fileno(), 2**16):
                first, *more = chunk.split(b"\n")
                line += first
                for part in more:
                    noise += self._take(line)
                    if line.startswith(RESULT):  # Its last message.
                        return self._put(None)
                    line = bytearray(part)
                longest = self._longest_result if line.startswith(RESULT) else _MAX_WORDS
                if len(line) > longest or noise > _MAX_WORDS or self._ended.is_set():
                    self._put(self._flood())
                    return
            self._take(line)
        self._put(None)

    def _take(self, line: bytearray) -> int:
        """Forward a line if it is a message; otherwise return its length."""
        message = read_message(line)
        if message is not None:
            self._put(message)
            return 0
        if words := line.strip():
            # The shell there may print other lines when it starts.
            self._noise.append(text_of(words[:MAX_SHOWN].decode(errors="replace"), MAX_SHOWN))
        return len(line)

    def _put(self, message: Mapping[str, Any] | RealPathError | None) -> None:
        """Put a message into the queue; wait until there is room, or until the end."""
        while not self._ended.is_set():
            with suppress(queue.Full):
                self._messages.put(message, timeout=TURN_S)
                return

    def _flood(self) -> RealPathError:
        return RealPathError(
            "protocol-error",
            f"it writes too much output{self._quoted()}",
            where=self._where,
            expected=f"lines of at most {_MAX_WORDS} bytes, and a result of at most {self._longest_result}",
            hint=f"look at what `{self._trial}` prints",
        )

    def _gone(self) -> RealPathError:
        """Return the error for a closed connection."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=GRACE_S)
        status, said = self._process.poll(), self._errors.read().decode(errors="replace")
        program = remote_command(self._hosts).removesuffix(f" {COMMAND}")
        if status == _SSH_FAILED:
            meaning = next((words for sign, words in _REFUSED if sign in said), "SSH did not connect")
            return RealPathError(
                "remote-unreachable",
                f"{meaning}{self._quoted()}",
                where=self._where,
                expected=f"that `{self._trial}` works without input",
                hint="connect once manually to accept that machine's key; run `ssh-copy-id` to log in with a key",
            )
        if status in _NOT_FOUND:
            return RealPathError(
                "program-missing",
                f"there is no {program}{self._quoted()}",
                where=self._where,
                expected="ccgym in the checkout of HOST:DIR, or on the search path of the user",
                hint="run `make setup` in a checkout there and name it: --remote HOST:DIR",
            )
        if COMMAND in said:
            return RealPathError(
                "version-mismatch",
                f"{program} there does not have this command{self._quoted()}",
                where=self._where,
                expected="the same version of ccgym as here",
                hint="install the same version on both machines",
            )
        return RealPathError(
            "run-failed",
            f"it ended with status {status}{self._quoted()}",
            where=self._where,
            expected="a result, or an error message",
            hint=f"run `{program} doctor` to see what that machine supports",
        )

    def _quoted(self) -> str:
        said = self._errors.read().decode(errors="replace").splitlines() or self._noise
        lines = [text_of(line.strip(), MAX_SHOWN) for line in said if line.strip()][-SHOWN_LINES:]
        return f"; its output: {' | '.join(lines)}" if lines else ""


def remote_command(hosts: Hosts) -> str:
    """Return the command for the shell of the other machine; in a checkout, the program of its environment."""
    folder = hosts.folder.rstrip("/")
    if not folder:
        return f"ccgym {COMMAND}"
    # A shell does not expand a quoted tilde.
    home, _, rest = folder.partition("/") if folder.startswith("~") else ("", "", folder)
    quoted = f"{home}/{shlex.quote(rest)}" if home and rest else home or shlex.quote(rest)
    return f"{quoted}/.venv/bin/ccgym {COMMAND}"
