"""Start a run process, watch it, and end it.

The child watches its standard input, which is never written to. When it closes, because this process closed it or
died, the child removes all that it created and exits. Job and result are in memory, under file descriptors that both
processes have: nothing is left on any disk, no matter which process is killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ccgym.emulation import job
from ccgym.emulation.child_output import ChildOutput
from ccgym.emulation.job import Memory
from ccgym.emulation.plan import Plan
from ccgym.errors import RealPathError, explained, known_code, shown

if TYPE_CHECKING:
    from ccgym._core import SimResult

SLACK_S: Final = 60.0
"""A run that takes this much longer than planned has stalled, seconds. Set-up and removal usually take one or two."""

GRACE_S: Final = 5.0
"""Time for a run process to remove all that it created, before it is killed, seconds."""

TURN_S: Final = 0.2
"""Seconds between checks while waiting."""

SHOWN_LINES: Final = 6
"""Number of last lines of the child's standard error in an error message."""


@dataclass(frozen=True)
class ProcessOutcome:
    """The result of a run process."""

    result: SimResult
    """The run, in the same form as from the simulator."""
    report: Mapping[str, Any]
    """The report about the path: see :attr:`ccgym.evaluation.run_record.RunRecord.path_report`."""


def environment() -> dict[str, str]:
    """Return an environment in which Python finds this ccgym, for processes that start no external programs."""
    root = str(Path(__file__).resolve().parents[2])
    before = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{before}" if before else root}


class RunProcess:
    """A started run process. Use it as a context manager: leaving it ends the process."""

    def __init__(self, plan: Plan) -> None:
        self._duration_s = plan.duration_s
        self._name = plan.backend
        self._result, self._status, self._errors = Memory("result"), Memory("status"), ChildOutput()
        self._job = job.memory("run", plan.document(Path(self._result.path), self._status.path))
        inherited = (self._job, self._result, self._status, *plan.held)
        try:
            # A separate session: Ctrl-C in the terminal reaches only this process, which then ends the child properly.
            self._process = subprocess.Popen(
                job.command(self._job),
                stdin=subprocess.PIPE,
                stdout=self._errors.fd,
                stderr=self._errors.fd,
                pass_fds=[memory.fd for memory in inherited],
                start_new_session=True,
            )
        except BaseException:
            self._close()
            raise
        self._errors.begun()
        self._started = time.monotonic()

    def __enter__(self) -> RunProcess:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def poll(self) -> int | None:
        """Return the exit status of the process; None while it runs."""
        return self._process.poll()

    def wait(self, halt: threading.Event | None = None, slack_s: float = SLACK_S) -> ProcessOutcome:
        """Wait for the end of the run and read the result.

        Args:
            halt: Set by another thread to stop the run.
            slack_s: Maximum additional time after the length of the run, seconds.

        Raises:
            RealPathError: The run failed (the message names the step), stalled, or was stopped.
        """
        self._wait(halt, slack_s)
        return self._load()

    def wait_for_half(self, halt: threading.Event | None = None, slack_s: float = SLACK_S) -> bytes:
        """Wait as :meth:`wait` for one end of a tunnel, and return its half of the result, for the native core."""
        self._wait(halt, slack_s)
        return self._result.read()

    def _wait(self, halt: threading.Event | None, slack_s: float) -> None:
        deadline = self._started + self._duration_s + slack_s
        while not self.has_ended():
            self._look(halt, deadline, slack_s)

    def has_ended(self) -> bool:
        """Return whether the run has ended; raise :class:`RealPathError` if it failed."""
        status = self._process.poll()
        if status:
            raise self.failure(status)
        return status == 0

    def port(self, halt: threading.Event | None = None, slack_s: float = SLACK_S) -> int:
        """Wait for the UDP port on which a tunnel end waits for the other end, and return it.

        Raises:
            RealPathError: As for :meth:`wait`.
        """
        while not (line := self._status.read()).endswith(b"\n"):
            self.has_ended()
            self._look(halt, self._started + slack_s, slack_s)
        return int(json.loads(line)["listening"])

    def _look(self, halt: threading.Event | None, deadline: float, slack_s: float) -> None:
        """Wait for a moment; raise if the run is stopped or stalled."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=TURN_S)
        if halt is not None and halt.is_set():
            self.end()
            raise RealPathError("run-abandoned", "the run was stopped", where=f"backend {self._name}")
        if time.monotonic() > deadline:
            raise self._stalled(slack_s)

    def end(self) -> None:
        """End the process: close its standard input, and kill it if it does not end. Discard its result."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.close()
            self._process.wait(timeout=GRACE_S)
        except subprocess.TimeoutExpired:
            self._kill()
        finally:
            self._close()

    def _close(self) -> None:
        for memory in (self._job, self._errors, self._result, self._status):
            memory.close()

    def failure(self, status: int) -> RealPathError:
        """Return the error of a process that ended with this status."""
        text = self._error_text()
        if error := native_error(text):
            return error
        how = f"signal {-status} ({_signal_name(-status)})" if status < 0 else f"status {status}"
        return RealPathError(
            "run-failed",
            f"the run process ended with {how}{_quoted(text)}",
            where=f"backend {self._name}",
            expected="a result, or an error message",
            hint="run `ccgym doctor` to see what this machine supports",
        )

    def _stalled(self, slack_s: float) -> RealPathError:
        waited = time.monotonic() - self._started
        text = self._error_text()
        self._kill()
        error = native_error(text)
        last = f"its last step: {error.where}: {error.found}" if error is not None else _quoted(text).lstrip("; ")
        return RealPathError(
            "run-stalled",
            f"the run process {self._process.pid} did not end within {waited:.0f} s" + (f"; {last}" if last else ""),
            where=f"backend {self._name}",
            expected=f"the end of a run of {self._duration_s:g} s within {slack_s:g} s after it",
            hint="it was killed, with all that it had created; run `ccgym doctor` to see what this machine supports",
        )

    def _kill(self) -> None:
        """Kill the process and all processes that it started: their session contains no other process."""
        if self._process.returncode is None:
            try:
                os.killpg(self._process.pid, signal.SIGKILL)
            except (ProcessLookupError, PermissionError):
                self._process.kill()
            self._process.wait()

    def _error_text(self) -> str:
        return self._errors.read().decode(errors="replace")

    def _load(self) -> ProcessOutcome:
        from ccgym import _core

        try:
            result, report = _core.load_run(self._result.path)
            return ProcessOutcome(result, dict(json.loads(report)))
        except (OSError, TypeError, ValueError) as error:
            refused = explained(RealPathError, error, "protocol-error", where=f"backend {self._name}: its result")
            refused.found += _quoted(self._error_text())
            raise refused from error


