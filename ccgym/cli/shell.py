"""``ccgym shell``: any command inside an emulated path, as mahimahi's shells have it, in one process.

The work is native. What is done here: names are turned into files (paths and traces of the catalog), and then this
process becomes the native one, so that exit status, signals and terminal are its own.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections import deque
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NoReturn

from ccgym.cli.common import option, run, say
from ccgym.errors import CcgymError, ConfigError

PREFACE: Final = """\
usage: ccgym shell --path NAME|FILE [options] [-- COMMAND…]

A path that has a name (`ccgym paths`), or a YAML file, in the place of tools. As traces of mm-link, names
of the catalog (`ccgym trace list`) do as well as files. All else is as below.

  ccgym shell --path 77.72mbps -- ping 100.64.0.1
"""

CACHED: Final = "paths"
"""Folder of the cache with paths in the native core's form."""

VALUED: Final = frozenset(
    {
        "--seed", "--name", "--trace", "--spec", "--outside", "--outside-log", "--outside-port", "--user", "--flows",
        "--packet-memory",
        "--uplink-log", "--downlink-log", "--datalink-log", "--acklink-log", "--tunnel-log",
    }
)  # fmt: skip
"""Options whose value may be the next word."""

LINK_VALUED: Final = frozenset(
    {
        "--uplink-log", "--downlink-log", "--uplink-queue", "--downlink-queue", "--uplink-queue-args",
        "--downlink-queue-args",
    }
)  # fmt: skip
"""The same of mm-link."""

OPERANDS: Final = {"mm-delay": 1, "mm-loss": 2, "mm-onoff": 3, "mm-intermittent": 3, "mm-link": 2, "mm-meter": 0}
"""mahimahi's shells, and how many operands each has."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run ``ccgym shell``; returns only for errors."""
    words = list(sys.argv[1:] if argv is None else argv)
    return run(lambda: _shell(words))


def _shell(words: list[str]) -> int:
    if not words:
        raise ConfigError(
            "no path",
            where="ccgym shell",
            expected="--path NAME|FILE, or mahimahi's tools, like `mm-delay 20`",
            hint="`ccgym shell --path 12mbps` starts your shell in that path; --help has more examples",
        )
    if words[0] in ("-h", "--help"):
        say(PREFACE)
        become("shell", "--help")
    become("shell", *prepared(words))


def prepared(words: Sequence[str]) -> list[str]:
    """The words for the native command: names of paths turned into files, and names of traces explained.

    Raises:
        CcgymError: A name that is not known.
    """
    options: list[str] = []
    rest = deque(words)
    named = False
    while rest and rest[0].startswith("-") and rest[0] != "--":
        word = rest.popleft()
        if word == "--path" or word.startswith("--path="):
            name = word.partition("=")[2] if "=" in word else (rest.popleft() if rest else "")
            if not name:
                raise ConfigError("--path without a path", expected="a name from `ccgym paths`, or a YAML file")
            options += ["--spec", str(spec_file(name)), "--name", os.path.basename(name)]
            named = True
        else:
            options.append(word)
            if word in VALUED and rest:
                options.append(rest.popleft())
    if not named:
        for trace, file in traces_of(rest).items():
            options += ["--trace", f"{trace}={file}"]
    return [*options, *rest]


def traces_of(words: Iterable[str]) -> dict[str, Path]:
    """Files of the catalog's traces that a mahimahi command line names; what is a file already is left out.

    Raises:
        CcgymError: A trace that is not there.
    """
    found: dict[str, Path] = {}
    rest = deque(words)
    while rest and (rest[0] == "--" or rest[0] in OPERANDS or rest[0].startswith("-")):
        tool = rest.popleft()
        missing = OPERANDS.get(tool, 0)
        while missing and rest:
            word = rest.popleft()
            if word.startswith("--"):
                if word in LINK_VALUED and rest:
                    rest.popleft()
                continue
            missing -= 1
            if tool == "mm-link" and not Path(word).is_file():
                found[word] = _trace_file(word)
        if tool in LINK_VALUED and rest:
            rest.popleft()
    return found


def _trace_file(word: str) -> Path:
    from ccgym.config.catalog import resolve_trace

    return option("mm-link", resolve_trace, word).materialise()


def spec_file(name: str) -> Path:
    """A file with a path in the native core's form. It is in the cache, named by its content.

    Raises:
        CcgymError: There is no such path.
    """
    from ccgym.config.catalog import cache_directory, keep_in_cache
    from ccgym.config.path import NetworkPath
    from ccgym.emulation.plan import trace_files

    path = option("--path", NetworkPath.from_any, name)
    compiled = path.compile()
    document = {
        "uplink": compiled.uplink,
        "downlink": compiled.downlink,
        "traces": {trace: str(file) for trace, file in trace_files(path.trace_names()).items()},
    }
    text = json.dumps(document, sort_keys=True).encode()
    file = cache_directory() / CACHED / f"{hashlib.sha256(text).hexdigest()[:16]}.json"
    keep_in_cache(file, text)
    return file


def become(*words: str) -> NoReturn:
    """Replace this process by the native command.

    Raises:
        CcgymError: It cannot be started.
    """
    from ccgym.emulation.process import command

    line = command(*words)
    sys.stdout.flush()
    sys.stderr.flush()
    try:
        os.execve(line[0], line, environment_at_start())
    except OSError as error:
        raise CcgymError(f"{line[0]} cannot be started: {error.strerror}", where=f"ccgym {words[0]}") from error


def environment_at_start() -> dict[bytes, bytes]:
    """The environment that this process was started with; Python and libraries add variables of their own."""
    try:
        entries = Path("/proc/self/environ").read_bytes().split(b"\0")
    except OSError:
        return dict(os.environb)
    return {name: value for name, equals, value in (entry.partition(b"=") for entry in entries) if equals}
