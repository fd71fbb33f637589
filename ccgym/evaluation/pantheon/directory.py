"""Read the content of a directory of Pantheon: metadata, names and plot styles of schemes, and runs.

A directory may be incomplete: archives often contain the statistics without the packet logs, old versions wrote fewer
metadata, and run numbers are arbitrary.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

import yaml

from ccgym.errors import CcgymError, ConfigError, ResultsError, shown
from ccgym.evaluation import pantheon
from ccgym.evaluation.metrics import PacketLog
from ccgym.evaluation.pantheon.logs import MAX_LOG_MS, read_log
from ccgym.evaluation.pantheon.raw_logs import RawFlow, merged, raw_flows
from ccgym.files import UnreadableError, read_bytes, read_json
from ccgym.schemes.registry import COLORS, MARKERS
from ccgym.schemes.style import SchemeStyle, check_color, check_label, check_marker

_MAX_TEXT_BYTES: Final = 16 * 2**20
_MAX_NUMBER: Final = 1e12
_RUN_FILE: Final = re.compile(r"(?P<scheme>.+)_(?:datalink|stats)_run(?P<run>\d+)\.log")

_NUMBERS: Final = {
    "throughput_mbps": re.compile(r"Average throughput: ([\d.]+) Mbit/s"),
    "delay_p95_ms": re.compile(r"95th percentile per-packet one-way delay: ([\d.]+) ms"),
    "loss": re.compile(r"Loss rate: (-?[\d.]+)%"),
}
_CAPACITY: Final = re.compile(r"Average capacity: ([\d.]+) Mbit/s")
_TIME: Final = re.compile(r"^(Start|End) at: (\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)", re.MULTILINE)
_OFFSET: Final = re.compile(r"^(Local|Remote) clock offset: (-?[\d.]+) ms", re.MULTILINE)
_PART: Final = re.compile(r"^-- (?:Total of (?P<count>\d+) flows?|Flow (?P<flow>\d+)):$", re.MULTILINE)


@dataclass(frozen=True)
class Statistics:
    """The content of a run's statistics file, with its rounded numbers."""

    started_epoch_s: float | None = None
    ended_epoch_s: float | None = None
    offsets_ms: Mapping[str, float] = field(default_factory=dict)
    """Clock offsets of the hosts ``Local`` and ``Remote`` to the time server, ms; empty if not measured."""
    capacity_mbps: float | None = None
    flows: Mapping[int, Mapping[str, float]] = field(default_factory=dict)
    """By flow number, 0 for all flows together: ``throughput_mbps``, ``delay_p95_ms``, ``loss`` (a fraction)."""


@dataclass(frozen=True)
class RunFiles:
    """A run: its number and its existing files."""

    scheme: str
    run: int
    logs: Mapping[str, LinkLogs]
    """The existing logs by link, ``datalink`` and ``acklink``."""
    statistics: Statistics

    def read(self, link: str = "datalink") -> PacketLog | None:
        """Read the packets of a link; return None without a log.

        Raises:
            ResultsError: A log is damaged.
        """
        found = self.logs.get(link)
        if found is None:
            return None
        if found.merged is not None:
            return read_log(found.merged)
        # The offsets belong to the hosts that recorded the files.
        local, remote = (self.statistics.offsets_ms.get(which, 0.0) for which in ("Local", "Remote"))
        sender, receiver = (local, remote) if found.sender_local else (remote, local)
        entered, left = (sender, receiver) if link == "datalink" else (receiver, sender)
        return merged(found.raw, found.link_log, egress_offset_ms=entered, ingress_offset_ms=left)


@dataclass(frozen=True)
class LinkLogs:
    """The logs of one direction of a run: the merged log, or the raw logs and mm-link's log."""

    merged: Path | None
    raw: tuple[RawFlow, ...] = ()
    link_log: Path | None = None
    sender_local: bool = True
    """Whether the local host sent the data, in a test between two hosts."""

    @property
    def files(self) -> tuple[Path, ...]:
        """The files that contain the packets."""
        if self.merged is not None:
            return (self.merged,)
        own = [file for one in self.raw for file in (one.egress, one.ingress)]
        return (*own, *([] if self.link_log is None else [self.link_log]))


