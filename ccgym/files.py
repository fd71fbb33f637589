"""Reading of untrusted files within limits; writing of files either completely or not at all.

Users exchange configurations, cards, manifests and results. So only regular files are read, up to a maximum size.
JSON is read only up to a maximum depth and length of numbers; everything that ccgym writes is below these limits.
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
"""Max size of a JSON file."""
MAX_MODEL_BYTES: Final = 2**31
"""Max size of the file of a network or of a training's state."""
MAX_ARRAYS_BYTES: Final = 2**31
"""Max size of a file of arrays or series."""
MAX_JSON_DEPTH: Final = 64
"""Max levels of nesting in JSON. A card with its configuration, the deepest that ccgym writes, has about 15 levels."""
MAX_INTEGER_DIGITS: Final = 20
"""Max digits of an integer in JSON; 2^64 has 20 digits."""

LOCKED_BYTE: Final = 2**30
"""The byte that :func:`lock` locks on Windows: far behind the content, so that other processes can read the content."""

_BINARY: Final = getattr(os, "O_BINARY", 0)  # otherwise Windows changes the line endings

DISK_ERRORS: Final = frozenset(
    (
        errno.EACCES, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EISDIR, errno.EMFILE, errno.ENAMETOOLONG,
        errno.ENFILE, errno.ENOMEM, errno.ENOSPC, errno.ENOTDIR, errno.ENOTEMPTY, errno.EPERM, errno.EROFS,
    )
)  # fmt: skip
"""Disk errors that are shown to users as errors of the disk, not as bugs of ccgym."""


class UnreadableError(ValueError):
    """An existing file cannot be read; the text is the reason. The caller adds what was expected."""


def read_bytes(path: str | os.PathLike[str], limit: int) -> bytes:
    """Return the content of a regular file.

    Args:
        path: The file.
        limit: Max size in bytes; at most one byte more is read.

    Raises:
        FileNotFoundError: The file does not exist.
        UnreadableError: The file is not a regular file, is too large, or cannot be read.
    """
    try:
        with open_regular(path) as file:
            # Python allocates memory for as many bytes as the argument of `read` is.
            content = file.read(min(limit, os.fstat(file.fileno()).st_size) + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnreadableError((error.strerror or str(error)).lower()) from None
    if len(content) > limit:
        raise UnreadableError(f"is larger than {limit} bytes")
    return content


def open_regular(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading; refuse folders, pipes and devices.

    Raises:
        FileNotFoundError: The file does not exist.
        UnreadableError: The path is not a regular file, or cannot be opened.
    """
    try:
        # Without O_NONBLOCK (which Windows does not have), opening a pipe waits for a writer.
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
    """Parse a JSON text.

    Raises:
        UnreadableError: The text is not JSON, is nested too deeply, or has too long integers.
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
    """Read a JSON file.

    Raises:
        FileNotFoundError: The file does not exist.
        UnreadableError: The file cannot be read; see :func:`read_bytes` and :func:`parse_json`.
    """
    return parse_json(read_bytes(path, limit))


def atomic_write(path: Path, data: bytes | str, *, parents: bool = False) -> None:
    """Write a file so that it has either its old or its new content, even if the program is killed in between.

    Args:
        path: The file.
        data: The new content.
        parents: Whether to create missing folders.

    Raises:
        PlatformError: The disk is full, or the path cannot be written. The old file is unchanged.
    """
    # Several threads, processes or machines may write the same file: each one has its own partial file.
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
    """Replace a directory of files by a new one, in one step. It is on the disk when this function returns.

    If the program is killed in between, the old directory may have another name; :func:`settle_directory` restores it.

    Raises:
        PlatformError: The disk is full, or the path cannot be written. The old directory is unchanged.
    """
    partial, old = _partial(path), _old(path)
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for name, data in files.items():
            _write_through(partial / name, data)
        _sync_directory(partial)
        if path.exists():  # a rename cannot replace a directory that is not empty
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
    """Clean up after a killed :func:`write_directory`: restore the old directory and remove partial ones."""
    if not path.exists() and _old(path).exists():
        _old(path).replace(path)
    shutil.rmtree(_old(path), ignore_errors=True)
    shutil.rmtree(_partial(path), ignore_errors=True)


def lock(file: IO[str]) -> None:
    """Lock an open file against other processes until the file is closed or this process ends.

    Raises:
        OSError: Another process has the lock.
    """
    if sys.platform == "win32":
        import msvcrt

        file.seek(LOCKED_BYTE)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def disk_error(error: OSError, path: str | os.PathLike[str]) -> PlatformError:
    """Return the exception for an error of the disk."""
    reason = (error.strerror or str(error)).lower()
    expected, hint = "a writable place with free space", "free some space, or choose another place"
    if error.errno in (errno.EMFILE, errno.ENFILE):
        expected, hint = "a higher limit of open files", "see the limit with: ulimit -n"
    return PlatformError(
        "file-unwritable", f"cannot be written: {reason}", where=str(path), expected=expected, hint=hint
    )


def _integer(digits: str) -> int:
    if len(digits.lstrip("-")) > MAX_INTEGER_DIGITS:
        raise UnreadableError(f"contains a number of {len(digits)} digits")
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
    if sys.platform == "win32":  # Windows cannot open directories
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
