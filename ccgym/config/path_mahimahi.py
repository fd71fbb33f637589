"""A path in mahimahi's words: its command line, and the parts of it that Pantheon's metadata names."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final

import numpy as np

from ccgym.config.catalog import cache_directory, keep_in_cache, resolve_trace
from ccgym.config.elements import DIRECTIONS, AnyElement, Link, LinkDirection
from ccgym.config.mahimahi import format_mahimahi
from ccgym.config.queues import Limit
from ccgym.errors import ConfigError
from ccgym.tracetools import generate
from ccgym.tracetools.text import trace_text
from ccgym.units import NS_PER_S, format_rate, format_time

UNCONSTRAINED_LINES: Final = 84
"""Lines of ``1`` in the trace that stands for an unconstrained link where mahimahi needs one: 1008 Mbit/s."""


def as_mahimahi(
    chain: Sequence[AnyElement], bdp: Callable[[], Fraction], *, materialise: bool, duration_ns: int
) -> str:
    """The command line; see :meth:`ccgym.config.path.NetworkPath.to_mahimahi`.

    Args:
        chain: The path's elements, the outermost first.
        bdp: Its bandwidth-delay product in packets.
        materialise: Whether traces are written as absolute paths of real files.
        duration_ns: Length of traces that are made of rates.
    """

    def trace_of(link: LinkDirection | None) -> str:
        if link is not None and link.trace is not None:
            return str(resolve_trace(link.trace).materialise()) if materialise else link.trace
        return str(_rate_trace(None if link is None else link.rate, duration_ns))

    return format_mahimahi(tuple(resolved(element, bdp) for element in chain), trace_of)


def pantheon_parts(chain: Sequence[AnyElement], bdp: Callable[[], Fraction]) -> dict[str, str | None]:
    """The command line's parts; see :meth:`ccgym.config.path.NetworkPath.mahimahi_parts`."""
    place = next((i for i, element in enumerate(chain) if isinstance(element, Link)), len(chain))

    def trace_of(link: LinkDirection | None) -> str:
        if link is None:
            return "unconstrained"
        if link.trace is not None:
            return os.path.basename(link.trace)
        return format_rate(link.rate) if isinstance(link.rate, int) else f"{len(link.rate or ())}-rates"

    def written(elements: Sequence[AnyElement]) -> str | None:
        words = []
        for element in elements:
            try:
                words.append(format_mahimahi([resolved(element, bdp)], trace_of))
            except ConfigError:
                both = dict.fromkeys(filter(None, (element.describe(direction) for direction in DIRECTIONS)))
                words.append(f"[{'; '.join(both)}]")
        return " ".join(words) or None

    link = chain[place] if place < len(chain) else Link()
    assert isinstance(link, Link)
    command = written([link]) or ""
    extra = command.split(" ", 3)[3] if command.startswith("mm-link ") and command.count(" ") > 2 else None
    return {
        "uplink_trace": trace_of(link.uplink),
        "downlink_trace": trace_of(link.downlink),
        "prepend_mm_cmds": written(chain[:place]),
        "append_mm_cmds": written(chain[place + 1 :]),
        "extra_mm_link_args": command if command.startswith("[") else extra,
    }


def resolved(element: AnyElement, bdp: Callable[[], Fraction]) -> AnyElement:
    """Replace limits in bandwidth-delay products by packets."""
    if not isinstance(element, Link):
        return element
    changed: dict[str, LinkDirection] = {}
    for direction in DIRECTIONS:
        link = element.toward(direction)
        limit = getattr(link.queue, "limit", None) if link is not None else None
        if link is not None and limit is not None and limit.bdp is not None:
            sizes = limit.compiled(bdp())
            whole = Limit(packets=sizes.get("packets"), bytes=sizes.get("bytes"))
            queue = link.queue.model_copy(update={"limit": whole})
            changed[direction] = link.model_copy(update={"queue": queue})
    return element.model_copy(update=changed) if changed else element


def _rate_trace(rate: int | tuple[tuple[int, int], ...] | None, duration_ns: int) -> Path:
    """A real trace file of a rate, in the cache; ``None`` is unconstrained."""
    if rate is None:
        times, name = np.ones(UNCONSTRAINED_LINES, dtype=np.uint64), f"{12 * UNCONSTRAINED_LINES}mbps"
    elif isinstance(rate, tuple):
        times = generate.stepped(rate, max(duration_ns, rate[-1][0] + NS_PER_S))
        name = f"{len(rate)}-steps-{hashlib.sha256(repr(rate).encode()).hexdigest()[:12]}"
    else:
        times, name = generate.constant(rate, duration_ns), format_rate(rate)
    target = cache_directory() / "traces" / f"made-{format_time(duration_ns)}" / f"{name}.trace"
    keep_in_cache(target, trace_text(times))
    return target
