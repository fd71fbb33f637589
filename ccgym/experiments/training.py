"""Training paths of a learned policy, from its card.

The distribution of training paths is used in two ways. :attr:`Training.range` has its rates and delays: a condition of
a stress test is *inside* if its rates and delays are in this range; nothing else counts. :meth:`Training.draws` is
stricter: it is true if training could have drawn exactly this path, with its queue, loss and trace. A scorecard calls
such paths training paths, and all other paths held out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ccgym.config.bottleneck import Bottleneck, Ranges, Traces
from ccgym.config.capacity import capacity, mean_rate
from ccgym.config.catalog import resolve_trace
from ccgym.config.changing_rates import Staircase
from ccgym.config.curriculum import AnyCurriculum, Stages, read_paths
from ccgym.config.distributions import Fixed, Mixture, Named
from ccgym.config.grown import GrowingPlan
from ccgym.config.hosts import hosts_of
from ccgym.config.models import Delay, Droptail, Infinite, Link, LinkDirection, Loss
from ccgym.config.path import NetworkPath
from ccgym.config.random_variables import RandomVariable
from ccgym.config.sampled_path import ParameterRow, PathDistribution
from ccgym.errors import CcgymError
from ccgym.schemes.scheme import Scheme

if TYPE_CHECKING:
    from ccgym.evaluation.run import Contender

REVERSE_FRACTION: Final = 0.1
"""Min rate of the reverse link as a fraction of the bottleneck's rate: it then carries all ACKs (52 bytes each, at most
one per packet of 1500) without delay, and does not constrain the path."""
ROUNDING: Final = 1e-3
"""Relative tolerance of ranges: a trace of 200 Mbit/s has 200.003."""


@dataclass(frozen=True)
class Box:
    """A range of rates together with a range of delays."""

    rate_mbps: tuple[float, float]
    """Minimum and maximum rate, Mbit/s."""
    owd_ms: tuple[float, float]
    """Minimum and maximum one-way delay, ms."""

    def contains(self, rate_mbps: float, owd_ms: float) -> bool:
        """Return whether rate and delay are inside the box."""
        return _within(rate_mbps, self.rate_mbps) and _within(owd_ms, self.owd_ms)


@dataclass(frozen=True)
class TrainingRange:
    """Boxes of rate and delay: one per part of a mixture or stage of a curriculum."""

    boxes: tuple[Box, ...]
    """The boxes, at least one."""

    def contains(self, rate_mbps: float, owd_ms: float) -> bool:
        """Return whether rate and delay are inside one of the boxes."""
        return any(box.contains(rate_mbps, owd_ms) for box in self.boxes)

    @property
    def maxima(self) -> tuple[float, float]:
        """The max rate of all boxes in bit/s, and the max one-way delay in ns."""
        return max(box.rate_mbps[1] for box in self.boxes) * 1e6, max(box.owd_ms[1] for box in self.boxes) * 1e6

    @property
    def text(self) -> str:
        """The range as text: ``1.2–6 Mbit/s, 50–500 ms one way``."""
        return "; ".join(
            f"{_span(box.rate_mbps)} Mbit/s, {_span(box.owd_ms)} ms one way" for box in dict.fromkeys(self.boxes)
        )


@dataclass(frozen=True)
class Training:
    """The paths that a policy was trained on."""

    distribution: PathDistribution | AnyCurriculum
    """The distribution of training paths."""

    @classmethod
    def of(cls, choice: Scheme) -> Training | None:
        """Return the training of a scheme; None if it was not trained, or if its card has no training paths."""
        return None if choice.policy is None else cls.of_card(choice.policy.card.training)

    @classmethod
    def of_card(cls, training: Mapping[str, Any]) -> Training | None:
        """Read the training part of a card; None if it has no training paths, or a format of another version."""
        try:
            paths = training["config"]["environment"]["paths"]
            return None if paths is None else cls(read_paths(paths))
        except (CcgymError, LookupError, TypeError):
            return None

    @property
    def range(self) -> TrainingRange | None:
        """The rates and delays; None if the distribution has no such numbers."""
        try:
            return range_of_rows(self.distribution.rows())
        except (CcgymError, LookupError, ValueError, TypeError, AttributeError):
            return None  # A trace is missing on this machine.

    def draws(self, path: NetworkPath) -> bool:
        """Return whether training could have drawn this path.

        For listed paths (``named``, ``fixed``): whether the path is in the list. For drawn numbers (``ranges``,
        ``traces``): whether the path has this form, with a constant rate or one of the traces, and all its numbers
        are inside the ranges. In mixtures and curricula, one part is enough.
        """
        return can_draw(self.distribution, path)


def training_range(tested: Contender) -> TrainingRange | None:
    """Return the training range of a scheme; None if it was not trained, or if its card has no range."""
    if tested.choice is None:
        return None
    training = Training.of(tested.choice)
    return None if training is None else training.range


def outside_training(path: NetworkPath, schemes: Sequence[Contender]) -> list[str]:
    """Return notes with the training ranges of learned schemes that do not contain the path."""
    notes = []
    for one in schemes if hosts_of(path) is None and path.data_links else ():
        trained = training_range(one)
        if trained is not None and not trained.contains(path.mean_rate_mbps, path.one_way_delay_ms):
            notes.append(f"note: {one.label} was trained on {trained.text}: this path is outside")
    return notes


def range_of_rows(rows: Iterable[ParameterRow]) -> TrainingRange | None:
    """Return the range of a distribution of paths, from the numbers that it draws."""
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


_NAMES: Final = ("rate", "rate.max", "rate.min", "one_way_delay", "rtt")


def _split(name: str) -> tuple[str, str]:
    """Return the prefix of the part, and the quantity of a row; an empty quantity for irrelevant rows."""
    for known in sorted(_NAMES, key=len, reverse=True):
        if name == known or name.endswith(f".{known}"):
            return name.removesuffix(known), known
    return name, ""


def _within(value: float, bounds: tuple[float, float]) -> bool:
    return bounds[0] * (1 - ROUNDING) <= value <= bounds[1] * (1 + ROUNDING)


def _span(bounds: tuple[float, float]) -> str:
    low, high = (f"{bound:.4g}" for bound in bounds)
    return low if low == high else f"{low}–{high}"


def can_draw(distribution: PathDistribution | AnyCurriculum, path: NetworkPath) -> bool:
    """Return whether a distribution, or a stage of a curriculum, could draw this path; see :meth:`Training.draws`."""
    if isinstance(distribution, Stages):
        return any(can_draw(stage.paths, path) for stage in distribution.stages)
    if isinstance(distribution, GrowingPlan):  # its points are inside its ranges
        return can_draw(distribution.paths, path)
    if isinstance(distribution, Mixture):
        return any(can_draw(part.paths, path) for part in distribution.parts)
    if isinstance(distribution, Fixed):
        return distribution.path.chain == path.chain
    if isinstance(distribution, Named):
        return any(NetworkPath.from_any(name).chain == path.chain for name in distribution.names)
    return isinstance(distribution, Bottleneck) and _numbers_within(distribution, path)


def _numbers_within(ranges: Bottleneck, path: NetworkPath) -> bool:
    """Return whether the path has one bottleneck of this form, and its numbers are inside the ranges."""
    links = [element for element in path.chain if isinstance(element, Link)]
    others = [element for element in path.chain if not isinstance(element, Link)]
    if len(links) != 1 or not all(_ordinary(element) for element in others):
        return False
    link, back = links[0].uplink, links[0].downlink
    steady = len(path.rtt_steps()) == 1 and path.base_rtt_ms == 2 * path.one_way_delay_ms
    if link is None or not steady or (back is not None and not _free(back, path)):
        return False
    delay = path.base_rtt_ns / 2 if ranges.rtt is None else float(path.base_rtt_ns)
    return (
        _within_rate(ranges, link, path)
        and _holds(ranges.one_way_delay or ranges.rtt, delay)
        and _holds(ranges.loss, path.loss)
        and (ranges.jitter is None or _holds(ranges.jitter, 0.0))
        and _within_queue(ranges, path)
    )


def _ordinary(element: object) -> bool:
    """Return whether an element also occurs in drawn paths: delay in both directions, or random loss of data."""
    if isinstance(element, Loss):
        return element.direction == "uplink" and not isinstance(element.probability, tuple)
    return isinstance(element, Delay)


def _free(back: LinkDirection, path: NetworkPath) -> bool:
    """Return whether the reverse link does not constrain; drawn paths have no reverse link, or one like forward."""
    return isinstance(back.queue, Infinite) and mean_rate(back) >= REVERSE_FRACTION * path.mean_rate_mbps * 1e6


def _within_rate(ranges: Bottleneck, link: LinkDirection, path: NetworkPath) -> bool:
    if isinstance(ranges, Traces):
        return link.trace is not None and _trace_name(link.trace) in {_trace_name(name) for name in ranges.uplink}
    if not isinstance(ranges, Ranges) or len(capacity(link)) != 1:
        return False
    rate = path.mean_rate_mbps * 1e6
    if isinstance(ranges.rate, RandomVariable):
        return _holds(ranges.rate, rate)
    if isinstance(ranges.rate, Staircase):
        low, high = ranges.rate.top.bounds()
        return ranges.rate.bottom * low <= rate <= high
    return ranges.rate.min.bounds()[0] <= rate <= ranges.rate.max.bounds()[1]


def _trace_name(reference: str) -> str:
    return resolve_trace(reference).name


def _within_queue(ranges: Bottleneck, path: NetworkPath) -> bool:
    queue = path.queue
    if ranges.queue.unlimited or isinstance(queue, Infinite):
        return ranges.queue.unlimited and isinstance(queue, Infinite)
    if not isinstance(queue, Droptail):
        return False
    limit, bdp = queue.limit, path.bdp_packets
    packets = limit.packets
    if packets is None:
        packets = round(limit.bytes / 1500) if limit.bytes is not None else round((limit.bdp or 0.0) * bdp)
    if ranges.queue.packets is not None:
        return _holds(ranges.queue.packets, packets)
    # Bandwidth-delay products are rounded to packets: a difference of one packet is the same queue.
    low, high = ranges.queue.bdp.bounds() if ranges.queue.bdp is not None else (0.0, 0.0)
    return max(ranges.queue.min_packets, low * bdp - 1) <= packets <= max(ranges.queue.min_packets, high * bdp + 1)


def _holds(number: RandomVariable | None, value: float) -> bool:
    """Return whether a value is inside a number's bounds, within rounding."""
    if number is None:
        return False
    low, high = number.bounds()
    slack = 1e-6 * max(abs(low), abs(high))
    return low - slack <= value <= high + slack
