"""What `ccgym tunnel-end` says: a JSON object a line, read within bounds, since the other machine may say anything."""

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
"""The command that is run on the other machine."""
SHOWN_LINES: Final = 4
"""Last lines of what SSH said that an error quotes."""
MAX_RESULT: Final = 2**30
"""Maximum size of a result, packed or unpacked, bytes."""
RESULT: Final = b'{"ccgym": {"result": "'
RESULT_END: Final = b'"}}'
"""What encloses a result. Only such a line may be long, and it is not read as JSON, which takes many times its size."""
_MAX_OFFSET_MS: Final = 2**32 * 1e3
"""NTP's time begins again after so long."""
MAX_SHOWN: Final = 500
"""Characters of a line that an error quotes."""


def greeting() -> dict[str, str]:
    """What ``ccgym tunnel-end`` says first: see :meth:`RemoteEnd.hello`."""
    from ccgym import _core

    return {"version": _core.__version__, "git": git_summary()}


def message(kind: str, content: Any) -> str:
    """A line of ``ccgym tunnel-end``."""
    return json.dumps({"ccgym": {kind: content}}) + "\n"


def read_message(line: bytearray) -> Mapping[str, Any] | None:
    """What a line says; None if it is not of ``ccgym tunnel-end``."""
    if line.startswith(RESULT):
        return {"result": line[len(RESULT) :].rstrip().removesuffix(RESULT_END)}
    try:
        document = json.loads(line)
    except (ValueError, RecursionError):
        return None
    found = document.get("ccgym") if isinstance(document, dict) else None
    return found if isinstance(found, dict) else None


def text_of(value: object, limit: int) -> str:
    """A text from there, as it may be shown: of this length, and without characters that steer a terminal."""
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
    """A half result as it travels."""
    return base64.b64encode(zlib.compress(half, 1)).decode()


def unpacked_half(text: str | bytearray, longest: int = MAX_RESULT) -> bytes:
    """The inverse of :func:`packed_half`.

    Args:
        text: The half as it travels.
        longest: How long the half may be, bytes.

    Raises:
        RealPathError: It is something else.
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
        expected=f"what ccgym {COMMAND} sends, of at most {longest} bytes",
    )


READERS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "hello": _hello,
    "check": _obstacle,
    "ntp": _clock,
    "listening": _port,
}
"""What reads the messages, but for results. Malformed ones are KeyError, TypeError, ValueError or OverflowError."""


def described(error: CcgymError) -> dict[str, str]:
    """An error as it travels."""
    return {
        "code": error.code,
        "where": error.where,
        "found": error.found,
        "expected": error.expected,
        "hint": error.hint,
    }
