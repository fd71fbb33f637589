"""What a learned policy was trained on: the ranges of rate and delay that its card tells."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from ccgym.config.distribution_base import NumberRow
from ccgym.config.distribution_curriculum import read_paths
from ccgym.errors import CcgymError
from ccgym.schemes.registry import SchemeChoice

ROUNDING: Final = 1e-3
"""Ranges are this share wider than they say: a trace of 200 Mbit/s has 200.003."""


@dataclass(frozen=True)
class Box:
    """A range of rates together with a range of delays."""

    rate_mbps: tuple[float, float]
    """Lowest and highest rate, Mbit/s."""
    one_way_ms: tuple[float, float]
    """Smallest and largest one-way delay, ms."""

    def contains(self, rate_mbps: float, one_way_ms: float) -> bool:
        """Whether a path lies within."""
        return _within(rate_mbps, self.rate_mbps) and _within(one_way_ms, self.one_way_ms)


@dataclass(frozen=True)
class TrainingRange:
    """Boxes of rate and delay: one per part of a mixture or stage of a curriculum."""

    boxes: tuple[Box, ...]
    """At least one."""

    def contains(self, rate_mbps: float, one_way_ms: float) -> bool:
        """Whether a path lies within one of the boxes."""
        return any(box.contains(rate_mbps, one_way_ms) for box in self.boxes)

    @property
    def text(self) -> str:
        """``1.2–6 Mbit/s, 50–500 ms one way``."""
        return "; ".join(
            f"{_span(box.rate_mbps)} Mbit/s, {_span(box.one_way_ms)} ms one way" for box in dict.fromkeys(self.boxes)
        )


def training_range(choice: SchemeChoice) -> TrainingRange | None:
    """The range that a scheme was trained on; None where it was not trained, or its card does not tell."""
    policy = choice.policy
    return None if policy is None else range_of_card(policy.card.training)


def range_of_card(training: Mapping[str, Any]) -> TrainingRange | None:
    """The range that the training part of a card tells; None where it does not."""
    try:
        paths = training["config"]["environment"]["paths"]
        return None if paths is None else range_of_rows(read_paths(paths).rows())
    except (CcgymError, LookupError, ValueError, TypeError, AttributeError):
        # Trained by a newer version, or on paths that are not here: then nobody knows.
        return None


def range_of_rows(rows: Iterable[NumberRow]) -> TrainingRange | None:
    """The range of a distribution of paths, from the numbers that it draws."""
    parts: dict[str, dict[str, tuple[float, float]]] = {}
    for row in rows:
        prefix, name = _split(row["name"])
        low, high = row["low"], row["high"]
        if name and low is not None and high is not None:
            known = parts.setdefault(prefix, {})
            half = 0.5 if name == "rtt" else 1.0
            kind = "rate" if name.startswith("rate") else "delay"
            before = known.get(kind, (half * low, half * high))
            known[kind] = (min(before[0], half * low), max(before[1], half * high))
    boxes = tuple(Box(part["rate"], part["delay"]) for part in parts.values() if {"rate", "delay"} <= part.keys())
    return TrainingRange(boxes) if boxes else None


_NAMES: Final = ("rate", "rate.highest", "rate.lowest", "one_way_delay", "rtt")


def _split(name: str) -> tuple[str, str]:
    """Prefix of the part, and which number it is; an empty one for those that do not matter here."""
    for known in sorted(_NAMES, key=len, reverse=True):
        if name == known or name.endswith(f".{known}"):
            return name.removesuffix(known), known
    return name, ""


def _within(value: float, bounds: tuple[float, float]) -> bool:
    return bounds[0] * (1 - ROUNDING) <= value <= bounds[1] * (1 + ROUNDING)


def _span(bounds: tuple[float, float]) -> str:
    low, high = (f"{bound:.4g}" for bound in bounds)
    return low if low == high else f"{low}–{high}"
