"""``ccgym tunnel-end``: the program on the other machine of a run between two machines. Not for direct use.

It writes ``hello``, reads a request as one line of JSON from standard input, and writes answers as lines of JSON to
standard output (:mod:`ccgym.emulation.remote_end`). When its standard input closes, it ends all that it started.

=============================  =======================================================================
request                        answers after ``hello``
=============================  =======================================================================
``{"check": true}``            ``check``: the problem that ``ccgym doctor`` finds, or null
``{"plan": …, "ntp": …}``      ``ntp``, ``listening``, ``ntp``, ``result``, if requested
=============================  =======================================================================

Instead of any answer, there may be an ``error``.
"""

from __future__ import annotations

import json
import math
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from ccgym.cli.common import STATUS_ERROR
from ccgym.emulation import doctor
from ccgym.emulation.plan import Plan
from ccgym.emulation.process import RunProcess
from ccgym.emulation.remote import ntp_answer
from ccgym.emulation.remote_messages import described, greeting, message, packed_half
from ccgym.errors import MAX_SHOWN, CcgymError, RealPathError
from ccgym.files import MAX_MODEL_BYTES


def main(argv: Sequence[str] | None = None) -> int:
    """Serve one request and return the exit status."""
    try:
        _say("hello", greeting())
        request = _first_line()
        if request:
            _serve(request)
    except CcgymError as error:
        _say("error", described(error))
        return STATUS_ERROR
    except BrokenPipeError:  # The connection to the other machine is closed.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return STATUS_ERROR
    return 0


def _say(kind: str, content: Any) -> None:
    sys.stdout.write(message(kind, content))
    sys.stdout.flush()


def _first_line() -> bytes:
    """Return the first line of standard input, or its part if the input closes earlier. Read nothing after the line."""
    line = bytearray()
    while not line.endswith(b"\n") and (part := os.read(sys.stdin.fileno(), 1 << 16)):
        line += part
        if len(line) > MAX_MODEL_BYTES:
            raise _not_understood(f"{len(line)} bytes without an end")
    return bytes(line) if line.endswith(b"\n") else b""


def _serve(line: bytes) -> None:
    try:
        request: Mapping[str, Any] = json.loads(line)
        check = "check" in request
        plan = None if check else _plan(request["plan"])
        server = request.get("ntp")
        if not isinstance(server, str | None):
            raise TypeError("ntp is neither a host name nor null")
    except CcgymError:
        raise
    except (AttributeError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise _not_understood(f"{type(error).__name__}: {error}"[:MAX_SHOWN]) from None
    if plan is None:
        found = doctor.obstacle("remote", doctor.examine(measure=False))
        _say("check", None if found is None else asdict(found))
        return
    halt = threading.Event()
    threading.Thread(target=_watch, args=(halt,), daemon=True).start()
    if server is not None:
        _say("ntp", ntp_answer(server))
    with RunProcess(plan) as process:
        if plan.tunnel is not None and plan.tunnel.listen is not None:
            _say("listening", process.port(halt))
        half = process.wait_for_half(halt)
    if server is not None:
        _say("ntp", ntp_answer(server))
    _say("result", packed_half(half))


def _plan(data: Mapping[str, Any]) -> Plan:
    plan = Plan.unpacked(data)
    plan.document(Path())  # The complete input of a run process.
    if not 0 < plan.duration_s < math.inf:
        raise ValueError(f"a run of {plan.duration_s} s")
    return plan


def _not_understood(found: str) -> RealPathError:
    return RealPathError("protocol-error", found, where="request", expected="a request from the same version of ccgym")


def _watch(halt: threading.Event) -> None:
    """Stop when standard input closes."""
    while os.read(sys.stdin.fileno(), 1 << 16):
        pass
    halt.set()
