"""The environment's end of the sockets for its decisions about the learning flows of a run.

The environment listens on a Unix socket in a private folder. The sender of each learning flow connects to it, from
any network namespace. ``crates/ccgym-net/proto/control.proto`` describes the messages.
"""

from __future__ import annotations

import os
import select
import socket
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from ccgym.emulation.control_pb2 import Action, Ended, FromSender, Hello, Interval, Stop, ToSender
from ccgym.emulation.job import require_linux
from ccgym.errors import PlatformError, RealPathError

VERSION: Final = 1

MAX_PATH: Final = 100
"""Maximum length of a socket's path, bytes; the kernel accepts 107."""

MAX_MESSAGE: Final = 1 << 20
"""Maximum length of a message, bytes; longer messages are not from ccgym."""

MAX_LENGTH_BYTES: Final = 4
"""Maximum length of the varint before a message, bytes; it contains the length of the message."""

Message: TypeAlias = Hello | Interval | Ended

WHERE: Final = "the sender's control socket"


class Server:
    """The server for the senders of a run: a socket in a private folder, which :meth:`close` removes."""

    def __init__(self) -> None:
        require_linux()
        self._directory = tempfile.TemporaryDirectory(prefix="ccgym-env-", dir=_short_folder())
        self.path = Path(self._directory.name) / "control"
        """The socket."""
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._socket.bind(os.fspath(self.path))
            self._socket.listen(64)
        except OSError as error:
            self.close()
            raise PlatformError(
                "socket-failed",
                f"the control socket cannot be made: {error}",
                where=os.fspath(self.path),
                expected="a folder for temporary files that can contain sockets",
                hint="set TMPDIR to another folder",
            ) from None

    def accept(self, timeout_s: float) -> Connection | None:
        """Return the next sender that connects; None if no sender connects in time."""
        if not wait_for([self._socket], timeout_s):
            return None
        accepted, _ = self._socket.accept()
        return Connection(accepted)

    def close(self) -> None:
        """Stop listening; connections remain."""
        self._socket.close()
        self._directory.cleanup()


class Connection:
    """The connection to the sender of one learning flow."""

    def __init__(self, connected: socket.socket) -> None:
        self._socket = connected
        self._socket.setblocking(False)
        self._bytes = bytearray()
        self._open = True

    def fileno(self) -> int:
        """Return the file descriptor, for polling."""
        return self._socket.fileno()

    @property
    def is_open(self) -> bool:
        """Whether further messages of the sender are possible."""
        return self._open

    def receive(self) -> None:
        """Read the available bytes without waiting; :meth:`next` returns their messages.

        Raises:
            RealPathError: The socket fails.
        """
        while self._open:
            try:
                received = self._socket.recv(1 << 16)
            except BlockingIOError:
                return
            except ConnectionResetError:
                received = b""
            except OSError as error:
                raise RealPathError("socket-failed", str(error), where=WHERE) from None
            if received:
                self._bytes += received
            else:
                self._open = False

    def next(self) -> Message | None:
        """Return the next message, if it has been received completely.

        Raises:
            RealPathError: The received bytes are not a message.
        """
        head = self._bytes[:MAX_LENGTH_BYTES]
        length = start = 0
        for start, byte in enumerate(head, start=1):
            length |= (byte & 0x7F) << (7 * (start - 1))
            if byte < 0x80:
                break
        else:
            if start < MAX_LENGTH_BYTES:
                return None
            length = MAX_MESSAGE + 1
        if length > MAX_MESSAGE:
            raise RealPathError(
                "protocol-error", f"a message of {length} bytes or more", where=WHERE, expected=f"max {MAX_MESSAGE}"
            )
        end = start + length
        if end > len(self._bytes):
            return None
        body = bytes(self._bytes[start:end])
        del self._bytes[:end]
        return _content(body)

    def act(self, interval: Interval, values: Iterable[float]) -> None:
        """Send the decision for an interval that has ended."""
        self._say(ToSender(action=Action(sequence=interval.sequence, time_ns=interval.time_ns, values=values)))

    def stop(self) -> None:
        """End the flow."""
        self._say(ToSender(stop=Stop()))

    def _say(self, message: ToSender) -> None:
        body = message.SerializeToString()
        data = _varint(len(body)) + body
        try:
            while data:
                try:
                    data = data[self._socket.send(data) :]
                except BlockingIOError:
                    # A sender reads immediately; if it does not, the run process has stalled.
                    if not select.select([], [self._socket], [], 10.0)[1]:
                        raise RealPathError("run-stalled", "the sender does not read", where=WHERE) from None
        except (BrokenPipeError, ConnectionResetError):
            pass  # its last message, if any, has not been received yet
        except OSError as error:
            raise RealPathError("socket-failed", str(error), where=WHERE) from None

    def close(self) -> None:
        """Close the connection: the flow then ends."""
        self._open = False
        self._socket.close()


def wait_for(sources: Sequence[Connection | socket.socket], timeout_s: float) -> bool:
    """Wait until one of these has data to receive, and return whether one has."""
    poll = select.poll()
    for source in sources:
        poll.register(source.fileno(), select.POLLIN)
    return bool(poll.poll(timeout_s * 1e3))


def _content(body: bytes) -> Message:
    from google.protobuf.message import DecodeError

    try:
        message = FromSender.FromString(body)
    except DecodeError as error:
        raise RealPathError("protocol-error", f"no message: {error}", where=WHERE) from None
    which = message.WhichOneof("body")
    if which is None:
        raise RealPathError(
            "protocol-error",
            "a message without content",
            where=WHERE,
            hint="use the same version of ccgym at both ends",
        )
    content: Message = getattr(message, which)
    return content


def _varint(number: int) -> bytes:
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    encoded.append(number)
    return bytes(encoded)


def _short_folder() -> str | None:
    """Return a folder with a short path for the socket; None is the default folder."""
    usual = tempfile.gettempdir()
    return None if len(os.fsencode(usual)) <= MAX_PATH - len("/ccgym-env-01234567/control") else "/tmp"
