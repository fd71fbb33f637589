"""Whether a policy was trained on a path: what separates what it learned from what it can do elsewhere."""

from __future__ import annotations

from collections.abc import Mapping

from ccgym.config.capacity import capacity, mean_rate
from ccgym.config.catalog import resolve_trace
from ccgym.config.distribution_base import PathDistribution
from ccgym.config.distribution_curriculum import Stages, read_paths
from ccgym.config.distribution_kinds import Fixed, IndigoLinks, Named
from ccgym.config.distribution_numbers import Number
from ccgym.config.distribution_ranges import Bottleneck, Ranges, Traces
from ccgym.config.distributions import Mixture
from ccgym.config.elements import Delay, Link, LinkDirection, Loss
from ccgym.config.path import NetworkPath
from ccgym.config.queues import Droptail, Infinite
from ccgym.errors import CcgymError
from ccgym.schemes.policy_card import PolicyCard

REVERSE_SHARE = 0.1
"""A way back with this share of the bottleneck's rate carries all acknowledgements (52 bytes each, at most one per
packet of 1500) without delaying them: it is no constraint."""


def trained_on(card: PolicyCard, path: NetworkPath) -> bool | None:
    """Whether a policy's training could have drawn this path.

    Of paths that were listed (``named``, ``fixed``, ``indigo_links``): whether this is one of them. Of numbers that
    were drawn (``ranges``, ``traces``): whether it is such a path, its rate constant or its trace one of theirs, and
    all its numbers lie within theirs. In mixtures and curricula it is enough that one part could.

    Args:
        card: The policy's card; its ``training.config`` says ``environment.paths``.
        path: The path.

    Returns:
        None where the card does not say on what the policy was trained, or says it in words that this version does not
        understand.
    """
    config = card.training.get("config")
    environment = config.get("environment") if isinstance(config, Mapping) else None
    declared = environment.get("paths") if isinstance(environment, Mapping) else None
    if declared is None:
        return None
    try:
        distribution = read_paths(declared)
    except CcgymError:
        return None
    return can_draw(distribution, path)


def can_draw(distribution: PathDistribution | Stages, path: NetworkPath) -> bool:
    """Whether a distribution, or a stage of a curriculum, could draw this path; see :func:`trained_on`."""
    if isinstance(distribution, Stages):
        return any(can_draw(stage.paths, path) for stage in distribution.stages)
    if isinstance(distribution, Mixture):
        return any(can_draw(part.paths, path) for part in distribution.parts)
    if isinstance(distribution, Fixed):
        return distribution.path.chain == path.chain
    if isinstance(distribution, (Named, IndigoLinks)):
        return any(NetworkPath.from_any(name).chain == path.chain for name in distribution.names)
    return isinstance(distribution, Bottleneck) and _numbers_within(distribution, path)


def _numbers_within(ranges: Bottleneck, path: NetworkPath) -> bool:
    """Whether the path has one bottleneck as these are, and its numbers lie within the ranges."""
    links = [element for element in path.chain if isinstance(element, Link)]
    others = [element for element in path.chain if not isinstance(element, Link)]
    if len(links) != 1 or not all(_ordinary(element) for element in others):
        return False
    link, back = links[0].uplink, links[0].downlink
    steady = len(path.rtt_steps()) == 1 and path.base_rtt_ms == 2 * path.owd_ms
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
    """Whether a link of acknowledgements is no constraint; drawn paths have none, or one like the other way's."""
    return isinstance(back.queue, Infinite) and mean_rate(back) >= REVERSE_SHARE * path.mean_rate_mbps * 1e6


def _within_rate(ranges: Bottleneck, link: LinkDirection, path: NetworkPath) -> bool:
    if isinstance(ranges, Traces):
        return link.trace is not None and _trace_name(link.trace) in {_trace_name(name) for name in ranges.uplink}
    if not isinstance(ranges, Ranges) or len(capacity(link)) != 1:
        return False
    rate = path.mean_rate_mbps * 1e6
    if isinstance(ranges.rate, Number):
        return _holds(ranges.rate, rate)
    return ranges.rate.lowest.bounds()[0] <= rate <= ranges.rate.highest.bounds()[1]


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
    return max(ranges.queue.at_least, low * bdp - 1) <= packets <= max(ranges.queue.at_least, high * bdp + 1)


def _holds(number: Number | None, value: float) -> bool:
    """Whether a value lies within a number's bounds, up to what is lost in writing them down."""
    if number is None:
        return False
    low, high = number.bounds()
    slack = 1e-6 * max(abs(low), abs(high))
    return low - slack <= value <= high + slack
