"""The clock's offset, asked of a time server of the test's own."""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator

import pytest

from ccgym.emulation import ntp
from ccgym.errors import RealPathError
from tests.refusals import refused
from tests.time_server import FROM_1900_S, answer

Reply = Callable[[bytes], Iterable[bytes]]


@pytest.fixture
def serve() -> Iterator[Callable[[Reply], int]]:
    """Starts a server that answers as a function says, and returns its port."""
    sockets: list[socket.socket] = []

    def start(reply: Reply) -> int:
        server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        server.bind(("127.0.0.1", 0))
        sockets.append(server)

        def work() -> None:
            while True:
                try:
                    question, peer = server.recvfrom(1024)
                    for one in reply(question):
                        server.sendto(one, peer)
                except OSError:
                    return

        threading.Thread(target=work, daemon=True).start()
        return int(server.getsockname()[1])

    yield start
    for server in sockets:
        server.close()


@pytest.mark.parametrize("ahead_s", [0.0, 0.25, -3600.0, 1e9])
def test_the_offset_is_what_the_server_is_ahead(serve: Callable[[Reply], int], ahead_s: float) -> None:
    port = serve(lambda question: [answer(question, ahead_s)])
    # Half of a round trip on this machine is the most by which it may be wrong.
    assert ntp.clock_offset_s("127.0.0.1", port) == pytest.approx(ahead_s, abs=0.2)


def test_the_answer_that_came_back_fastest_counts(serve: Callable[[Reply], int]) -> None:
    seen: list[bytes] = []

    def reply(question: bytes) -> list[bytes]:
        seen.append(question)
        late = len(seen) != 2
        time.sleep(0.5 if late else 0)
        return [answer(question, 5 if late else 7)]

    assert ntp.clock_offset_s("127.0.0.1", serve(reply)) == pytest.approx(7, abs=0.2)
    assert len(seen) == ntp.TRIES


def test_an_answer_to_another_question_is_left_alone(serve: Callable[[Reply], int]) -> None:
    port = serve(lambda question: [answer(question, 99, mark=b"stranger"), answer(question, 1)])
    assert ntp.clock_offset_s("127.0.0.1", port) == pytest.approx(1, abs=0.2)


def test_after_2036_ntps_time_begins_again(serve: Callable[[Reply], int], monkeypatch: pytest.MonkeyPatch) -> None:
    later_s = 2**32 - FROM_1900_S - time.time() + 1000  # 2036-02-07, and some minutes
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + later_s)
    port = serve(lambda question: [answer(question, -2000)])
    assert ntp.clock_offset_s("127.0.0.1", port) == pytest.approx(-2000, abs=0.2)


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (lambda question: [b"short"], "no-answer at time server 127.0.0.1"),
        (lambda question: [answer(question, 0, stratum=0)], "no-answer at time server 127.0.0.1"),
        (lambda question: [answer(question, 0, mode=3)], "no-answer at time server 127.0.0.1"),
        (lambda question: [], "no-answer at time server 127.0.0.1"),
        (lambda question: [answer(question, 0, kept_s=100)], "no-answer at time server 127.0.0.1"),
        (lambda question: [answer(question, 0, kept_s=-100)], "no-answer at time server 127.0.0.1"),
    ],
)
def test_what_is_no_answer_is_an_error(
    serve: Callable[[Reply], int], reply: Reply, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ntp, "TIMEOUT_S", 0.1)
    with refused(RealPathError, said):
        ntp.clock_offset_s("127.0.0.1", serve(reply))


def test_a_server_that_never_ends_is_left(serve: Callable[[Reply], int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ntp, "TIMEOUT_S", 0.1)
    port = serve(lambda question: itertools.repeat(answer(question, 0, mark=b"stranger")))
    begun = time.monotonic()
    with refused(RealPathError, "no-answer at time server 127.0.0.1"):
        ntp.clock_offset_s("127.0.0.1", port)
    assert time.monotonic() - begun < 5
