"""Path elements, as users write them.

A path is a list of elements, the outermost first, exactly as mahimahi nests its shells: the sender sits inside the
last one. Data crosses the list from its end to its beginning, acknowledgements from its beginning to its end. Each
model compiles to an ``ElementSpec`` of the native core (``crates/ccgym-link/src/spec.rs``), or to none for a direction
that it does not concern.
"""

from __future__ import annotations

from abc import abstractmethod
from fractions import Fraction
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from typing_extensions import override

from ccgym.config.quantities import PeriodField, ProbabilityField, ProbabilitySteps, RateSteps, TimeField, TimeSteps
from ccgym.config.queues import Infinite, QueueField
from ccgym.errors import ConfigError, did_you_mean, shown
from ccgym.units import NS_PER_MS, format_probability, format_rate, format_time, is_number

Direction: TypeAlias = Literal["uplink", "downlink"]
"""``uplink`` carries the data: from the sender outwards. ``downlink`` carries the acknowledgements."""

DIRECTIONS: Final[tuple[Direction, ...]] = get_args(Direction)
"""Both directions, that of the data first."""

MAHIMAHI_TICK_NS: Final = NS_PER_MS
"""mahimahi's clock counts whole milliseconds."""
MAHIMAHI_OVERHEAD: Final = 4
"""Bytes that mahimahi charges per packet beside its IP length: the prefix of its TUN device."""


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Element(_Strict):
    kind: str

    @abstractmethod
    def compiled(self, direction: Direction, bdp_packets: Fraction) -> dict[str, Any] | None:
        """The native ``ElementSpec`` for one direction, or ``None`` if packets of that direction pass untouched."""

    @abstractmethod
    def describe(self, direction: Direction) -> str | None:
        """A few words for one direction, or ``None``."""


def _words(value: int | float | tuple[tuple[int, Any], ...], write: Any) -> str:
    if isinstance(value, tuple):
        shown_steps = [f"{write(part)} from {format_time(start)}" for start, part in value[:4]]
        more = f", … ({len(value)} steps)" if len(value) > 4 else ""
        return ", ".join(shown_steps) + more
    return str(write(value))


class Delay(_Element):
    """A propagation delay (mahimahi's ``mm-delay``)."""

    kind: Literal["delay"] = "delay"
    delay: TimeSteps
    """One-way delay."""
    direction: Literal["both", "uplink", "downlink"] = "both"
    """Whom it concerns; mahimahi's always concerns both."""
    tick: TimeField = 0
    """Granularity of the clock: mahimahi's is 1 ms, so that its real delay lies in (MS−1, MS]; 0 is exact."""

    @override
    def compiled(self, direction: Direction, bdp_packets: Fraction) -> dict[str, Any] | None:
        if self.direction not in ("both", direction):
            return None
        return {"kind": "delay", "delay": _native(self.delay), "tick": self.tick}

    @override
    def describe(self, direction: Direction) -> str | None:
        return f"delay {_words(self.delay, format_time)}" if self.direction in ("both", direction) else None


class _Directed(_Element):
    direction: Direction = "uplink"
    """Whom it concerns."""

    @override
    def compiled(self, direction: Direction, bdp_packets: Fraction) -> dict[str, Any] | None:
        return self.native() if direction == self.direction else None

    @override
    def describe(self, direction: Direction) -> str | None:
        return self.words() if direction == self.direction else None

    @abstractmethod
    def native(self) -> dict[str, Any]:
        """The native ``ElementSpec``."""

    @abstractmethod
    def words(self) -> str:
        """A few words."""


class Loss(_Directed):
    """Independent random loss (mahimahi's ``mm-loss``)."""

    kind: Literal["loss"] = "loss"
    probability: ProbabilitySteps
    """Probability per packet."""

    @override
    def native(self) -> dict[str, Any]:
        return {"kind": "loss", "probability": _native(self.probability)}

    @override
    def words(self) -> str:
        return f"random loss {_words(self.probability, format_probability)}"