@dataclass(frozen=True)
class PantheonDirectory:
    """A directory from Pantheon's ``test.py`` or from ``ccgym evaluate``."""

    path: Path
    metadata: Mapping[str, Any]
    """Content of ``pantheon_metadata.json``; empty without this file."""
    styles: tuple[SchemeStyle, ...]
    runs: tuple[RunFiles, ...]
    """The runs, ordered by scheme and number."""
    alone: tuple[Path, ...] = ()
    """Raw logs of the tunnel that cannot be merged, since the log of the other end is missing."""

    @classmethod
    def open(cls, path: Path, config: Path | None = None) -> PantheonDirectory:
        """Read the content of a directory, without its packet logs.

        Args:
            path: The directory.
            config: Pantheon's ``config.yml`` with names and plot styles of the schemes; by default the file in the
                directory, if it exists.

        Raises:
            ResultsError: The path is no directory, has no runs, or a file in it is damaged.
        """
        if path.exists() and not path.is_dir():  # reading it raises the error
            _check_name(path)
            styles = _styles([path.stem], config)
            return cls(path, {}, styles, (RunFiles(path.stem, 1, {"datalink": LinkLogs(path)}, Statistics()),))
        if not path.is_dir():
            raise ResultsError(
                "results-missing", "there is no such directory", where=str(path), expected="a directory of Pantheon"
            )
        found: dict[tuple[str, int], None] = {}
        raw, alone = raw_flows(path)
        for file in sorted(path.iterdir()):
            _check_name(file)
            named = _RUN_FILE.fullmatch(file.name)
            if named is not None:
                found[named["scheme"].removesuffix("_mm"), int(named["run"])] = None
        found |= {(scheme, run): None for scheme, run, link in raw if link == "datalink"}
        if not found:
            raise ResultsError(
                "results-missing",
                "the directory contains no run",
                where=str(path),
                expected="files of Pantheon's test.py, like cubic_datalink_run1.log and cubic_stats_run1.log",
                hint=f"the other end of {alone[0].name} is missing"
                if alone
                else "for results of ccgym, `ccgym logs` writes them; for Pantheon, name the directory of test.py's "
                "option --data-dir, by default src/experiments/data",
            )
        metadata = _metadata(path / pantheon.METADATA_FILE)
        names = list(dict.fromkeys([*map(str, metadata.get("cc_schemes", ())), *(scheme for scheme, _ in found)]))
        runs = []
        for scheme, run in sorted(found, key=lambda one: (names.index(one[0]), one[1])):
            said = _statistics(path, scheme, run)
            logs = {
                link: one
                for link in pantheon.LINKS
                if (one := _link_logs(path, metadata, scheme, run, link, raw.get((scheme, run, link), ()), said))
            }
            runs.append(RunFiles(scheme, run, logs, said))
        return cls(path, metadata, _styles(names, config or _existing(path / pantheon.CONFIG_FILE)), tuple(runs), alone)


def _link_logs(
    path: Path,
    metadata: Mapping[str, Any],
    scheme: str,
    run: int,
    link: str,
    raw: tuple[RawFlow, ...],
    said: Statistics,
) -> LinkLogs | None:
    """Return the logs of a direction: the tunnel's logs, its raw logs, or mahimahi's log with queueing delay only."""
    tunnel = _existing(path / pantheon.tunnel_log_file(scheme, run, link))
    shell = _existing(path / pantheon.mm_log_file(scheme, run, link))
    # A test without flows (-f 0) has no tunnel; Pantheon then reads mahimahi's log.
    if metadata.get("flows") == 0:
        tunnel, raw = shell, ()
    if tunnel is not None:
        return LinkLogs(tunnel)
    if raw:
        return LinkLogs(None, raw, shell, metadata.get("sender_side", "local") == "local")
    return LinkLogs(shell) if shell is not None and not said.flows else None


def _check_name(file: Path) -> None:
    """Check a file name, since its text becomes the name of a scheme in tables and reports."""
    try:
        file.name.encode()
    except UnicodeEncodeError:
        raise ResultsError(
            "name-invalid",
            f"a name that is not UTF-8: {os.fsencode(file.name)!r}",
            where=str(file.parent),
            expected="names in UTF-8",
        ) from None


def _existing(file: Path) -> Path | None:
    return file if file.exists() else None


