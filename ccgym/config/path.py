"""The network path between a sender and its receiver, in both directions.

:class:`NetworkPath` is the only description of a path in ccgym. The simulator, the emulated path, mahimahi, the
environments and the reports use it. It is immutable, and compares and pickles by content. Four ways to create a path::

    NetworkPath(rate="32mbps", rtt="15ms", queue="40p", loss=0.0)
    NetworkPath.from_mahimahi("mm-delay 51 mm-loss uplink 0.0006 mm-link 77.72mbps.trace 77.72mbps.trace "
                              "--uplink-queue=droptail --uplink-queue-args=packets=94")
    NetworkPath.named("77.72mbps")
    NetworkPath.from_any(...)          # any of these forms, a YAML file or a trace file
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypeAlias

from pydantic import BeforeValidator, GetJsonSchemaHandler, ValidationError, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from ccgym.config.capacity import capacity
from ccgym.config.catalog import path_entry, path_names, resolve_trace, traces_directory
from ccgym.config.catalog_file import PublishedResult
from ccgym.config.chain import Chain, CompiledPath, once
from ccgym.config.declared import DIRECTIONS, Direction
from ccgym.config.mahimahi import OVERHEAD, looks_like_mahimahi, parse_mahimahi
from ccgym.config.mahimahi_writer import as_shells, format_shells, pantheon_parts
from ccgym.config.models import AnyElement, AnyQueue
from ccgym.config.path_arguments import KEYS as SHORTHAND_KEYS
from ccgym.config.path_arguments import Shorthand, fields_of
from ccgym.config.path_check import mistakes_in
from ccgym.config.yaml_loader import config_error, load_yaml, validate
from ccgym.errors import ConfigError, PathNotFoundError, did_you_mean, located, shown
from ccgym.tracetools.check import Finding
from ccgym.units import NS_PER_MS, PACKET_BYTES, TimeLike, parse_time

StepsOf: TypeAlias = "str | Sequence[tuple[TimeLike, str]]"
"""One quantity with its unit, or steps ``[("0s", "16mbps"), ("3.75s", "256mbps")]``."""
TimeStepsOf: TypeAlias = "TimeLike | Sequence[tuple[TimeLike, TimeLike]]"
"""A time, or times in steps ``[("0s", "20ms"), ("5s", "40ms")]``."""
QueueLike: TypeAlias = "str | Mapping[str, Any] | AnyQueue"
"""``"94p"``, ``"30000B"``, ``"1.5bdp"``, ``"infinite"``, ``"codel"``, or ``{"kind": "codel", "limit": "1000p"}``."""
PathLike: TypeAlias = "NetworkPath | str | os.PathLike[str] | Mapping[str, Any]"
"""Any value that :meth:`NetworkPath.from_any` accepts."""


class NetworkPath(Chain):
    """A path between a sender and a receiver.

    Give a ``rate`` (exact, without a file) or a ``trace``, or a complete ``mahimahi`` command line, or a ``chain`` of
    elements. With ``rate`` or ``trace``, the path consists of, in the order from the sender: the bottleneck with its
    queue, random loss, further elements, jitter, and the propagation delay, half of the RTT in each direction.

    Args:
        rate: Bits per second of the bottleneck: ``"32mbps"``, or steps ``[("0s", "16mbps"), ("3.75s", "256mbps")]``.
        trace: Delivery trace of the bottleneck, in place of ``rate``: a name of the catalog or a file.
        rtt: Round-trip propagation delay, ``"15ms"``, or steps. Required with ``rate`` or ``trace``.
        queue: Queue of the bottleneck: ``"40p"``, ``"30000B"``, ``"1.5bdp"``, ``"infinite"``, ``"codel"``,
            ``"fq_codel"``, or a mapping such as ``{"kind": "codel", "limit": "1000p", "ecn": True}``. Default: droptail
            with one bandwidth-delay product. If rate or RTT change, the largest product counts.
        loss: Probability that a data packet is lost at random after the bottleneck: ``0.01``, ``"1%"``, or steps.
        jitter: Extra delay of data packets: the maximum of a uniform distribution (``"2ms"``), or a mapping such as
            ``{"distribution": {"kind": "normal", "mean": "5ms", "std": "1ms"}, "reorder": True}``.
        reverse_rate: Bits per second of the reverse direction. Default: no limit for ACKs.
        reverse_trace: Delivery trace of the reverse direction, in place of ``reverse_rate``.
        reverse_queue: Queue of the reverse direction. Default: infinite.
        elements: Further elements, the outermost first, such as ``{"kind": "gilbert_elliott", "good_to_bad": "1%",
            "bad_to_good": "25%"}``; see :mod:`ccgym.config.models`.
        overhead: Bytes added to the IP length of every packet. Default: 0 with a
            rate, 4 (as in mahimahi) with a trace.
        device_packets: Packets in a device buffer below the queue, not counted by the queue (as in ns-3); needs a rate.
        mahimahi: A mahimahi command line; see :mod:`ccgym.config.mahimahi`.
        named: A name of the catalog. With ``mahimahi``, ``named`` or ``chain``, the arguments ``rate``, ``trace``,
            ``rtt``, ``queue``, ``loss`` and ``jitter`` change the path; see :mod:`ccgym.config.path_arguments`.
        chain: All elements, the outermost first. Every path is stored in this form.
        links: Several links in a row by name, the sender's link first. Each link is a path. Flows can have a ``route``
            over some of the links; a flow without a route crosses all links.
        name, title, source: Texts to display.

    Raises:
        ConfigError: An argument is missing, contradictory or out of range.
        UnitError: A quantity has no unit or an unknown unit.
    """

    links: tuple[tuple[str, NetworkPath], ...] = ()
    """Names and paths of several links, in the order in which data without a route crosses them."""
    name: str | None = None
    """Name in the catalog, or the user's name."""
    title: str = ""
    source: str = ""
    published_results: tuple[PublishedResult, ...] = ()
    """Results of schemes on this path in the report ``published_source``."""
    published_source: str = ""

    ACCEPTED_KEYS: ClassVar[tuple[str, ...]] = (
        *SHORTHAND_KEYS, "mahimahi", "named", "chain", "links", "name", "title", "source", "published_results",
        "published_source",
    )  # fmt: skip

    @classmethod
    def __get_pydantic_json_schema__(cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        whole = handler.resolve_ref_schema(handler(core_schema))
        short = handler.resolve_ref_schema(handler(Shorthand.__pydantic_core_schema__))
        texts = {key: {"type": "string"} for key in ("mahimahi", "named")}
        links = {"links": {"type": "object"}}
        whole["properties"] = {**short["properties"], **texts, **whole["properties"], **links}
        return {"anyOf": [whole, {"type": "string"}]}

    if TYPE_CHECKING:

        def __init__(
            self,
            *,
            rate: StepsOf | None = None,
            trace: str | os.PathLike[str] | None = None,
            rtt: TimeStepsOf | None = None,
            queue: QueueLike | None = None,
            loss: float | str | Sequence[tuple[TimeLike, float | str]] = 0.0,
            jitter: TimeLike | Mapping[str, Any] | None = None,
            reverse_rate: StepsOf | None = None,
            reverse_trace: str | os.PathLike[str] | None = None,
            reverse_queue: QueueLike | None = None,
            elements: Iterable[AnyElement | Mapping[str, Any]] = (),
            overhead: int | None = None,
            device_packets: int = 0,
            mahimahi: str | None = None,
            named: str | None = None,
            chain: Iterable[AnyElement | Mapping[str, Any]] | None = None,
            links: Mapping[str, PathLike] | Sequence[tuple[str, NetworkPath]] | None = None,
            name: str | None = None,
            title: str = "",
            source: str = "",
            published_results: Iterable[PublishedResult] = (),
            published_source: str = "",
        ) -> None: ...

    else:

        def __init__(self, **data: Any) -> None:
            try:
                super().__init__(**data)
            except ValidationError as error:
                raise config_error(error, type(self)) from None

    @model_validator(mode="before")
    @classmethod
    def _from_shorthand(cls, data: Any) -> Any:
        return fields_of(cls, data) if isinstance(data, Mapping) else data

    # --- Ways in --------------------------------------------------------------------------------------------------

    @classmethod
    def from_mahimahi(cls, command: str | Sequence[str], *, name: str | None = None) -> NetworkPath:
        """Read a chain of mahimahi shells; the left-most shell is the outermost.

        As in mahimahi, delays are in whole milliseconds and every packet counts 4 bytes more.

        Args:
            command: The command line, or its words; ``\\`` at the end of a line is allowed.
            name: A name for the path.

        Raises:
            ConfigError: mahimahi would refuse or silently ignore a word; see :mod:`ccgym.config.mahimahi`.
        """
        return cls(chain=parse_mahimahi(command), name=name)

    @classmethod
    def named(cls, name: str) -> NetworkPath:
        """Return a path of the catalog, ``traces/paths.yaml``; ``ccgym paths`` lists all paths.

        Raises:
            PathNotFoundError: The name is unknown; the hint suggests a similar name.
        """
        return _named(cls, path_entry(name)[0], traces_directory())

    @staticmethod
    def names() -> tuple[str, ...]:
        """Return the names of the catalog's paths, without aliases, in the order of the catalog."""
        return tuple(dict.fromkeys(path_names().values()))

    @classmethod
    def from_any(cls, value: object) -> NetworkPath:
        """Read a path in any form.

        Args:
            value: A :class:`NetworkPath`; a mapping of its arguments; a mahimahi command line; the name of a path, with
                or without ``.trace``; a YAML file with the arguments of a path (the default name is the name of the
                file); or a trace file, which is used in both directions without delay and with infinite queues, as
                Pantheon does with ``--uplink-trace``.

        Raises:
            ConfigError: The value is none of these forms, or is invalid.
            PathNotFoundError: The name or file does not exist.
        """
        if isinstance(value, NetworkPath):
            return value
        if isinstance(value, Mapping):
            return cls(**{str(key): part for key, part in value.items()})
        if isinstance(value, os.PathLike):
            value = os.fspath(value)
        if not isinstance(value, str) or not value.strip():
            raise ConfigError(
                "wrong-type",
                f"{shown(value)} is not a path",
                expected="a name, a mahimahi command line, a YAML or trace file, or a mapping",
                where="path",
            )
        if looks_like_mahimahi(value):
            return cls.from_mahimahi(value)
        if value.endswith((".yaml", ".yml")):
            path = validate(load_yaml(value), cls)
            stem = os.path.splitext(os.path.basename(value))[0]
            return path if path.name or stem in path_names() else path.model_copy(update={"name": stem})
        folder, base = os.path.split(value)
        stem = base.removesuffix(".trace")
        if stem in path_names() and (not folder or not os.path.exists(value)):
            if folder:
                resolve_trace(value)  # without a file, only traces/NAME.trace is allowed as the name of a path
            return cls.named(stem)
        try:
            return _bare_trace(cls, value)
        except PathNotFoundError as error:
            raise PathNotFoundError(
                "unknown-path",
                f"there is neither a path nor a trace {shown(value)}",
                expected="a name from `ccgym paths`, a mahimahi command line, or a file",
                hint=did_you_mean(stem, path_names(), error.hint),
            ) from None

    def known(self) -> NetworkPath:
        """Return the path of the catalog with the same elements, which has published results; else the path itself."""
        return next((path for name in self.names() if (path := self.named(name)).chain == self.chain), self)

    @property
    def published(self) -> dict[str, PublishedResult]:
        """Published results by scheme."""
        return {result.scheme: result for result in self.published_results}

    # --- Ways out -------------------------------------------------------------------------------------------------

    @once
    def compile(self, duration_ns: int | None = None) -> CompiledPath:
        """Compile the path for the native core.

        Args:
            duration_ns: Duration of the capacity in the facts. Default: one period of a trace.

        Raises:
            ConfigError: A limit is in bandwidth-delay products, but the path has no delay.
            PathNotFoundError: A trace does not exist.
            PlatformError: A trace cannot be read, or the native core is missing.
            TraceFormatError: A file is not a trace.
        """
        uplink, downlink = (self.compiled(self.chain, way) for way in DIRECTIONS)
        links = (
            {"name": name, **{way: self.compiled(link.chain, way) for way in DIRECTIONS}} for name, link in self.links
        )
        return CompiledPath(uplink, downlink, self.facts(duration_ns), self.traces(), tuple(links))

    def along(self, route: Sequence[str], direction: Direction = "uplink") -> NetworkPath:
        """Return the path of a flow whose route crosses some of the links.

        Args:
            route: Names of links; empty: all links.
            direction: The direction of the links that data crosses.

        Raises:
            ConfigError: A link of the route does not exist, or is in the route twice.
        """
        if not route and direction == "uplink":
            return self
        known = dict(self.links)
        for place, name in enumerate(route):
            if name not in known or name in route[:place]:
                again = " again" if name in known else ""
                raise ConfigError(
                    "unknown-name",
                    f"{shown(name)}{again}",
                    where=f"route[{place}]",
                    expected=f"each of {', '.join(known)} at most once" if known else "no route: the path has one link",
                    hint=did_you_mean(name, known),
                )
        crossed = [element for name in reversed(route) for element in known[name].chain] if route else self.chain
        # Limits in bandwidth-delay products refer to the product of the whole path.
        chain = self._in_packets(crossed)
        return NetworkPath(chain=chain if direction == "uplink" else [one.mirrored() for one in reversed(chain)])

    def to_mahimahi(self, *, materialize: bool = False, duration: TimeLike = "60s") -> str:
        """Write the path as a mahimahi command line, without a command to run in it.

        mahimahi does not support rates. So a link with a rate becomes a trace file in the cache; a direction without a
        limit becomes a trace of 1008 Mbit/s.

        Args:
            materialize: Write every trace as the absolute path of a real file. If false, names stay unchanged.
            duration: Duration of traces that are generated from rates.

        Raises:
            ConfigError: The path has a feature that mahimahi does not have: fractions of a millisecond, changes over
                time, jitter, burst loss, other queue disciplines.
        """
        return format_shells(self.to_mahimahi_shells(materialize=materialize, duration=duration))

    def to_mahimahi_shells(self, *, materialize: bool = False, duration: TimeLike = "60s") -> list[list[str]]:
        """Write the path like :meth:`to_mahimahi`, as the words of each shell, the outermost first."""
        return as_shells(self.chain_in_packets(), materialize=materialize, duration_ns=parse_time(duration))

    def mahimahi_parts(self) -> dict[str, str | None]:
        """Return the path in the terms of Pantheon's metadata: names of traces, and the commands around ``mm-link``.

        Elements that mahimahi does not have are described in words, in brackets.

        Returns:
            ``uplink_trace``, ``downlink_trace``, ``prepend_mm_cmds``, ``append_mm_cmds``, ``extra_mm_link_args``.
        """
        return pantheon_parts(self.chain_in_packets())

    def check(self) -> list[Finding]:
        """Look for mistakes in the path and its traces; see :func:`ccgym.tracetools.check.check_trace`.

        Returns:
            All findings that the catalog does not list as intended, errors first.
        """
        return mistakes_in(self, self.name or "")

    @once
    def describe(self) -> str:
        """Describe the elements of each direction, the capacity, the base RTT and the source, in a few lines."""
        lines = [": ".join(filter(None, (self.name or "unnamed path", self.title)))]
        for title, chain in [(f"{name} ", link.chain) for name, link in self.links] or [("", self.chain)]:
            for label, direction in zip(("data", "acks"), DIRECTIONS, strict=True):
                crossed = reversed(chain) if direction == "uplink" else chain
                words = [element.describe(direction) for element in crossed]
                lines.append(f"  {title + label:<9} {' → '.join(filter(None, words)) or 'unconstrained'}")
        delays = [float(delay) / NS_PER_MS for _, delay in self.rtt_steps()]
        rtt = f"  base RTT  {' to '.join(f'{delay:g}' for delay in sorted({min(delays), max(delays)}))} ms"
        if self.data_links:
            product, steps = float(self.bdp_packets), max(len(capacity(link)) for link in self.data_links)
            changes = f" on average ({steps} steps)" if steps > 1 else ""
            lines.append(f"  capacity  {self.mean_rate_mbps:.6g} Mbit/s{changes}")
            rtt += f"; bandwidth-delay product {product:.4g} packets of {PACKET_BYTES} bytes"
            limit = getattr(self.queue, "limit", None)
            if limit is not None and limit.packets is not None and product > 0:
                rtt += f"; queue {limit.packets / product:.3g} of it"
        lines.append(rtt)
        with suppress(ConfigError):
            if all(link.trace is not None for link in self.data_links) and self.trace_names():
                lines.append(f"  mahimahi  {self.to_mahimahi()}")
        if self.source:
            lines.append(f"  source    {self.source}")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.describe()


PathField: TypeAlias = Annotated[NetworkPath, BeforeValidator(NetworkPath.from_any)]
"""A path in another model, in any form that :meth:`NetworkPath.from_any` accepts."""


# Pydantic's own signature has only the fields of a path, not the short forms.
NetworkPath.__signature__ = inspect.Signature(
    [inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=None) for key in NetworkPath.ACCEPTED_KEYS]
)


@cache
def _named(cls: type[NetworkPath], name: str, catalog: Path) -> NetworkPath:
    """Build a path of the catalog; the cache depends on the catalog."""
    entry = path_entry(name)[1]
    with located(f"path {name!r} of the catalog"):
        chain = cls(**entry.path).chain
    return cls(
        chain=chain,
        name=name,
        title=entry.title,
        source=entry.source,
        published_results=[one.model_copy(update={"scheme": scheme}) for scheme, one in entry.published.items()],
        published_source=entry.published_source,
    )


def _bare_trace(cls: type[NetworkPath], reference: str) -> NetworkPath:
    """Return a path that is only a trace, used in both directions."""
    name = resolve_trace(reference).name
    link = {"trace": reference, "overhead": OVERHEAD}
    return cls(
        chain=[{"kind": "link", "uplink": link, "downlink": link}],
        name=name,
        title="only a trace: no delay, infinite queues; give a mahimahi command line for a complete path",
    )
