"""Reading and writing of trace files. The parser is native and accepts only files that mahimahi accepts."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from ccgym.errors import CcgymError, PathNotFoundError, PlatformError, TraceFormatError, explained, shown
from ccgym.files import atomic_write

if TYPE_CHECKING:
    from ccgym import _core

MAX_FILE_BYTES: Final = 512 * 2**20
"""Max size of a file, bytes."""


def parse_trace(text: bytes | str, name: str) -> _core.Trace:
    """Parse the text of a trace.

    Args:
        text: One integer per line, milliseconds, non-decreasing, the last one above 0.
        name: Name in errors and link logs, usually the name of the file.

    Raises:
        TraceFormatError: mahimahi would refuse the text, too; the error has the line and the probable mistake.
        PlatformError: The native module is not built.
    """
    try:
        return _native_trace().parse(text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text, name)
    except ValueError as error:
        raise explained(TraceFormatError, error, "trace-malformed") from None


def trace_from_times(times_ms: npt.ArrayLike, name: str) -> _core.Trace:
    """Make a trace from an array of milliseconds; errors as in :func:`parse_trace`."""
    array = np.asarray(times_ms)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu" or (array < 0).any():
        raise TraceFormatError(
            "trace-malformed",
            f"an array of shape {array.shape} and type {array.dtype}",
            expected="one row of whole milliseconds, zero or more",
            where=name,
        )
    try:
        return _native_trace().from_ms(array.astype(np.uint64), name)
    except ValueError as error:
        raise explained(TraceFormatError, error, "trace-malformed") from None


def read_trace(path: str | os.PathLike[str], name: str | None = None) -> _core.Trace:
    """Read a trace file.

    Args:
        path: The file.
        name: Name in link logs. Default: the name of the file.

    Raises:
        PathNotFoundError: The file does not exist.
        TraceFormatError: See :func:`parse_trace`; ``where`` is ``file:line``.
        PlatformError: The file cannot be read, or the native module is not built.
    """
    trace = parse_trace(read_bytes(path), str(path))
    if name is not None and name != str(path):
        return _native_trace().from_ms(trace.times_ms, name)
    return trace


def read_bytes(path: str | os.PathLike[str]) -> bytes:
    """Read a whole file; errors as in :func:`read_trace`."""
    file = Path(path)
    try:
        if file.stat().st_size > MAX_FILE_BYTES:
            raise TraceFormatError(
                "trace-too-long",
                f"{file.stat().st_size} bytes",
                expected=f"a file of up to {MAX_FILE_BYTES} bytes",
                where=str(path),
            )
        return file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise PathNotFoundError(
            "unknown-trace", f"there is no file {shown(str(path))}", expected="a readable file"
        ) from None
    except (OSError, ValueError) as error:
        if isinstance(error, CcgymError):
            raise
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise PlatformError(
            "file-unreadable", f"cannot be read: {reason}", expected="a readable file", where=str(path)
        ) from None


def trace_text(times_ms: npt.NDArray[np.uint64]) -> bytes:
    """Return the text of a trace file: one number per line, with a newline at the end."""
    return ("\n".join(map(str, times_ms.tolist())) + "\n").encode("ascii")


def write_trace(path: str | os.PathLike[str], times_ms: npt.NDArray[np.uint64]) -> None:
    """Write a trace file, either completely or not at all. Missing folders are created.

    Raises:
        PlatformError: The file cannot be written.
    """
    atomic_write(Path(path), trace_text(times_ms), parents=True)


def _native_trace() -> type[_core.Trace]:
    try:
        from ccgym._core import Trace
    except ImportError as error:
        raise PlatformError(
            "installation-broken",
            f"the native module ccgym._core is missing ({error})",
            expected="an installed or built ccgym",
            hint="run `make setup` in the checkout, or `pip install ccgym`",
        ) from None
    return Trace