def _metadata(file: Path) -> Mapping[str, Any]:
    try:
        found = read_json(file)
    except FileNotFoundError:
        return {}
    except UnreadableError as error:
        raise ResultsError(
            "file-malformed", f"the file {error}", where=str(file), expected="a file from Pantheon's test.py"
        ) from None
    if not isinstance(found, dict) or not isinstance(found.get("cc_schemes", []), list):
        raise ResultsError(
            "file-malformed",
            f"the file contains {shown(json.dumps(found))}",
            where=str(file),
            expected="a file from Pantheon's test.py",
        )
    mixed = found.get("test_config") or {}
    flows = mixed.get("flows") or [] if isinstance(mixed, dict) else None
    if not isinstance(flows, list) or not all(isinstance(flow, dict) and "scheme" in flow for flow in flows):
        raise ResultsError(
            "file-malformed",
            f"test_config: {shown(json.dumps(mixed))}",
            where=str(file),
            expected="a list of flows, each with its scheme",
        )
    for name in ("run_times", "runtime", "flows", "interval"):
        value = found.get(name)
        if value is not None and not (isinstance(value, (int, float)) and 0 <= value <= MAX_LOG_MS):
            raise ResultsError(
                "file-malformed",
                f"{name}: {shown(json.dumps(value))}",
                where=str(file),
                expected="a number of at least zero, as written by Pantheon's test.py",
            )
    return found


def _statistics(directory: Path, scheme: str, run: int) -> Statistics:
    file = directory / pantheon.stats_file(scheme, run)
    try:
        text = read_bytes(file, _MAX_TEXT_BYTES).decode(errors="replace")
    except (OSError, UnreadableError):
        return Statistics()
    try:
        return _parsed_statistics(text)
    except (ValueError, OverflowError) as error:
        raise ResultsError(
            "file-malformed",
            f"a number or time cannot be read: {error}",
            where=str(file),
            expected="a file from Pantheon's analysis",
        ) from None


def _parsed_statistics(text: str) -> Statistics:
    times = {which: datetime.strptime(at, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC).timestamp()
             for which, at in _TIME.findall(text)}  # fmt: skip
    parts = list(_PART.finditer(text))
    flows = {}
    for part, end in zip(parts, [*(part.start() for part in parts[1:]), len(text)], strict=False):
        block = text[part.end() : end]
        numbers = {name: _finite(one[1]) for name, rule in _NUMBERS.items() if (one := rule.search(block))}
        if "loss" in numbers:
            numbers["loss"] /= 100
        flows[int(part["flow"] or 0)] = numbers
    capacity = _CAPACITY.search(text)
    return Statistics(
        started_epoch_s=times.get("Start"),
        ended_epoch_s=times.get("End"),
        offsets_ms={which: _finite(offset) for which, offset in _OFFSET.findall(text)},
        capacity_mbps=_finite(capacity[1]) if capacity else None,
        flows=flows,
    )


def _finite(word: str) -> float:
    value = float(word)
    if not abs(value) < _MAX_NUMBER:
        raise ValueError(f"{word[:40]} is too large")
    return value


def _styles(names: list[str], config: Path | None) -> tuple[SchemeStyle, ...]:
    """Return names and plot styles of the schemes, from the configuration or from ccgym's scheme with that name."""
    configured = {} if config is None else _configured(config)
    return tuple(configured.get(name) or _own_style(name, place) for place, name in enumerate(names))


def _own_style(name: str, place: int) -> SchemeStyle:
    from ccgym.evaluation.run import contender

    try:
        own = contender(name).style
    except CcgymError:
        return SchemeStyle(name, name, COLORS[place % len(COLORS)], MARKERS[place % len(MARKERS)])
    return SchemeStyle(name, own.label, own.color, own.marker)


def _configured(config: Path) -> Mapping[str, SchemeStyle]:
    try:
        schemes = yaml.safe_load(read_bytes(config, _MAX_TEXT_BYTES).decode())["schemes"]
        return {
            str(key): SchemeStyle(
                str(key), check_label(entry["name"]), check_color(entry["color"]), check_marker(str(entry["marker"]))
            )
            for key, entry in schemes.items()
        }
    except ConfigError as error:
        raise error.at(str(config)) from None
    except (OSError, UnreadableError, UnicodeDecodeError, yaml.YAMLError, KeyError, TypeError, AttributeError) as error:
        raise ResultsError(
            "file-malformed",
            f"the file cannot be used: {type(error).__name__}: {error}",
            where=str(config),
            expected="Pantheon's src/config.yml: 'schemes:' with name, color and marker of each scheme",
        ) from None
