"""The candidate paths of an adversary: their parameters, draws, changes and simplification.

A :class:`Candidate` is a bottleneck with a rate that is constant, changes, or repeats a pattern, with an RTT and a
buffer and, optionally, random loss, jitter, and ACK aggregation. All bounds are from paths that exist, and rates differ
by at most a factor of ten. Numbers have two digits, so that they are easy to read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from ccgym.config.path import NetworkPath
from ccgym.units import NS_PER_S

RANGES: Final = {
    "rate_mbps": (1.0, 1000.0),
    "every_s": (0.5, 10.0),
    "rtt_ms": (2.0, 300.0),
    "buffer_bdp": (0.1, 8.0),
    "loss": (0.0001, 0.03),
    "jitter_ms": (0.1, 30.0),
    "ack_ms": (1.0, 50.0),
}
"""Bounds, in the units of :class:`Candidate`; the last three apply only to candidates with these parameters."""
OPTIONAL: Final = ("loss", "jitter_ms", "ack_ms")
"""Parameters that a plain path does not have."""
MAX_RATES: Final = 4
MAX_CHANGE: Final = 10.0
"""Max factor of a change of the rate."""
DIGITS: Final = 2

_STEP: Final = 0.4
"""Standard deviation of a change, as a fraction of the (logarithmic) range."""
_OPTIONAL_DRAWN: Final = 0.3
"""Probability that a drawn candidate has each of :data:`OPTIONAL`."""


@dataclass(frozen=True)
class Candidate:
    """A path described by few numbers. The default is the plain path, which is the simplest."""

    rates_mbps: tuple[float, ...] = (12.0,)
    """Rates of the bottleneck, one after the other, repeated."""
    every_s: float = 10.0
    """Duration of each rate; without meaning for a constant rate."""
    rtt_ms: float = 40.0
    """Round-trip propagation delay."""
    buffer_bdp: float = 1.0
    """Drop-tail buffer, in bandwidth-delay products of the largest rate."""
    loss: float = 0.0
    """Probability of random loss of a data packet, a fraction."""
    jitter_ms: float = 0.0
    """Max extra delay of data packets, drawn uniformly from 0; packets stay in order."""
    ack_ms: float = 0.0
    """ACKs arrive only at multiples of this time: ACK aggregation."""

    # --- As a path ------------------------------------------------------------------------------------------------

    def arguments(self, duration_ns: int) -> dict[str, Any]:
        """Return the arguments of :class:`~ccgym.config.path.NetworkPath` as in YAML, for a run of this length."""
        steps = self.steps(duration_ns)
        rate = f"{steps[0][1]:g}mbps" if len(steps) == 1 else [[f"{at:g}s", f"{mbps:g}mbps"] for at, mbps in steps]
        given: dict[str, Any] = {"rate": rate, "rtt": f"{self.rtt_ms:g}ms", "queue": f"{self.buffer_bdp:g}bdp"}
        if self.loss:
            given["loss"] = f"{_percent(self.loss)}%"
        if self.jitter_ms:
            given["jitter"] = f"{self.jitter_ms:g}ms"
        if self.ack_ms:
            aggregated = {"kind": "quantized", "period": f"{self.ack_ms:g}ms"}
            given["elements"] = [{"kind": "jitter", "distribution": aggregated, "direction": "downlink"}]
        return given

    def path(self, duration_ns: int, name: str | None = None, title: str = "") -> NetworkPath:
        """Return the path for a run of this length."""
        return NetworkPath(name=name, title=title, **self.arguments(duration_ns))

    def steps(self, duration_ns: int) -> list[tuple[float, float]]:
        """Return start (s) and value (Mbit/s) of every rate in a run."""
        if len(set(self.rates_mbps)) == 1:
            return [(0.0, self.rates_mbps[0])]
        count = max(1, math.ceil(duration_ns / NS_PER_S / self.every_s))
        return [
            (round(place * self.every_s, 6), self.rates_mbps[place % len(self.rates_mbps)]) for place in range(count)
        ]

    def sentence(self, duration_ns: int) -> str:
        """Return a description: ``the rate steps from 8 to 64 Mbit/s at 10 s; RTT 300 ms, buffer 0.2 BDP``."""
        steps = self.steps(duration_ns)
        rates = [f"{mbps:g}" for _, mbps in steps]
        if len(steps) == 1:
            first = f"{rates[0]} Mbit/s"
        elif len(steps) == 2:
            first = f"the rate steps from {rates[0]} to {rates[1]} Mbit/s at {self.every_s:g} s"
        elif len(steps) <= len(self.rates_mbps):
            first = f"the rate goes {', '.join(rates)} Mbit/s, {self.every_s:g} s each"
        else:
            pattern = ", ".join(f"{mbps:g}" for mbps in self.rates_mbps)
            first = f"the rate repeats {pattern} Mbit/s, {self.every_s:g} s each"
        words = [first, f"RTT {self.rtt_ms:g} ms", f"buffer {self.buffer_bdp:g} BDP"]
        words += [f"random loss {_percent(self.loss)} %"] if self.loss else []
        words += [f"jitter up to {self.jitter_ms:g} ms"] if self.jitter_ms else []
        words += [f"acknowledgements only every {self.ack_ms:g} ms"] if self.ack_ms else []
        return ", ".join(words)

    # --- Kinds and costs ------------------------------------------------------------------------------------------

    @cached_property
    def kind(self) -> tuple[str, str, str]:
        """Kind of the path: changes of its rate, depth of its buffer, other disturbances."""
        changing = len(set(self.rates_mbps)) > 1
        rate = "constant" if not changing else "slow" if self.every_s >= 5 else "fast"
        buffer = "shallow" if self.buffer_bdp < 0.5 else "deep" if self.buffer_bdp > 2 else "usual"
        disturbed = "+".join(name for name in OPTIONAL if getattr(self, name)) or "nothing"
        return rate, buffer, disturbed

    @cached_property
    def complexity(self) -> float:
        """Distance from the default: number of parts, distances of the numbers, and digits."""
        parts = sum(bool(getattr(self, name)) for name in OPTIONAL) + 2 * (len(self.rates_mbps) - 1)
        usual = Candidate()
        changing = len(self.rates_mbps) > 1
        pairs = [(rate, usual.rates_mbps[0]) for rate in self.rates_mbps]
        pairs += [(self.rtt_ms, usual.rtt_ms), (self.buffer_bdp, usual.buffer_bdp)]
        pairs += [(self.every_s, usual.every_s)] if changing else []
        # For parameters that a plain path does not have, smaller values are simpler.
        pairs += [(getattr(self, name), RANGES[name][0]) for name in OPTIONAL if getattr(self, name)]
        far = sum(abs(math.log2(value / other)) for value, other in pairs)
        return 10.0 * parts + far + sum(1.5 for value, other in pairs if value not in (other, rounded(value, 1)))

    # --- Simpler ones ---------------------------------------------------------------------------------------------

    def simpler(self) -> Iterator[Candidate]:
        """Yield candidates that are simpler in one respect, the largest change first."""
        for made in self._simpler():
            if made != self and made.complexity < self.complexity:
                yield made

    def _simpler(self) -> Iterator[Candidate]:
        for name in OPTIONAL:
            yield self.having(name, 0.0)
        if len(self.rates_mbps) > 1:
            for rate in dict.fromkeys(self.rates_mbps):
                yield replace(self, rates_mbps=(rate,), every_s=Candidate().every_s)
            for place in range(len(self.rates_mbps)):
                left = (*self.rates_mbps[:place], *self.rates_mbps[place + 1 :])
                yield replace(self, rates_mbps=left)
        usual = Candidate()
        # The default first, then half of the way to it, then a quarter.
        by = usual.rates_mbps[0] / max(self.rates_mbps)
        for factor in (by, math.sqrt(by)):
            yield self._with_rates([rate * factor for rate in self.rates_mbps])
        for name in ("rtt_ms", "buffer_bdp", "every_s"):
            yield from self._toward(name, getattr(usual, name))
        for name in OPTIONAL:
            if getattr(self, name):
                yield from self._toward(name, RANGES[name][0])
        yield self._with_rates([rounded(rate, 1) for rate in self.rates_mbps])
        for name in ("rtt_ms", "buffer_bdp", "every_s", *OPTIONAL):
            yield self.having(name, rounded(getattr(self, name), 1))

    def _toward(self, name: str, goal: float) -> Iterator[Candidate]:
        value = getattr(self, name)
        for part in (1.0, 0.5, 0.25):
            yield self.having(name, rounded(value ** (1 - part) * goal**part, DIGITS if part == 1.0 else 1))

    def having(self, name: str, value: float) -> Candidate:
        """Return the candidate with another number."""
        given: dict[str, Any] = {name: value}
        return replace(self, **given)

    def _with_rates(self, rates: list[float]) -> Candidate:
        low, high = RANGES["rate_mbps"]
        return replace(self, rates_mbps=tuple(min(max(rounded(rate), low), high) for rate in rates))

    def as_dict(self) -> dict[str, Any]:
        """Return plain data."""
        return asdict(self)


def drawn(rng: np.random.Generator, max_rate_mbps: float = RANGES["rate_mbps"][1]) -> Candidate:
    """Draw a candidate."""
    count = int(rng.integers(1, MAX_RATES + 1)) if rng.random() < 0.5 else 1
    numbers = {name: _number(rng, name) for name in ("every_s", "rtt_ms", "buffer_bdp")}
    numbers |= {name: _number(rng, name) if rng.random() < _OPTIONAL_DRAWN else 0.0 for name in OPTIONAL}
    rates = [_number(rng, "rate_mbps", max_rate_mbps) for _ in range(count)]
    return Candidate(_bounded(rates, max_rate_mbps), **numbers)


def changed(one: Candidate, rng: np.random.Generator, max_rate_mbps: float = RANGES["rate_mbps"][1]) -> Candidate:
    """Return the candidate with one to three of its numbers changed."""
    names = [field.name for field in fields(Candidate)]
    for place in rng.choice(len(names), size=int(rng.integers(1, 4)), replace=False):
        name = names[int(place)]
        if name == "rates_mbps":
            one = replace(one, rates_mbps=_changed_rates(one.rates_mbps, rng, max_rate_mbps))
        elif name in OPTIONAL and (not getattr(one, name) or rng.random() < 0.3):
            one = one.having(name, 0.0 if getattr(one, name) else _number(rng, name))
        else:
            one = one.having(name, _moved(getattr(one, name), rng, name))
    return one


def crossed(one: Candidate, other: Candidate, rng: np.random.Generator) -> Candidate:
    """Return a candidate that has each number from one of the two candidates."""
    taken = {field.name: getattr(other, field.name) for field in fields(Candidate) if rng.random() < 0.5}
    return replace(one, **taken)


def _changed_rates(rates: tuple[float, ...], rng: np.random.Generator, max_rate_mbps: float) -> tuple[float, ...]:
    made = [_moved(rate, rng, "rate_mbps") for rate in rates]
    what = rng.random()
    if what < 0.3 and len(made) < MAX_RATES:
        made.insert(int(rng.integers(len(made) + 1)), _number(rng, "rate_mbps", max_rate_mbps))
    elif what < 0.5 and len(made) > 1:
        made.pop(int(rng.integers(len(made))))
    return _bounded(made, max_rate_mbps)


def _bounded(rates: list[float], max_rate_mbps: float) -> tuple[float, ...]:
    """Return the rates, limited so that no rate is more than :data:`MAX_CHANGE` times another rate."""
    top = min(max(rates), max_rate_mbps)
    return tuple(rounded(min(max(rate, top / MAX_CHANGE, RANGES["rate_mbps"][0]), top)) for rate in rates)


def _number(rng: np.random.Generator, name: str, high: float | None = None) -> float:
    low, most = RANGES[name]
    return rounded(float(np.exp(rng.uniform(math.log(low), math.log(high or most)))))


def _moved(value: float, rng: np.random.Generator, name: str) -> float:
    low, high = RANGES[name]
    by = float(rng.normal(0.0, _STEP)) * math.log(high / low) / 2
    return rounded(min(max(value * math.exp(by), low), high))


def rounded(value: float, digits: int = DIGITS) -> float:
    """Return the number with this many significant digits."""
    return float(f"{value:.{digits}g}")


def _percent(fraction: float) -> str:
    return f"{100 * fraction:.3g}"