class GilbertElliott(_Directed):
    """Burst loss with two states: per packet, the state moves first, then the coin of the state falls."""

    kind: Literal["gilbert_elliott"] = "gilbert_elliott"
    good_to_bad: ProbabilityField
    """Probability of good → bad per packet."""
    bad_to_good: ProbabilityField
    """Probability of bad → good per packet."""
    loss_good: ProbabilityField = 0.0
    """Loss in the good state."""
    loss_bad: ProbabilityField = 1.0
    """Loss in the bad state."""

    @override
    def native(self) -> dict[str, Any]:
        return {
            "kind": "gilbert_elliott",
            "good_to_bad": self.good_to_bad,
            "bad_to_good": self.bad_to_good,
            "loss_good": self.loss_good,
            "loss_bad": self.loss_bad,
        }

    @override
    def words(self) -> str:
        states = f"{format_probability(self.good_to_bad)} into, {format_probability(self.bad_to_good)} out of it"
        return f"burst loss {format_probability(self.loss_bad)} in the bad state ({states})"


class OnOff(_Directed):
    """Exponential on and off periods, starting on; arrivals while off are dropped (as by mahimahi's ``mm-onoff``)."""

    kind: Literal["on_off"] = "on_off"
    mean_on: PeriodField
    """Mean on period."""
    mean_off: PeriodField
    """Mean off period."""
    hold: bool = False
    """Whether arrivals while off leave together when it is on again, as from a host that was not scheduled."""

    @override
    def native(self) -> dict[str, Any]:
        held = {"hold": True} if self.hold else {}
        return {"kind": "on_off", "mean_on": self.mean_on, "mean_off": self.mean_off, **held}

    @override
    def words(self) -> str:
        on, off = format_time(self.mean_on), format_time(self.mean_off)
        return f"on for {on}, {'held' if self.hold else 'off'} for {off} (exponential means)"


class Intermittent(_Directed):
    """Fixed on and off periods, starting on; arrivals while off are dropped (mahimahi's ``mm-intermittent``)."""

    kind: Literal["intermittent"] = "intermittent"
    on: PeriodField
    """On period."""
    off: PeriodField
    """Off period."""

    @override
    def native(self) -> dict[str, Any]:
        return {"kind": "intermittent", "on": self.on, "off": self.off}

    @override
    def words(self) -> str:
        return f"on for {format_time(self.on)}, off for {format_time(self.off)} (fixed)"


class UniformJitter(_Strict):
    """Extra delay uniform in [0, max]."""

    kind: Literal["uniform"] = "uniform"
    max: TimeField
    """Largest extra delay."""


class NormalJitter(_Strict):
    """Normal extra delay, cut at zero."""

    kind: Literal["normal"] = "normal"
    mean: TimeField
    """Mean."""
    std: TimeField
    """Standard deviation."""


class ExponentialJitter(_Strict):
    """Exponential extra delay."""

    kind: Literal["exponential"] = "exponential"
    mean: TimeField
    """Mean."""


def _distribution(value: object) -> object:
    return {"kind": "uniform", "max": value} if isinstance(value, str) or is_number(value) else value


JitterDistribution: TypeAlias = Annotated[
    UniformJitter | NormalJitter | ExponentialJitter, Field(discriminator="kind"), BeforeValidator(_distribution)
]


class Jitter(_Directed):
    """Random extra delay per packet."""

    kind: Literal["jitter"] = "jitter"
    distribution: JitterDistribution
    """Its distribution; a time alone is the maximum of a uniform one."""
    reorder: bool = False
    """Whether later packets may overtake; if not, no packet leaves before its predecessor."""

    @override
    def native(self) -> dict[str, Any]:
        distribution = {
            name: getattr(self.distribution, name) for name in type(self.distribution).model_fields if name != "kind"
        }
        return {
            "kind": "jitter",
            "distribution": {"kind": self.distribution.kind, **distribution},
            "reorder": self.reorder,
        }

    @override
    def words(self) -> str:
        names = [name for name in type(self.distribution).model_fields if name != "kind"]
        numbers = ", ".join(f"{name} {format_time(getattr(self.distribution, name))}" for name in names)
        return f"{self.distribution.kind} jitter ({numbers}{', reordering' if self.reorder else ''})"


