"""Starting a run process, watching it, and ending it.

The child watches its standard input: it is never written to, and when it closes, because we closed it or because this
process died, the child takes down what it made and exits. Job and result lie in memory, under file descriptors that
both hold: nothing is left on any disk, no matter which process is killed.
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
"""A run that is over by so much has stalled, seconds. Setting up and taking down usually takes one or two."""

GRACE_S: Final = 5.0
"""How long a run process has to take down what it made before it is killed, seconds."""

TURN_S: Final = 0.2
"""How often a wait looks up, seconds."""

SHOWN_LINES: Final = 6
"""Last lines of the child's standard error that an error quotes."""


@dataclass(frozen=True)
class ProcessOutcome:
    """What a run process left."""

    result: SimResult
    """The run, as the simulator returns its own."""
    report: Mapping[str, Any]
    """What there is to say about the path: see :attr:`ccgym.evaluation.run_record.RunRecord.path_report`."""


def environment() -> dict[str, str]:
    """The environment in which an interpreter finds this very ccgym, for processes that start no external programs."""
    root = str(Path(__file__).resolve().parents[2])
    before = os.environ.get("PYTHONPATH")
    return {**os.environ, "PYTHONPATH": f"{root}{os.pathsep}{before}" if before else root}


class RunProcess:
    """A run process, started. Use it as a context manager: leaving it ends the process."""

    def __init__(self, plan: Plan) -> None:
        self._duration_s = plan.duration_s
        self._name = plan.backend
        self._result, self._status, self._errors = Memory("result"), Memory("status"), ChildOutput()
        self._job = job.memory("run", plan.document(Path(self._result.path), self._status.path))
        inherited = (self._job, self._result, self._status, *plan.held)
        try:
            # A session of its own: control-C in the terminal is for us alone, and we end the child in order.
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
        """The exit status of the process; None while it runs."""
        return self._process.poll()

    def wait(self, halt: threading.Event | None = None, slack_s: float = SLACK_S) -> ProcessOutcome:
        """Wait for the end of the run and read what came out.

        Args:
            halt: Set by another thread to give up.
            slack_s: How much longer than the run itself it may take, seconds.

        Raises:
            RealPathError: The run failed (the message says in which step), stalled, or was given up.
        """
        self._wait(halt, slack_s)
        return self._load()

    def wait_for_half(self, halt: threading.Event | None = None, slack_s: float = SLACK_S) -> bytes:
        """As :meth:`wait`, of one end of a tunnel: its half of the result, which only the native core reads."""
        self._wait(halt, slack_s)
        return self._result.read()

    def _wait(self, halt: threading.Event | None, slack_s: float) -> None:
        deadline = self._started + self._duration_s + slack_s
        while not self.has_ended():
            self._look(halt, deadline, slack_s)

    def has_ended(self) -> bool:
        """Whether the run is over; :class:`RealPathError` if it failed."""
        status = self._process.poll()
        if status:
            raise self.failure(status)
        return status == 0

    def port(self, halt: threading.Event | None = None, slack_s: float = SLACK_S) -> int:
        """The UDP port on which an end of a tunnel waits for the other one, as soon as it says so.

        Raises:
            RealPathError: As :meth:`wait`.
        """
        while not (line := self._status.read()).endswith(b"\n"):
            self.has_ended()
            self._look(halt, self._started + slack_s, slack_s)
        return int(json.loads(line)["listening"])

    def _look(self, halt: threading.Event | None, deadline: float, slack_s: float) -> None:
        """Let a moment pass; raise if it is time to give up."""
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=TURN_S)
        if halt is not None and halt.is_set():
            self.end()
            raise RealPathError("run-abandoned", "the run was given up", where=f"backend {self._name}")
        if time.monotonic() > deadline:
            raise self._stalled(slack_s)

    def end(self) -> None:
        """End the process: close its standard input, and kill it if it does not end. Forget what it left."""
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
        """The error of a process that ended with this status."""
        text = self._error_text()
        if error := native_error(text):
            return error
        how = f"signal {-status} ({_signal_name(-status)})" if status < 0 else f"status {status}"
        return RealPathError(
            "run-failed",
            f"the run process ended with {how}{_quoted(text)}",
            where=f"backend {self._name}",
            expected="a result, or an error that explains itself",
            hint="`ccgym doctor` tells what this machine can do",
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
            hint="it was killed, with everything that it had made; `ccgym doctor` tells what this machine can do",
        )

    def _kill(self) -> None:
        """Kill the process and those that it started: they share a session that holds nothing else."""
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
    """Run a plan in a process of its own and wait for what comes out.

    Args:
        plan: The run.
        halt: Set by another thread to give up.

    Raises:
        RealPathError: It failed, stalled, or was given up.
    """
    with RunProcess(plan) as process:
        return process.wait(halt)


def native_error(text: str) -> RealPathError | None:
    """The error that a native process wrote as JSON on its last line; None where there is none."""
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
    """Do a job that prints JSON, in a process of its own, and return what it printed.

    Raises:
        RealPathError: It failed or stalled.
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
    return f"; it said: {' | '.join(lines)}" if lines else ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "unknown"
