"""Messages of `ccgym tunnel-end`: one JSON object per line, read with limits, since the other machine may send any."""

from __future__ import annotations

import base64
import json
import math
import zlib
from collections.abc import Callable, Mapping
from typing import Any, Final

from ccgym.emulation.checkout import git_summary
from ccgym.errors import CcgymError, RealPathError

COMMAND: Final = "tunnel-end"
"""The command on the other machine."""
SHOWN_LINES: Final = 4
"""Number of SSH's last lines in an error message."""
MAX_RESULT: Final = 2**30
"""Maximum size of a result, packed or unpacked, bytes."""
RESULT: Final = b'{"ccgym": {"result": "'
RESULT_END: Final = b'"}}'
"""Start and end of a result's line. Only this line may be long. JSON would need many times its size to read it."""
_MAX_OFFSET_MS: Final = 2**32 * 1e3
"""Maximum clock offset, ms: NTP's time starts again after this time."""
MAX_SHOWN: Final = 500
"""Maximum number of a line's characters in an error message."""


def greeting() -> dict[str, str]:
    """Return the first message of ``ccgym tunnel-end``: see :meth:`RemoteEnd.hello`."""
    from ccgym import _core

    return {"version": _core.__version__, "git": git_summary()}


def message(kind: str, content: Any) -> str:
    """Return a line of ``ccgym tunnel-end`` with a message."""
    return json.dumps({"ccgym": {kind: content}}) + "\n"


def read_message(line: bytearray) -> Mapping[str, Any] | None:
    """Return the message in a line; None if the line is not from ``ccgym tunnel-end``."""
    if line.startswith(RESULT):
        return {"result": line[len(RESULT) :].rstrip().removesuffix(RESULT_END)}
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    found = document.get("ccgym") if isinstance(document, dict) else None
    return found if isinstance(found, dict) else None


def text_of(value: object, limit: int) -> str:
    """Return a text from the other machine in a safe form: limited length, and no control characters of a terminal."""
    if not isinstance(value, str):
        raise TypeError
    return "".join(one if one.isprintable() or one == "\n" else "\N{REPLACEMENT CHARACTER}" for one in value[:limit])


def _hello(said: Any) -> dict[str, str]:
    return {part: text_of(said[part], MAX_SHOWN) for part in ("version", "git")}


def _obstacle(said: Any) -> dict[str, str] | None:
    return None if said is None else {part: text_of(said[part], 8 * MAX_SHOWN) for part in ("name", "found", "remedy")}


def _clock(said: Any) -> dict[str, Any]:
    if "offset_ms" not in said:
        return {"failure": text_of(said["failure"], MAX_SHOWN)}
    offset_ms = float(said["offset_ms"])
    if not math.isfinite(offset_ms) or abs(offset_ms) > _MAX_OFFSET_MS:
        raise ValueError
    return {"offset_ms": offset_ms}


def _port(said: Any) -> int:
    if type(said) is not int or not 1 <= said <= 65535:
        raise ValueError
    return said


def packed_half(half: bytes) -> str:
    """Return a half result in the form for messages."""
    return base64.b64encode(zlib.compress(half, 1)).decode()


def unpacked_half(text: str | bytearray, longest: int = MAX_RESULT) -> bytes:
    """Return the half result from :func:`packed_half`.

    Args:
        text: The half result in the form for messages.
        longest: Maximum size of the half result, bytes.

    Raises:
        RealPathError: The text is no such half result.
    """
    try:
        unpacking = zlib.decompressobj()
        half = unpacking.decompress(base64.b64decode(text), longest)
        if unpacking.eof:
            return half
        reason = "it is cut off, or too large"
    except (TypeError, ValueError, zlib.error) as error:
        reason = str(error)
    raise RealPathError(
        "protocol-error",
        f"the result of the other machine cannot be unpacked: {reason}",
        expected=f"a result of ccgym {COMMAND}, of at most {longest} bytes",
    )


READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "hello": _hello,
    "check": _obstacle,
    "ntp": _clock,
    "listening": _port,
}
"""Readers of messages, except results. Malformed ones raise KeyError, TypeError, ValueError or OverflowError."""


def described(error: CcgymError) -> dict[str, str]:
    """Return an error in the form for messages."""
    return {
        "code": error.code,
        "where": error.where,
        "found": error.found,
        "expected": error.expected,
        "hint": error.hint,
    }
