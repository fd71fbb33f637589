"""Piecewise constant functions of time, and the capacity of links as one."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from ccgym.config.catalog import resolve_trace
from ccgym.config.models import LinkDirection
from ccgym.tracetools.inspect import capacity_steps
from ccgym.units import PACKET_BITS

if TYPE_CHECKING:
    from ccgym import _core

Piecewise: TypeAlias = "tuple[tuple[int, Fraction], ...]"
"""Pairs of start in nanoseconds and exact value; the first start is 0."""


def exact(value: int | tuple[tuple[int, int], ...]) -> Piecewise:
    """Convert one value, or steps, to exact fractions."""
    if isinstance(value, tuple):
        return tuple((start, Fraction(part)) for start, part in value)
    return ((0, Fraction(value)),)


def combine(one: Piecewise, other: Piecewise, operation: Callable[[Fraction, Fraction], Fraction]) -> Piecewise:
    """Combine two piecewise constant functions of time, and merge equal neighbors."""
    combined: list[tuple[int, Fraction]] = []
    i = j = 0
    for start in sorted({*(at for at, _ in one), *(at for at, _ in other)}):
        while i + 1 < len(one) and one[i + 1][0] <= start:
            i += 1
        while j + 1 < len(other) and other[j + 1][0] <= start:
            j += 1
        value = operation(one[i][1], other[j][1])
        if not combined or combined[-1][1] != value:
            combined.append((start, value))
    return tuple(combined)


def mean_rate(link: LinkDirection) -> float:
    """Return the mean rate in bit/s. For steps, it is the time mean; the last step is as long as the step before."""
    if link.trace is not None:
        return float(trace_mean(link.trace)[0][1])
    steps = exact(link.rate or 0)
    if len(steps) == 1:
        return float(steps[0][1])
    ends = [*(start for start, _ in steps[1:]), 2 * steps[-1][0] - steps[-2][0]]
    total = sum((end - start) * value for (start, value), end in zip(steps, ends, strict=True))
    return float(total / ends[-1])


def trace_mean(reference: str) -> Piecewise:
    """Return the exact mean rate of a trace in bit/s; errors as in :meth:`TraceSource.load`."""
    trace = resolve_trace(reference).load()
    return ((0, _trace_facts(trace, None)[0]),)


def capacity(link: LinkDirection, duration_ns: int | None = None) -> Piecewise:
    """Return the capacity of a link over time; a trace of one step has its exact mean rate."""
    if link.trace is None:
        return exact(link.rate or 0)
    mean, steps = _trace_facts(resolve_trace(link.trace).load(), duration_ns)
    return steps if len(steps) > 1 else ((0, mean),)


@lru_cache(maxsize=256)
def _trace_facts(trace: _core.Trace, duration_ns: int | None) -> tuple[Fraction, Piecewise]:
    """Return the exact mean rate, and the capacity in steps; cached, because loaded traces are shared."""
    times = trace.times_ms
    mean = Fraction(1000 * PACKET_BITS * len(times), int(times[-1]))
    return mean, tuple((start, Fraction(rate)) for start, rate in capacity_steps(times, duration_ns))


@lru_cache(maxsize=1024)
def native_trace(name: str) -> _core.Trace:
    """Return the native trace of a name, loaded once per process; errors as in :func:`resolve_trace`."""
    return resolve_trace(name).load()


@lru_cache(maxsize=1024)
def trace_facts(name: str, duration_ns: int | None) -> tuple[Fraction, list[list[int]]]:
    """Return the exact mean rate of a trace in bit/s, and its capacity in steps of nanoseconds and bit/s; cached."""
    steps = capacity(LinkDirection(trace=name), duration_ns)
    return trace_mean(name)[0][1], [[start, round(rate)] for start, rate in steps]
