"""``ccgym sender`` and ``ccgym receiver`` as a user starts and ends them: from Python, also on a terminal."""

from __future__ import annotations

import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
CONTROL_C: Final = b"\x03"


def heed() -> None:
    """Start as from a terminal, even where these tests run in the background of a shell."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def on_terminal() -> None:
    """The same, with standard input as the controlling terminal."""
    import fcntl
    import termios

    heed()
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


class Endpoint:
    """One of the commands, with a terminal of its own if asked for."""

    def __init__(self, *words: str, terminal: bool) -> None:
        self.master, stdin = pty.openpty() if terminal else (None, subprocess.DEVNULL)
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ccgym.cli.main", *words],
            cwd=ROOT, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            preexec_fn=on_terminal if terminal else heed,
        )  # fmt: skip
        if terminal:
            os.close(stdin)

    def line(self) -> str:
        """The next line on standard error."""
        return self.process.stderr.readline().rstrip()

    def interrupt(self, number: signal.Signals) -> tuple[int, str, str]:
        """Status, standard output and the rest of standard error after a signal, or control-C on the terminal."""
        if self.master is not None:
            os.write(self.master, CONTROL_C)
        else:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err

    def close(self) -> None:
        """End it, if it has not ended."""
        self.process.kill()
        self.process.communicate()
        if self.master is not None:
            os.close(self.master)


@pytest.fixture
def endpoints() -> Iterator[list[Endpoint]]:
    """What is to be closed."""
    started: list[Endpoint] = []
    yield started
    for endpoint in started:
        endpoint.close()


@pytest.mark.parametrize(
    ("number", "terminal"),
    [(signal.SIGINT, False), (signal.SIGINT, True), (signal.SIGTERM, False)],
    ids=["SIGINT", "control-C", "SIGTERM"],
)
def test_both_end_with_their_summary(endpoints: list[Endpoint], number: signal.Signals, terminal: bool) -> None:
    receiver = Endpoint("receiver", "--listen", "127.0.0.1:0", "--report-every=0", terminal=terminal)
    endpoints.append(receiver)
    address = receiver.line().removeprefix("listening on ")
    sender = Endpoint("sender", "--to", address, "--scheme", "cubic", "--duration", "600", terminal=terminal)
    endpoints.append(sender)
    assert receiver.line().endswith(": begins")
    status, out, err = sender.interrupt(number)
    assert (status, err.count("Traceback")) == (128 + number, 0), err
    assert out.startswith("cubic: ")
    assert "Mbit/s acknowledged in" in out
    status, out, err = receiver.interrupt(number)
    assert (status, err.count("Traceback")) == (128 + number, 0), err
    assert " packets of " in out, "the sender said goodbye"
    assert "received 1 flow\n" in err


def test_control_c_ends_a_sender_that_is_not_answered(endpoints: list[Endpoint]) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as mute:
        mute.bind(("127.0.0.1", 0))
        mute.settimeout(30)
        to = f"127.0.0.1:{mute.getsockname()[1]}"
        sender = Endpoint("sender", "--to", to, "--scheme", "cubic", "--deadline", "600", terminal=True)
        endpoints.append(sender)
        mute.recv(2048)
        status, out, err = sender.interrupt(signal.SIGINT)
    assert status == -signal.SIGINT, "ended by the signal, which a shell shows as 130"
    assert (out, err) == ("", "")


@pytest.mark.parametrize("words", [["sender"], ["receiver"]], ids=lambda words: words[0])
def test_without_arguments_they_say_what_is_missing(words: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ccgym.cli.main", *words], cwd=ROOT, capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 2
    assert f"ccgym {words[0]} --help" in done.stderr
    assert done.stdout == ""
