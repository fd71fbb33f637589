"""Reading files that may hold anything, within bounds; writing them whole or not at all.

Configurations, cards, manifests and results are sent around. Only regular files are read, never more of them than they
may hold, and JSON only as deep and with numbers only as long as what ccgym writes.
"""

from __future__ import annotations

import errno
import json
import os
import secrets
import shutil
import stat
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, Final

from ccgym.errors import PlatformError

MAX_JSON_BYTES: Final = 256 * 2**20
"""Larger JSON files are refused."""
MAX_MODEL_BYTES: Final = 2**31
"""Larger networks and states of training are refused."""
MAX_ARRAYS_BYTES: Final = 2**31
"""Larger files of arrays and series are refused."""
MAX_JSON_DEPTH: Final = 64
"""Deeper nesting is refused; the deepest that ccgym writes is a card with its configuration, about 15 levels."""
MAX_INTEGER_DIGITS: Final = 20
"""Longer integers are refused; 2^64 has 20 digits."""

LOCKED_BYTE: Final = 2**30
"""What :func:`lock` locks on Windows: far behind the content, which others may still read."""

_BINARY: Final = getattr(os, "O_BINARY", 0)  # Windows would change the ends of lines

DISK_ERRORS: Final = frozenset(
    (
        errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EISDIR, errno.EMFILE, errno.ENAMETOOLONG,
        errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.ENOTDIR, errno.ENOTEMPTY, errno.EPERM, errno.EROFS,
    )
)  # fmt: skip
"""Errors of the disk that are shown to users as theirs, and not as a bug."""


class UnreadableError(ValueError):
    """Why a file that exists cannot be read, in a few words; the caller knows what it should have been."""


def read_bytes(path: str | os.PathLike[str], limit: int) -> bytes:
    """The content of a regular file.

    Args:
        path: The file.
        limit: Max size in bytes; no more are read.

    Raises:
        FileNotFoundError: It does not exist.
        UnreadableError: It is not a regular file, too large, or cannot be read.
    """
    try:
        with open_regular(path) as file:
            # Python takes memory for as many bytes as it is asked for.
            content = file.read(min(limit, os.fstat(file.fileno()).st_size) + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnreadableError((error.strerror or str(error)).lower()) from None
    if len(content) > limit:
        raise UnreadableError(f"is larger than {limit} bytes")
    return content


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """A regular file, opened to be read: no folder, no pipe that waits, no device without an end.

    Raises:
        FileNotFoundError: It does not exist.
        UnreadableError: It is something else, or cannot be opened.
    """
    try:
        # Opening a pipe would otherwise wait for its writer; Windows has none.
        descriptor = os.open(path, os.O_RDONLY | _BINARY | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        raise
    except NotADirectoryError as error:
        raise FileNotFoundError(error.errno, "No such file or directory", str(path)) from None
    except OSError as error:
        raise UnreadableError((error.strerror or str(error)).lower()) from None
    kind = os.fstat(descriptor).st_mode
    if stat.S_ISREG(kind):
        return open(descriptor, "rb")
    os.close(descriptor)
    raise UnreadableError("is a directory" if stat.S_ISDIR(kind) else "is not a regular file")


def parse_json(text: str | bytes) -> Any:
    """What a JSON text says.

    Raises:
        UnreadableError: It is not JSON, or nested more deeply or with longer integers than allowed.
    """
    try:
        content = json.loads(text, parse_int=_integer)
    except RecursionError:
        raise _too_deep() from None
    except UnicodeDecodeError:
        raise UnreadableError("is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise UnreadableError(f"is not JSON: {error}") from None
    level = [content]
    for _ in range(MAX_JSON_DEPTH):
        containers = [value for value in level if isinstance(value, (dict, list))]
        level = [inside for one in containers for inside in (one.values() if isinstance(one, dict) else one)]
        if not level:
            return content
    raise _too_deep()


def read_json(path: str | os.PathLike[str], limit: int = MAX_JSON_BYTES) -> Any:
    """What a JSON file says.

    Raises:
        FileNotFoundError: It does not exist.
        UnreadableError: It cannot be read; see :func:`read_bytes` and :func:`parse_json`.
    """
    return parse_json(read_bytes(path, limit))


def atomic_write(path: Path, data: bytes | str, *, parents: bool = False) -> None:
    """Write a file so that it is either the old one or the whole new one, whenever the program stops.

    Args:
        path: The file.
        data: All that it is to hold.
        parents: Whether to make missing folders.

    Raises:
        PlatformError: The disk is full, or the place cannot be written. The old file is untouched.
    """
    # Several threads, processes and machines that share a disk may write the same file: each has its own.
    partial = path.with_name(f".{path.name[:100]}.{secrets.token_hex(6)}.partial")
    try:
        if parents:
            path.parent.mkdir(parents=True, exist_ok=True)
        partial.write_bytes(data.encode() if isinstance(data, str) else data)
        partial.replace(path)
    except OSError as error:
        with suppress(OSError):
            partial.unlink()
        raise disk_error(error, path) from None


def write_directory(path: Path, files: Mapping[str, bytes]) -> None:
    """Replace a directory of files by a new one, all at once, and on the disk when this returns.

    Killed in between, it leaves the old directory under another name, which :func:`settle_directory` takes back.

    Raises:
        PlatformError: The disk is full, or the place cannot be written. What was there is untouched.
    """
    partial, old = _partial(path), _old(path)
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for name, data in files.items():
            _write_through(partial / name, data)
        _sync_directory(partial)
        if path.exists():  # a directory that holds something cannot be renamed over
            shutil.rmtree(old, ignore_errors=True)
            path.replace(old)
        partial.replace(path)
        _sync_directory(path.parent)
        shutil.rmtree(old, ignore_errors=True)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        settle_directory(path)
        raise disk_error(error, path) from None


def settle_directory(path: Path) -> None:
    """Clean up after a :func:`write_directory` that was killed: what was there is there again, and nothing else."""
    if not path.exists() and _old(path).exists():
        _old(path).replace(path)
    shutil.rmtree(_old(path), ignore_errors=True)
    shutil.rmtree(_partial(path), ignore_errors=True)


def lock(file: IO[str]) -> None:
    """Keep other processes out of an open file until it is closed, or this process ends.

    Raises:
        OSError: Another process holds it.
    """
    if sys.platform == "win32":
        import msvcrt

        file.seek(LOCKED_BYTE)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def disk_error(error: OSError, path: str | os.PathLike[str]) -> PlatformError:
    """The error that says what the disk refused."""
    reason = (error.strerror or str(error)).lower()
    expected, hint = "a place with room that can be written", "make room, or choose another place"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        expected, hint = "more files that may be open at a time", "ulimit -n says how many"
    return PlatformError(
        "file-unwritable", f"cannot be written: {reason}", where=str(path), expected=expected, hint=hint
    )


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_INTEGER_DIGITS:
        raise UnreadableError(f"holds a number of {len(digits)} digits")
    return int(digits)


def _too_deep() -> UnreadableError:
    return UnreadableError(f"is nested more than {MAX_JSON_DEPTH} levels deep")


def _partial(path: Path) -> Path:
    return path.with_name(f".{path.name}.partial")


def _old(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


def _write_through(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | _BINARY, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_directory(path: Path) -> None:
    if sys.platform == "win32":  # which opens no directories
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
