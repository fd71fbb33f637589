"""Writing files that survive: whole or not at all, on the disk before anything refers to them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

from ccgym.files import disk_error


def write_file(path: Path, data: bytes | str) -> None:
    """Replace a file by new content, so that it is the old one or the whole new one whenever the machine stops.

    Raises:
        PlatformError: The disk is full, or the place cannot be written. The old file is untouched.
    """
    partial = _partial(path)
    try:
        _write_through(partial, data.encode() if isinstance(data, str) else data)
        partial.replace(path)
        _sync_directory(path.parent)
    except OSError as error:
        partial.unlink(missing_ok=True)
        raise disk_error(error, path) from None


def write_directory(path: Path, files: Mapping[str, bytes]) -> None:
    """Make a directory of files appear all at once, instead of the one that may be there.

    Killed in between, it leaves the old directory under another name, which :func:`settle` takes back.

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
        settle(path)
        raise disk_error(error, path) from None


def settle(path: Path) -> None:
    """Clean up after a :func:`write_directory` that was killed: what was there is there again, and nothing else."""
    if not path.exists() and _old(path).exists():
        _old(path).replace(path)
    shutil.rmtree(_old(path), ignore_errors=True)
    shutil.rmtree(_partial(path), ignore_errors=True)


def _partial(path: Path) -> Path:
    return path.with_name(f".{path.name}.partial")


def _old(path: Path) -> Path:
    return path.with_name(f".{path.name}.old")


def _write_through(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        view = memoryview(data)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