def run_plan(plan: Plan, halt: threading.Event | None = None) -> ProcessOutcome:
    """Run a plan in a separate process and wait for its result.

    Args:
        plan: The run.
        halt: Set by another thread to stop the run.

    Raises:
        RealPathError: The run failed, stalled, or was stopped.
    """
    with RunProcess(plan) as process:
        return process.wait(halt)


def native_error(text: str) -> RealPathError | None:
    """Return the error that a native process wrote as JSON on its last line; None if there is none."""
    try:
        data = json.loads(text.rstrip().rpartition("\n")[2])
    except json.JSONDecodeError:
        return None
    if not isinstance(data, Mapping) or "found" not in data:
        return None
    expected, hint, place = (str(data.get(part) or "") for part in ("expected", "hint", "place"))
    code = known_code(data.get("code"), "run-failed")
    return RealPathError(code, str(data["found"]), expected=expected, hint=hint, where=place)


def output_of(kind: str, fields: Mapping[str, Any], timeout_s: float = SLACK_S) -> Any:
    """Do a job that prints JSON in a separate process, and return its output.

    Raises:
        RealPathError: The job failed or stalled.
    """
    where = f"ccgym {kind}"
    document = job.memory(kind, fields)
    try:
        done = subprocess.run(
            job.command(document),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
            pass_fds=(document.fd,),
        )
    except subprocess.TimeoutExpired:
        raise RealPathError(
            "no-answer", f"no answer within {timeout_s:g} s", where=where, expected="an answer"
        ) from None
    finally:
        document.close()
    if done.returncode not in (0, 1):
        error = native_error(done.stderr)
        raise error or RealPathError("run-failed", f"status {done.returncode}{_quoted(done.stderr)}", where=where)
    try:
        return json.loads(done.stdout)
    except json.JSONDecodeError:
        raise RealPathError(
            "protocol-error", f"{shown(done.stdout)}{_quoted(done.stderr)}", where=where, expected="JSON"
        ) from None


def _quoted(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()][-SHOWN_LINES:]
    return f"; its output: {' | '.join(lines)}" if lines else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
