"""What a learned policy was trained on, as its card tells.

Two questions are asked of the same distribution of paths. :attr:`Training.range` are its rates and delays:
a condition of a stress test is *inside* if its own lie within; nothing else on the path counts. :meth:`Training.draws`
asks more: whether training could have drawn this very path, its queue, loss and trace included. A scorecard calls such
paths training paths, and all others held out.
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
"""A way back with this fraction of the bottleneck's rate carries all acknowledgements (52 bytes each, at most one per
packet of 1500) without delaying them: it does not constrain."""
ROUNDING: Final = 1e-3
"""Ranges are this much wider than they say: a trace of 200 Mbit/s has 200.003."""


@dataclass(frozen=True)
class Box:
    """A range of rates together with a range of delays."""

    rate_mbps: tuple[float, float]
    """Minimum and maximum rate, Mbit/s."""
    owd_ms: tuple[float, float]
    """Minimum and maximum one-way delay, ms."""

    def contains(self, rate_mbps: float, owd_ms: float) -> bool:
        """Whether a path lies within."""
        return _within(rate_mbps, self.rate_mbps) and _within(owd_ms, self.owd_ms)


@dataclass(frozen=True)
class TrainingRange:
    """Boxes of rate and delay: one per part of a mixture or stage of a curriculum."""

    boxes: tuple[Box, ...]
    """At least one."""

    def contains(self, rate_mbps: float, owd_ms: float) -> bool:
        """Whether a path lies within one of the boxes."""
        return any(box.contains(rate_mbps, owd_ms) for box in self.boxes)

    @property
    def maxima(self) -> tuple[float, float]:
        """The largest rate of all boxes in bit/s, and the largest one-way delay in ns."""
        return max(box.rate_mbps[1] for box in self.boxes) * 1e6, max(box.owd_ms[1] for box in self.boxes) * 1e6

    @property
    def text(self) -> str:
        """``1.2–6 Mbit/s, 50–500 ms one way``."""
        return "; ".join(
            f"{_span(box.rate_mbps)} Mbit/s, {_span(box.owd_ms)} ms one way" for box in dict.fromkeys(self.boxes)
        )


@dataclass(frozen=True)
class Training:
    """The paths that a policy was trained on."""

    distribution: PathDistribution | AnyCurriculum
    """What training drew from."""

    @classmethod
    def of(cls, choice: Scheme) -> Training | None:
        """Of a scheme; None where it was not trained, or its card does not say."""
        return None if choice.policy is None else cls.of_card(choice.policy.card.training)

    @classmethod
    def of_card(cls, training: Mapping[str, Any]) -> Training | None:
        """From the training part of a card; None where it does not say, or in words of another version."""
        try:
            paths = training["config"]["environment"]["paths"]
            return None if paths is None else cls(read_paths(paths))
        except (CcgymError, LookupError, TypeError):
            return None

    @property
    def range(self) -> TrainingRange | None:
        """The rates and delays; None where the distribution has no such numbers."""
        try:
            return range_of_rows(self.distribution.rows())
        except (CcgymError, LookupError, ValueError, TypeError, AttributeError):
            return None  # A trace that is not here.

    def draws(self, path: NetworkPath) -> bool:
        """Whether training could have drawn this path.

        Of paths that were listed (``named``, ``fixed``): whether this is one of them. Of numbers that
        were drawn (``ranges``, ``traces``): whether it is such a path, its rate constant or its trace one of theirs,
        and all its numbers lie within theirs. In mixtures and curricula one part is enough.
        """
        return can_draw(self.distribution, path)


def training_range(tested: Contender) -> TrainingRange | None:
    """The range that a scheme was trained on; None where it was not trained, or its card does not say."""
    if tested.choice is None:
        return None
    training = Training.of(tested.choice)
    return None if training is None else training.range


def outside_training(path: NetworkPath, schemes: Sequence[Contender]) -> list[str]:
    """On what the learned schemes were trained, where that does not contain the path."""
    notes = []
    for one in schemes if hosts_of(path) is None and path.data_links else ():
        trained = training_range(one)
        if trained is not None and not trained.contains(path.mean_rate_mbps, path.one_way_delay_ms):
            notes.append(f"note: {one.label} was trained on {trained.text}: this path lies outside")
    return notes


def range_of_rows(rows: Iterable[ParameterRow]) -> TrainingRange | None:
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


_NAMES: Final = ("rate", "rate.max", "rate.min", "one_way_delay", "rtt")


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


def can_draw(distribution: PathDistribution | AnyCurriculum, path: NetworkPath) -> bool:
    """Whether a distribution, or a stage of a curriculum, could draw this path; see :meth:`Training.draws`."""
    if isinstance(distribution, Stages):
        return any(can_draw(stage.paths, path) for stage in distribution.stages)
    if isinstance(distribution, GrowingPlan):  # its points lie within its ranges
        return can_draw(distribution.paths, path)
    if isinstance(distribution, Mixture):
        return any(can_draw(part.paths, path) for part in distribution.parts)
    if isinstance(distribution, Fixed):
        return distribution.path.chain == path.chain
    if isinstance(distribution, Named):
        return any(NetworkPath.from_any(name).chain == path.chain for name in distribution.names)
    return isinstance(distribution, Bottleneck) and _numbers_within(distribution, path)


def _numbers_within(ranges: Bottleneck, path: NetworkPath) -> bool:
    """Whether the path has one bottleneck as these are, and its numbers lie within the ranges."""
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
    """Whether an element is one that drawn paths have, too: delay both ways, or random loss of data."""
    if isinstance(element, Loss):
        return element.direction == "uplink" and not isinstance(element.probability, tuple)
    return isinstance(element, Delay)


def _free(back: LinkDirection, path: NetworkPath) -> bool:
    """Whether a link of acknowledgements does not constrain; drawn paths have none, or one like the other way's."""
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
    # Products become whole packets: one of them in either direction is the same queue.
    low, high = ranges.queue.bdp.bounds() if ranges.queue.bdp is not None else (0.0, 0.0)
    return max(ranges.queue.min_packets, low * bdp - 1) <= packets <= max(ranges.queue.min_packets, high * bdp + 1)


def _holds(number: RandomVariable | None, value: float) -> bool:
    """Whether a value lies within a number's bounds, up to what is lost in writing them down."""
    if number is None:
        return False
    low, high = number.bounds()
    slack = 1e-6 * max(abs(low), abs(high))
    return low - slack <= value <= high + slack
