"""A path as a mahimahi command line, and the parts of this command line in Pantheon's metadata."""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import numpy as np

from ccgym.config.catalog import cache_directory, keep_in_cache, resolve_trace
from ccgym.config.declared import DIRECTIONS
from ccgym.config.mahimahi import TOOLS
from ccgym.config.mahimahi_queue import QUEUE_ARGUMENTS
from ccgym.config.models import (
    AnyElement,
    AnyQueue,
    Delay,
    Drophead,
    Droptail,
    Infinite,
    Intermittent,
    Link,
    LinkDirection,
    Loss,
    MahimahiCodel,
    MahimahiPie,
    OnOff,
)
from ccgym.errors import ConfigError
from ccgym.tracetools import generate
from ccgym.tracetools.text import trace_text
from ccgym.units import NS_PER_MS, NS_PER_S, format_rate, format_time

UNCONSTRAINED_LINES: Final = 84
"""Lines ``1`` in the trace of a direction without limit, because mahimahi requires a trace: 1008 Mbit/s."""


def as_shells(chain: Sequence[AnyElement], *, materialize: bool, duration_ns: int) -> list[list[str]]:
    """Return the words of each shell, the outermost first; see :meth:`ccgym.config.path.NetworkPath.to_mahimahi`.

    Args:
        chain: The path's elements, the outermost first, without limits in bandwidth-delay products.
        materialize: Whether traces are written as absolute paths of real files.
        duration_ns: Duration of traces that are generated from rates.
    """

    def trace_of(link: LinkDirection | None) -> str:
        if link is not None and link.trace is not None:
            return str(resolve_trace(link.trace).materialize()) if materialize else link.trace
        return str(_rate_trace(None if link is None else link.rate, duration_ns))

    return [_write(element, trace_of) for element in chain] or [["mm-meter"]]  # it has no effect


def format_shells(shells: Sequence[Sequence[str]]) -> str:
    """Return the command line of these shells; :func:`ccgym.config.mahimahi.parse_mahimahi` is the inverse."""
    words: list[str] = []
    for number, shell in enumerate(shells, start=1):
        words += shell
        if shell[0] == "mm-link" and number < len(shells):
            words.append("--")  # otherwise this shell reads the options of the next shell
    return shlex.join(words)


def pantheon_parts(chain: Sequence[AnyElement]) -> dict[str, str | None]:
    """Return the parts of the command line; see :meth:`ccgym.config.path.NetworkPath.mahimahi_parts`."""
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
                words.append(format_shells([_write(element, trace_of)]))
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


def _rate_trace(rate: int | tuple[tuple[int, int], ...] | None, duration_ns: int) -> Path:
    """Return a trace file in the cache for a rate; ``None``: no limit."""
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


def _write(element: AnyElement, trace_of: Callable[[LinkDirection | None], str]) -> list[str]:
    if isinstance(element, Delay):
        if element.direction != "both":
            raise _inexpressible(f"a delay of the {element.direction} only", "the same delay in both directions")
        if isinstance(element.delay, tuple):
            raise _inexpressible("a delay that changes", "one delay")
        if element.delay % NS_PER_MS:
            raise _inexpressible(f"a one-way delay of {format_time(element.delay)}", "whole milliseconds each way")
        return ["mm-delay", str(element.delay // NS_PER_MS)]
    if isinstance(element, Loss):
        if isinstance(element.probability, tuple):
            raise _inexpressible("a loss rate that changes", "one loss rate")
        return ["mm-loss", element.direction, _decimal(element.probability)]
    if isinstance(element, OnOff):
        if element.hold:
            raise _inexpressible("packets that are held while a path is off", "packets that are dropped then")
        return ["mm-onoff", element.direction, _seconds(element.mean_on), _seconds(element.mean_off)]
    if isinstance(element, Intermittent):
        return ["mm-intermittent", element.direction, _seconds(element.on), _seconds(element.off)]
    if isinstance(element, Link):
        words = ["mm-link", trace_of(element.uplink), trace_of(element.downlink)]
        for direction, link in (("uplink", element.uplink), ("downlink", element.downlink)):
            if link is not None and not isinstance(link.queue, Infinite):
                kind, arguments = _write_queue(link.queue)
                words += [f"--{direction}-queue={kind}", f"--{direction}-queue-args={arguments}"]
        return words + (["--once"] if element.once else [])
    raise _inexpressible(f"the element {element.kind}", ", ".join(TOOLS))


def _write_queue(queue: AnyQueue) -> tuple[str, str]:
    if isinstance(queue, (Droptail, Drophead)):
        more: dict[str, int] = {}
    elif isinstance(queue, MahimahiCodel):
        more = {"target": queue.target // NS_PER_MS, "interval": queue.interval // NS_PER_MS}
    elif isinstance(queue, MahimahiPie):
        more = {"qdelay_ref": queue.qdelay_ref // NS_PER_MS, "max_burst": queue.max_burst // NS_PER_MS}
    else:
        kinds = ", ".join(QUEUE_ARGUMENTS)
        raise _inexpressible(f"the queue {queue.kind}", f"{kinds} (mahimahi's codel is mahimahi_codel in ccgym)")
    given = {"packets": queue.limit.packets, "bytes": queue.limit.bytes, **more}
    kind = queue.kind.removeprefix("mahimahi_")
    return kind, ",".join(f"{name}={value}" for name, value in given.items() if value is not None)


def _inexpressible(found: str, expected: str) -> ConfigError:
    return ConfigError(
        "mahimahi-inexpressible",
        f"mahimahi does not support {found}",
        expected=expected,
        hint="run this path in the simulator or with ccgym's own shells",
    )


def _decimal(value: float) -> str:
    return repr(int(value)) if value == int(value) else repr(value)


def _seconds(time_ns: int) -> str:
    whole, part = divmod(time_ns, NS_PER_S)
    return f"{whole}.{part:09d}".rstrip("0") if part else str(whole)