class LinkDirection(_Strict):
    """One direction of a bottleneck: when it may deliver, and what waits."""

    trace: str | None = Field(default=None, min_length=1)
    """Delivery trace: a name of the catalog, or a file."""
    rate: RateSteps | None = None
    """Or a rate without a file: wire bits per second, packets serialized one after the other."""
    queue: QueueField = Infinite()
    """What waits, and what is dropped."""
    overhead: int = Field(default=0, ge=0, le=10_000)
    """Bytes charged per packet beside its IP length: mahimahi 4, PPP 2."""
    device_packets: int = Field(default=0, ge=0, le=2**31)
    """With a rate: packets in a device buffer below the queue discipline, out of its sight (ns-3's net device)."""

    @model_validator(mode="after")
    def _one_schedule(self) -> LinkDirection:
        if (self.trace is None) == (self.rate is None):
            found = "both a trace and a rate" if self.trace is not None else "neither a trace nor a rate"
            raise ConfigError(found, expected="exactly one of the two")
        if self.trace is not None and self.device_packets:
            raise ConfigError("device_packets with a trace", expected="them only with a rate")
        return self

    def compiled(self, once: bool, bdp_packets: Fraction) -> dict[str, Any]:
        """The native ``ElementSpec``."""
        schedule = (
            {"kind": "trace", "name": self.trace, "once": once}
            if self.trace is not None
            else {"kind": "rate", "rate": _native(self.rate)}
        )
        return {
            "kind": "link",
            "schedule": schedule,
            "queue": self.queue.compiled(bdp_packets),
            "overhead": self.overhead,
            "device_packets": self.device_packets,
        }

    def describe(self) -> str:
        """A few words."""
        schedule = f"trace {self.trace}" if self.trace is not None else f"link {_words(self.rate or 0, format_rate)}"
        return f"{schedule}, {self.queue.describe()}"


class Link(_Element):
    """A bottleneck in one or both directions (mahimahi's ``mm-link``)."""

    kind: Literal["link"] = "link"
    uplink: LinkDirection | None = None
    """The direction of the data; ``None`` is unconstrained."""
    downlink: LinkDirection | None = None
    """The direction of the acknowledgements; ``None`` is unconstrained."""
    once: bool = False
    """Stop at the end of the traces instead of repeating them (``--once``)."""

    def toward(self, direction: Direction) -> LinkDirection | None:
        """The given direction of the link."""
        return self.uplink if direction == "uplink" else self.downlink

    @override
    def compiled(self, direction: Direction, bdp_packets: Fraction) -> dict[str, Any] | None:
        link = self.toward(direction)
        return None if link is None else link.compiled(self.once, bdp_packets)

    @override
    def describe(self, direction: Direction) -> str | None:
        link = self.toward(direction)
        return None if link is None else link.describe() + (" (once)" if self.once else "")


MAX_ELEMENTS: Final = 100
"""Elements of a path; longer chains are refused."""

AnyElement: TypeAlias = Delay | Loss | GilbertElliott | OnOff | Intermittent | Jitter | Link
"""Every path element."""

KINDS: Final[dict[str, type[_Element]]] = {cls.model_fields["kind"].default: cls for cls in get_args(AnyElement)}
"""The elements by ``kind``."""


def parse_element(value: object) -> object:
    """Refuse a mapping of unknown ``kind`` with a near miss; the rest is the models' business."""
    if isinstance(value, dict):
        kind = value.get("kind")
        if kind not in KINDS:
            raise ConfigError(
                "an element without kind" if kind is None else f"unknown element {shown(kind)}",
                expected="kind: " + ", ".join(KINDS),
                hint=did_you_mean(str(kind), KINDS) if kind is not None else "",
            )
    return value


ElementField: TypeAlias = Annotated[AnyElement, Field(discriminator="kind"), BeforeValidator(parse_element)]
"""A path element in a model."""


def _native(value: int | float | tuple[tuple[int, Any], ...] | None) -> Any:
    return [list(step) for step in value] if isinstance(value, tuple) else value
