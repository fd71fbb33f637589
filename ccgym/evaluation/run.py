"""Contenders (named lists of flows), and their runs over a path.

Most contenders are one scheme with one flow. A contender can also have several flows with different schemes, starts,
round-trip times and sources: ``bbr+cubic@5s`` is a BBR flow, joined by a Cubic flow after 5 s.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Final

from ccgym.config.chain import once
from ccgym.config.hosts import hosts_of
from ccgym.config.path import NetworkPath
from ccgym.config.random_variables import TIME, RandomVariable
from ccgym.errors import ConfigError, shown
from ccgym.evaluation.backends import SIMULATED, is_real
from ccgym.evaluation.prepared_run import Record
from ccgym.schemes.flow import FlowSpec, flow_spec
from ccgym.schemes.groups import expanded
from ccgym.schemes.reading import parse_scheme
from ccgym.schemes.registry import MARKERS, registry
from ccgym.schemes.scheme import Scheme, Venue
from ccgym.schemes.style import SchemeStyle, check_color, check_label, check_marker
from ccgym.units import format_time, parse_time

_PLUS: Final = re.compile(r"(?<!\d[eE])\+")
"""The separator between the flows of a contender; the plus of ``1e+6`` is none."""
_START: Final = re.compile(r"@(\d+(?:\.\d+)?(?:ns|us|ms|s|min))$")
"""Start time of a flow of a contender; without a unit, it would be a policy's version, as in ``aurora@12345678``."""
_FIELDS: Final = frozenset({"name", "flows", "label", "color", "marker"})


@dataclass(frozen=True)
class Contender:
    """A named list of flows that are measured together. Names and parameters of schemes are already checked."""

    key: str
    """Name in files and tables, unique within an experiment."""
    label: str
    flows: tuple[FlowSpec, ...]
    style: SchemeStyle
    """Key, label, color and marker in figures."""
    text: str = ""
    """Text that selects the contender on the command line."""

    @property
    def choices(self) -> tuple[Scheme, ...]:
        """The scheme of each flow."""
        return tuple(flow.choice for flow in self.flows)

    @property
    def choice(self) -> Scheme | None:
        """The scheme, if the contender is one flow with default settings; otherwise None."""
        plain = len(self.flows) == 1 and self.text == self.flows[0].choice.text
        return self.flows[0].choice if plain else None

    @property
    def knows_path(self) -> bool:
        """Whether a flow has the path's parameters. If so, the contender is a reference and does not compete."""
        entries = [registry().get(choice.name, {}) for choice in self.choices]
        return any(entry.get("capabilities", {}).get("knows_path") for entry in entries)

    @property
    def seed_text(self) -> str:
        """Text that determines the random streams of its runs; see :attr:`~ccgym.schemes.scheme.Scheme.seed_text`."""
        return "+".join(
            _with_start(choice.seed_text, flow) for choice, flow in zip(self.choices, self.flows, strict=True)
        )

    @property
    def provenance(self) -> dict[str, Mapping[str, Any]]:
        """Sources and versions of its policies and Python classes, by the scheme's name in files."""
        return {choice.key: one for choice in self.choices if (one := choice.provenance) is not None}

    def with_flows(self, flows: Iterable[FlowSpec]) -> Contender:
        """Return the same contender with other flows."""
        return replace(self, flows=tuple(flows))

    def refuse(self, place: Venue, where: str) -> None:
        """Raise :class:`ConfigError` if one of its flows cannot run on a kind of backend (``place``)."""
        for choice in self.choices:
            choice.refuse(place, where)


def contender(given: object, where: str = "contender") -> Contender:
    """Return a checked contender from one of its short forms.

    Args:
        given: ``"cubic"``; ``"bbr+cubic@5s"``; a flow as :func:`~ccgym.schemes.flow.flow_spec` accepts it, or a list of
            flows; or a mapping ``{"name": …, "flows": […]}``, optionally with ``label``, ``color`` and ``marker``.
        where: Name of the argument in errors.

    Raises:
        ConfigError: A part of it is wrong; the message names the place.
        SchemeNotFoundError: No scheme has that name.
    """
    if isinstance(given, Contender):
        return given
    if isinstance(given, str):
        return _parsed(given, where)
    if isinstance(given, Mapping) and "flows" in given:
        return _named(given, where)
    if isinstance(given, Sequence):
        return _made(tuple(flow_spec(flow, f"{where}[{place}]") for place, flow in enumerate(given)), where)
    return _made((flow_spec(given, where),), where)


def contenders(given: Iterable[object], where: str = "contenders") -> tuple[Contender, ...]:
    """Return checked contenders with distinct styles for figures. The name of a group is replaced by its members.

    Raises:
        ConfigError: There is no contender, two are equal, or one is wrong.
        SchemeNotFoundError: No scheme has that name.
    """
    made: list[Contender] = []
    taken: set[tuple[str, str]] = set()
    for one in expanded(list(given)):
        new = contender(one, where)
        if any(new.key == other.key for other in made):
            raise ConfigError(
                "duplicate", f"{shown(new.text)} is given twice", expected="each scheme once", where=where
            )
        markers = (new.style.marker, *MARKERS)
        marker = next((one for one in markers if (new.style.color, one) not in taken), new.style.marker)
        taken.add((new.style.color, marker))
        made.append(replace(new, style=replace(new.style, marker=marker)))
    if not made:
        raise ConfigError("argument-missing", "no scheme", where=where, expected="at least one")
    return tuple(made)


