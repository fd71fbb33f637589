"""A path that is given as a whole, with some of it changed: ``{named: 77.72mbps, rtt: 40ms}``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from ccgym.config.capacity import mean_rate
from ccgym.config.models import AnyElement, Delay, Jitter, Link, LinkDirection, Loss
from ccgym.config.shorthand import Shorthand, delays
from ccgym.config.yaml_loader import config_error
from ccgym.errors import ConfigError

CHANGES: Final = ("rate", "trace", "rtt", "queue", "loss", "jitter")
"""What of a whole path can be changed, all of the data direction but the round-trip time."""


def changed(chain: Sequence[AnyElement], changes: Mapping[str, Any], way: str) -> list[AnyElement]:
    """The elements of a path with some of them replaced.

    A new round-trip time takes the place of all propagation delays, random loss that of all loss of data, jitter that
    of all jitter; rate, trace and queue become those of the slowest link.

    Args:
        chain: The elements, the outermost first.
        changes: Some of :data:`CHANGES`, as a path without a chain has them.
        way: What the path was given by, for errors.

    Raises:
        ConfigError: Something else is to be changed, there is no link to change, or a value is wrong.
        UnitError: A quantity that cannot be read.
    """
    others = [key for key in changes if key not in CHANGES]
    if others or {"rate", "trace"} <= changes.keys():
        raise ConfigError(
            "options-conflict",
            f"{', '.join(others or ('rate', 'trace'))} together with {way}",
            expected=f"{way} alone, or with some of {', '.join(CHANGES)}, and of rate and trace one",
            where="path",
        )
    try:
        read = Shorthand.model_validate(changes)
    except ValidationError as error:
        raise config_error(error, Shorthand) from None
    elements = list(chain)
    if "rtt" in changes:
        assert read.rtt is not None
        ticks = [one.tick for one in elements if isinstance(one, Delay)]
        new = [one.model_copy(update={"tick": ticks[0]}) if ticks else one for one in delays(read.rtt)]
        elements = _replaced(elements, Delay, new, 0)
    if "jitter" in changes:
        elements = _replaced(elements, Jitter, [] if read.jitter is None else [read.jitter], _slowest(elements))
    if "loss" in changes:
        loss = [] if read.loss == 0.0 else [Loss(probability=changes["loss"])]
        elements = _replaced(elements, Loss, loss, _slowest(elements))
    if changes.keys() & {"rate", "trace", "queue"}:
        place = _slowest(elements)
        if place is None:
            raise ConfigError(
                "path-without-link",
                "a path without a link",
                where="path",
                expected="a link, whose rate and queue can change",
            )
        link = elements[place]
        assert isinstance(link, Link)
        elements[place] = link.model_copy(update={"uplink": _link(link.uplink, read, changes)})
    return elements


def _link(old: LinkDirection | None, read: Shorthand, changes: Mapping[str, Any]) -> LinkDirection:
    assert old is not None
    schedule: dict[str, Any] = {"rate": old.rate} if old.trace is None else {"trace": old.trace}
    schedule = {key: changes[key] for key in ("rate", "trace") if key in changes} or schedule
    queue = read.queue if "queue" in changes else old.queue
    return LinkDirection(**schedule, queue=queue, overhead=old.overhead, device_packets=old.device_packets)


def _slowest(elements: Sequence[AnyElement]) -> int | None:
    """The position of the slowest link of the data direction; None without one."""
    links = [
        (mean_rate(one.uplink), place)
        for place, one in enumerate(elements)
        if isinstance(one, Link) and one.uplink is not None
    ]
    return min(links)[1] if links else None


def _replaced(
    elements: Sequence[AnyElement],
    kind: type[Delay] | type[Loss] | type[Jitter],
    new: Sequence[AnyElement],
    place: int | None,
) -> list[AnyElement]:
    """The elements with new ones where the first of a kind was, or at a place, and none of that kind besides."""

    def goes(one: AnyElement) -> bool:
        # Losses and jitter of acknowledgements stay.
        return isinstance(one, kind) and (isinstance(one, Delay) or one.direction != "downlink")

    at = next((index for index, one in enumerate(elements) if goes(one)), place or 0)
    before = [one for one in elements[:at] if not goes(one)]
    return [*before, *new, *(one for one in elements[at:] if not goes(one))]
