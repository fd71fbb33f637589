"""The named traces and paths of ``traces/paths.yaml``, and the search of traces by name.

Paths that an adversary found also have names: ``traces/adversary.yaml`` (:mod:`ccgym.experiments.adversary`).

A trace in the catalog is either a file next to ``paths.yaml`` or *declared by construction*: a rule, its parameters,
and the checksum of the result. A 60 s trace of 77.72 Mbit/s is 2.2 MB of text that one line describes, so ccgym
generates it when it is needed. All other names are unknown.

ccgym searches a trace in this order (a process of a cluster first searches the traces that its driver sent):

1. a text with a folder in it is a file (without that file, ``traces/NAME.trace`` is the trace of the catalog);
2. the catalog, by name with or without ``.trace``;
3. the folders listed in ``$CCGYM_TRACE_PATH``, separated by colons;
4. the recorded cellular traces of the package ``mahimahi-traces``;
5. a file in the working directory.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ccgym.config.catalog_file import CatalogFile, FoundPaths, PathEntry, TraceEntry
from ccgym.config.yaml_loader import load_yaml, validate
from ccgym.errors import ConfigError, PathNotFoundError, PlatformError, TraceFormatError, did_you_mean, shown
from ccgym.files import atomic_write
from ccgym.tracetools.text import read_trace, trace_from_times, trace_text

if TYPE_CHECKING:
    from ccgym import _core

CATALOG_FILE: Final = "paths.yaml"
"""Name of the catalog in the folder of traces."""
FOUND_FILE: Final = "adversary.yaml"
"""Name of the file, in the same folder, with the paths that `ccgym adversary` found."""
SEARCH_VARIABLE: Final = "CCGYM_TRACE_PATH"
"""Environment variable with more folders of traces."""
CACHE_VARIABLE: Final = "CCGYM_CACHE_DIR"
"""Environment variable with the folder for files that can be generated again."""


@dataclass(frozen=True)
class TraceSource:
    """The source of a trace: a file, or an entry of the catalog."""

    name: str
    """Short name, without folder and ``.trace``."""
    file: Path | None
    """The file, if there is one."""
    entry: TraceEntry | None
    """The entry, if the trace is in the catalog."""
    recorded: bool = False
    """Whether the trace is a recorded trace of the Linux distribution."""

    @property
    def intended(self) -> tuple[str, ...]:
        """Codes of intended findings: recorded traces have outages."""
        if self.recorded:
            return ("long-gap",)
        return () if self.entry is None else self.entry.intended

    def load(self) -> _core.Trace:
        """Return the native trace. It is generated or read once and shared.

        Raises:
            TraceFormatError: The file is not a trace.
            PathNotFoundError: The file does not exist any more.
            PlatformError: The file cannot be read.
        """
        if self.file is None:
            assert self.entry is not None
            return _constructed(self.name, self.entry)
        try:
            status = self.file.stat()
        except (OSError, ValueError) as error:
            raise PathNotFoundError(
                "unknown-trace", f"there is no trace file {shown(str(self.file))}", expected="a readable file"
            ) from error
        return _read(str(self.file), status.st_mtime_ns, status.st_size)

    def materialize(self) -> Path:
        """Return a real file with this trace, for external programs. Generated traces are in the cache.

        A file in the cache whose content has changed is generated again.

        Raises:
            PlatformError: The cache cannot be written.
        """
        if self.file is not None:
            return self.file.absolute()
        assert self.entry is not None
        target = cache_directory() / "traces" / self.entry.sha256[:16] / f"{self.name}.trace"
        if _digest(target) != self.entry.sha256:
            text = trace_text(self.load().times_ms)
            digest = hashlib.sha256(text).hexdigest()
            if digest != self.entry.sha256:
                raise TraceFormatError(
                    "trace-checksum",
                    f"the generated trace has checksum {digest}",
                    expected=self.entry.sha256,
                    hint="check the generator and the catalog; one of them has changed",
                    where=f"trace {self.name}",
                )
            atomic_write(target, text, parents=True)
        return target


def _digest(file: Path) -> str:
    """Return the checksum of a file; empty if the file cannot be read."""
    try:
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except OSError:
        return ""


def keep_in_cache(file: Path, content: bytes) -> None:
    """Write a file of the cache, if it does not have this content yet.

    Raises:
        PlatformError: The cache cannot be written.
    """
    if _digest(file) != hashlib.sha256(content).hexdigest():
        atomic_write(file, content, parents=True)


@cache
def traces_directory() -> Path:
    """Return the folder with ``paths.yaml``: package data of an installation, or ``traces/`` of a checkout.

    Raises:
        PlatformError: Neither folder exists.
    """
    package = Path(__file__).resolve().parent.parent
    candidates = (package / "_data" / "traces", package.parent / "traces")
    for candidate in candidates:
        if (candidate / CATALOG_FILE).is_file():
            return candidate.resolve()
    raise PlatformError(
        "installation-broken",
        f"{CATALOG_FILE} is missing",
        expected=f"the file in {candidates[0]} or {candidates[1]}",
        hint="install ccgym again",
    )


def cache_directory() -> Path:
    """Return the folder of the cache: ``$CCGYM_CACHE_DIR``, or ``ccgym`` in ``$XDG_CACHE_HOME``."""
    chosen = os.environ.get(CACHE_VARIABLE)
    if chosen:
        return Path(chosen)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "ccgym"


def catalog() -> CatalogFile:
    """Return the catalog; it is read once.

    Raises:
        ConfigError: The catalog is damaged.
        PlatformError: The catalog is missing.
    """
    return _catalog(traces_directory())


def path_entry(name: str) -> tuple[str, PathEntry]:
    """Find a named path by its name or an alias.

    Returns:
        The proper name and the entry.

    Raises:
        PathNotFoundError: The name is unknown; the hint suggests a similar name.
    """
    names = path_names()
    proper = names.get(name)
    if proper is None:
        raise PathNotFoundError(
            "unknown-path",
            f"there is no path {shown(name)}",
            expected="a name from `ccgym paths`, a mahimahi command line, or a file",
            hint=did_you_mean(name, names, "`ccgym paths` lists the names"),
        )
    return proper, catalog().paths[proper]


def path_names() -> Mapping[str, str]:
    """Return all names and aliases of paths, with the proper names."""
    return _path_names(traces_directory())


def resolve_trace(reference: str) -> TraceSource:
    """Find a trace by name or file, in the order that the module's docstring lists.

    Raises:
        PathNotFoundError: The trace does not exist; the hint suggests a similar name.
        PlatformError: The package of a recorded trace is not installed.
    """
    if reference in _RECEIVED:
        return _RECEIVED[reference]
    if not reference or "\0" in reference:
        raise _unknown(reference, "a name or a file")
    folder, base = os.path.split(reference)
    name = base.removesuffix(".trace")
    entries, recorded = catalog().traces, catalog().recorded
    if folder:
        file = Path(reference)
        if _is_file(file):
            return TraceSource(name, file, None)
        if name in entries and _is_traces_directory(file.parent):
            return _from_catalog(name, entries[name])
        hint = f"write {name!r} without folder for the trace of the catalog" if name in entries else ""
        raise PathNotFoundError(
            "unknown-trace", f"there is no trace file {shown(reference)}", expected="a file", hint=hint
        )
    if name in entries:
        return _from_catalog(name, entries[name])
    for directory in filter(None, os.environ.get(SEARCH_VARIABLE, "").split(os.pathsep)):
        for file in (Path(directory, base), Path(directory, f"{base}.trace")):
            if _is_file(file):
                return TraceSource(name, file, None)
    known_as, _, suffix = base.rpartition(".")
    if known_as in recorded.names and suffix in ("up", "down"):
        file = Path(recorded.directory, base)
        if not _is_file(file):
            raise PlatformError(
                "trace-not-installed",
                f"the recorded trace {base} is not on this machine",
                expected=f"{file}, from the package {recorded.package}",
                hint=f"apt-get install {recorded.package}, or put the file into a folder of ${SEARCH_VARIABLE}",
            )
        return TraceSource(base, file, None, recorded=True)
    if _is_file(Path(base)):
        return TraceSource(name, Path(base), None)
    pairs = [f"{pair}.{end}" for pair in recorded.names for end in ("up", "down")]
    if base in recorded.names:
        raise _unknown(reference, f"{base}.up or {base}.down", "use this name only for the path with both traces")
    hint = "generate a trace file: `ccgym paths make constant --rate … -o FILE`"
    raise _unknown(
        reference, "a name from `ccgym paths --traces`, or a file", did_you_mean(name, [*entries, *pairs], hint)
    )


def _unknown(reference: str, expected: str, hint: str = "") -> PathNotFoundError:
    return PathNotFoundError("unknown-trace", f"there is no trace {shown(reference)}", expected=expected, hint=hint)


_RECEIVED: Final[dict[str, TraceSource]] = {}
"""Traces received from another process, by their names in paths."""


def receive_trace(reference: str, content: bytes) -> None:
    """Add a trace that another process has as a file.

    Args:
        reference: Name of the trace in paths.
        content: Content of the file.

    Raises:
        PlatformError: The cache cannot be written.
    """
    base = os.path.basename(reference)
    file = cache_directory() / "received" / hashlib.sha256(content).hexdigest()[:16] / base
    keep_in_cache(file, content)
    _RECEIVED[reference] = TraceSource(base.removesuffix(".trace"), file, None)


def _from_catalog(name: str, entry: TraceEntry) -> TraceSource:
    return TraceSource(name, None if entry.file is None else traces_directory() / entry.file, entry)


def _is_file(file: Path) -> bool:
    try:
        return file.is_file()
    except (OSError, ValueError):
        return False


def _is_traces_directory(folder: Path) -> bool:
    try:
        # In a checkout and in the docs, the name of a trace can also be traces/NAME.trace.
        return folder == Path(traces_directory().name) or folder.resolve() == traces_directory()
    except (OSError, ValueError, RuntimeError):
        return False


@lru_cache(maxsize=4)
def _catalog(folder: Path) -> CatalogFile:
    file, found = folder / CATALOG_FILE, folder / FOUND_FILE
    read = validate(load_yaml(file), CatalogFile)
    further = validate(load_yaml(found), FoundPaths).paths if found.is_file() else {}
    if twice := sorted(read.paths.keys() & further.keys()):
        raise ConfigError(
            "duplicate", f"the path {twice[0]!r}, also in {file.name}", expected="each name once", where=str(found)
        )
    return read.model_copy(update={"paths": {**read.paths, **further}})


@lru_cache(maxsize=4)
def _path_names(folder: Path) -> Mapping[str, str]:
    names: dict[str, str] = {}
    for proper, entry in _catalog(folder).paths.items():
        for name in (proper, *entry.aliases):
            if name in names:
                where = str(folder / CATALOG_FILE)
                raise ConfigError("duplicate", f"the name {name!r} for {names[name]} and {proper}", where=where)
            names[name] = proper
    return names


@lru_cache(maxsize=64)
def _constructed(name: str, entry: TraceEntry) -> _core.Trace:
    assert entry.rule is not None
    return trace_from_times(entry.rule.times(), name)


@lru_cache(maxsize=64)
def _read(file: str, modified_ns: int, size: int) -> _core.Trace:
    return read_trace(file, os.path.basename(file).removesuffix(".trace"))