def parse_contenders(text: str, where: str = "") -> tuple[Contender, ...]:
    """Read a comma-separated list: ``cubic,fixed_window:cwnd=100,bbr+cubic@5s,learned``."""
    parts = [part for part in text.split(",") if part.strip()]
    if not parts:
        raise ConfigError(
            "argument-missing",
            f"{shown(text)} names no scheme",
            expected="names separated by commas, as in cubic,bbr",
            where=where,
        )
    return contenders(parts, where)


def _parsed(text: str, where: str) -> Contender:
    text = text.strip()
    parts = [text] if Path(text).expanduser().exists() else _PLUS.split(text)
    if len(parts) == 1 and not _START.search(text):
        return contender(parse_scheme(text, where), where)
    if not all(part.strip() for part in parts):
        raise ConfigError(
            "text-malformed", shown(text), where=where, expected="a scheme on both sides of '+', as in bbr+cubic@5s"
        )
    return _made(tuple(_parsed_flow(part.strip(), where) for part in parts), where)


def _parsed_flow(text: str, where: str) -> FlowSpec:
    start = _START.search(text)
    flow = flow_spec(parse_scheme(text[: start.start()] if start else text, where), where)
    return flow if start is None else starting_at(flow, parse_time(start[1]))


def starting_at(flow: FlowSpec, start_ns: int) -> FlowSpec:
    """Return the same flow with another start time, nanoseconds."""
    start = RandomVariable(TIME, "constant", (float(start_ns),), written=format_time(start_ns))
    return flow.model_copy(update={"start": start})


def _named(given: Mapping[Any, Any], where: str) -> Contender:
    unknown = sorted(str(key) for key in given if key not in _FIELDS)
    name, flows = given.get("name"), given.get("flows")
    if unknown or not isinstance(name, str) or not name or isinstance(flows, str) or not isinstance(flows, Sequence):
        raise ConfigError(
            "unknown-key",
            f"unknown: {', '.join(unknown)}" if unknown else shown(dict(given)),
            where=where,
            expected="{name: …, flows: […]}, optionally with label, color and marker",
        )
    if not re.fullmatch(r"[\w.+-]+", name):
        raise ConfigError(
            "name-invalid", shown(name), where=f"{where}: name", expected="letters, digits, '_', '.', '+' and '-'"
        )
    made = contender(flows, f"{where}: flows")
    style = replace(
        made.style,
        key=name,
        label=check_label(str(given.get("label", name))),
        color=check_color(str(given.get("color", made.style.color))),
        marker=check_marker(str(given.get("marker", made.style.marker))),
    )
    return replace(made, key=name, label=style.label, style=style, text=name)


def _made(flows: tuple[FlowSpec, ...], where: str) -> Contender:
    if not flows:
        raise ConfigError("argument-missing", "no flow", where=where, expected="at least one")
    text = "+".join(_with_start(flow.choice.text, flow) for flow in flows)
    styles = [flow.choice.style for flow in flows]
    key = "+".join(_with_start(style.key, flow, "_at_") for style, flow in zip(styles, flows, strict=True))
    label = " + ".join(_with_start(style.label, flow, " from ") for style, flow in zip(styles, flows, strict=True))
    style = replace(styles[0], key=key, label=label)
    return Contender(key=key, label=label, flows=flows, style=style, text=text)


def _with_start(text: str, flow: FlowSpec, before: str = "@") -> str:
    return f"{text}{before}{format_time(flow.start_ns)}" if flow.start_ns else text


@dataclass(frozen=True)
class Run:
    """Description of one run: all parameters that decide its outcome, and a name."""

    path: NetworkPath
    contender: Contender
    duration_ns: int
    """Length of the run, nanoseconds, in virtual time; with real packets, in real time."""
    seed: int
    record: Record = field(default_factory=Record)
    backend: str = SIMULATED
    """The backend: ``sim``, ``emulated``, ``mahimahi`` or ``remote``."""
    name: str = ""
    """For messages and files: ``cubic_run1``. Not part of the digest."""
    number: int = 1
    """Number of the repetition, from 1. Not part of the digest: repetitions differ by their seeds."""

    @property
    def real(self) -> bool:
        """Whether packets are real: a run then takes its length in real time, and never repeats exactly."""
        return is_real(self.backend)

    @cached_property
    def digest(self) -> str:
        """SHA-256 of all parameters that decide the outcome.

        The recording of ACKs and link events is left out, since no number depends on it. The memory limit is left out
        for the same reason.
        """
        from ccgym import _core

        return digest(
            {
                "ccgym": _core.__version__,
                "path": path_digest(self.path),
                "flows": [_identity(flow) for flow in self.contender.flows],
                "duration_ns": self.duration_ns,
                "seed": self.seed,
                "record": [self.record.packets, parse_time(self.record.series)],
                "backend": self.backend,
            }
        )


def digest(data: Any) -> str:
    """Return the SHA-256 of plain data in canonical JSON."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()


@once
def path_digest(path: NetworkPath) -> str:
    """Return the SHA-256 of the compiled path and its traces' content; for a path between machines, of the machines."""
    if (hosts := hosts_of(path)) is not None:
        return digest(hosts.identity)
    compiled = path.compile()
    links = [compiled.links] if compiled.links else []
    return digest([compiled.uplink, compiled.downlink, *links, trace_digests(path)])


@once
def trace_digests(path: NetworkPath) -> dict[str, str]:
    """Return the SHA-256 of each trace of a path, by name."""
    return {name: hashlib.sha256(trace.times_ms.tobytes()).hexdigest() for name, trace in sorted(path.traces().items())}


def _identity(flow: FlowSpec) -> dict[str, Any]:
    """Return a flow as plain data, with the content of the files of its scheme, but without their names and places."""
    return flow.model_dump(mode="json") | flow.choice.identity
