"""Elements of a path: links, delays, losses, jitter and others.

Written by `make docs` from the declarations in Rust (spec.rs of ccgym-path and ccgym-run, and the
agent's spec): change it there.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from pydantic import Field

from ccgym.config import declared
from ccgym.config.models.links import Link
from ccgym.config.quantities import PeriodField, ProbabilityField, ProbabilitySteps, TimeField, TimeSteps


class Delay(declared.DelayBase):
    """A propagation delay (mahimahi's `mm-delay`). Order is kept when it shrinks."""

    WORDS: ClassVar[str] = "delay {delay}"
    kind: Literal["delay"] = "delay"
    delay: TimeSteps = Field(description="One-way delay.")
    tick: TimeField = Field(
        default=0,
        description=(
            "Granularity of the clock: mahimahi's is 1 ms, so that its real delay lies in (MS−1, MS]; 0 is exact."
        ),
    )


class Loss(declared.Element):
    """Independent random loss (mahimahi's `mm-loss`)."""

    WORDS: ClassVar[str] = "random loss {probability}"
    kind: Literal["loss"] = "loss"
    probability: ProbabilitySteps = Field(description="Probability per packet.")


class Duplicate(declared.Element):
    """Random duplication (netem's `duplicate`): the copy follows at once, and meets the elements behind by itself."""

    WORDS: ClassVar[str] = "duplicates {probability}"
    kind: Literal["duplicate"] = "duplicate"
    probability: ProbabilitySteps = Field(description="Probability per packet.")


class Bleach(declared.Element):
    """A hop that clears the ECN field: before a link no packet can be marked there, behind it the marks are lost."""

    WORDS: ClassVar[str] = "ECN cleared {probability}"
    kind: Literal["bleach"] = "bleach"
    probability: ProbabilitySteps = Field(default=1.0, description="Probability per packet.")


class GilbertElliott(declared.Element):
    """Burst loss with two states (Gilbert–Elliott): per packet, first the state may change, then the packet may be
    lost."""

    WORDS: ClassVar[str] = "burst loss {loss_bad} in the bad state ({good_to_bad} into, {bad_to_good} out of it)"
    kind: Literal["gilbert_elliott"] = "gilbert_elliott"
    good_to_bad: ProbabilityField = Field(description="Probability of good → bad per packet.")
    bad_to_good: ProbabilityField = Field(description="Probability of bad → good per packet.")
    loss_good: ProbabilityField = Field(default=0.0, description="Loss probability in the good state.")
    loss_bad: ProbabilityField = Field(default=1.0, description="Loss probability in the bad state.")


class OnOff(declared.Element):
    """Exponential on and off periods, starting on; arrivals while off are dropped (mahimahi's `mm-onoff`) or held."""

    WORDS: ClassVar[str] = "on for {mean_on}, {hold:held|off} for {mean_off} (exponential means)"
    kind: Literal["on_off"] = "on_off"
    mean_on: PeriodField = Field(description="Mean on period.")
    mean_off: PeriodField = Field(description="Mean off period.")
    hold: bool = Field(
        default=False,
        description=(
            "If true, arrivals while off leave together when it is on again, as from a host that was not scheduled."
        ),
    )


class Intermittent(declared.Element):
    """Fixed on and off periods, starting on; arrivals while off are dropped (mahimahi's `mm-intermittent`)."""

    WORDS: ClassVar[str] = "on for {on}, off for {off} (fixed)"
    kind: Literal["intermittent"] = "intermittent"
    on: PeriodField = Field(description="On period.")
    off: PeriodField = Field(description="Off period.")


class UniformJitterDistribution(declared.Declared):
    """Extra delay uniform in [0, max]."""

    WORDS: ClassVar[str] = "uniform jitter (max {max})"
    kind: Literal["uniform"] = "uniform"
    max: TimeField = Field(description="Max extra delay.")


class NormalJitterDistribution(declared.Declared):
    """Normal extra delay, cut at zero."""

    WORDS: ClassVar[str] = "normal jitter (mean {mean}, std {std})"
    kind: Literal["normal"] = "normal"
    mean: TimeField = Field(description="Mean.")
    std: TimeField = Field(description="Standard deviation.")


class ExponentialJitterDistribution(declared.Declared):
    """Exponential extra delay."""

    WORDS: ClassVar[str] = "exponential jitter (mean {mean})"
    kind: Literal["exponential"] = "exponential"
    mean: TimeField = Field(description="Mean.")


class WifiJitterDistribution(declared.Declared):
    """Wi-Fi's delay of draft-huitema-ccwg-c4-test: Poisson(1) waits of up to 1 ms for the channel, and for a part of
    the packets, which follows from the mean, Poisson(12) repetitions of 7.5 ms each."""

    WORDS: ClassVar[str] = "Wi-Fi's jitter (mean {mean})"
    kind: Literal["wifi"] = "wifi"
    mean: TimeSteps = Field(
        description=(
            "Mean that the draft asks for, over time: up to 1 ms without repetitions, from 91 ms for all packets."
        ),
    )


class QuantizedJitterDistribution(declared.Declared):
    """Packets leave together at multiples of a period, as from a device that collects them (Wi-Fi, a modem)."""

    WORDS: ClassVar[str] = "packets leave every {period}"
    kind: Literal["quantized"] = "quantized"
    period: PeriodField = Field(description="Period.")


AnyJitterDistribution: TypeAlias = (
    UniformJitterDistribution
    | NormalJitterDistribution
    | ExponentialJitterDistribution
    | WifiJitterDistribution
    | QuantizedJitterDistribution
)
"""Distribution of extra delay; never negative."""

JitterDistributionField: TypeAlias = Annotated[
    AnyJitterDistribution, declared.OneOf("jitter distribution", declared.read_jitter_distribution)
]


class Jitter(declared.Element):
    """Extra delay per packet, random or up to the next tick of a clock."""

    WORDS: ClassVar[str] = "{distribution}{reorder: with reordering|}{flows: for some flows|}"
    kind: Literal["jitter"] = "jitter"
    distribution: JitterDistributionField = Field(
        description="Its distribution; a time alone is the maximum of a uniform one."
    )
    reorder: bool = Field(
        default=False,
        description="If true, later packets may overtake; if not, a packet never leaves before its predecessor.",
    )
    flows: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        default=(),
        description="Numbers of the flows whose packets are delayed, from 1; those of others pass at once. Empty: all.",
    )


AnyElement: TypeAlias = Link | Delay | Loss | Duplicate | Bleach | GilbertElliott | OnOff | Intermittent | Jitter
"""One path element, in the order in which a packet crosses them."""

ElementField: TypeAlias = Annotated[AnyElement, declared.OneOf("element")]
