"""Agents: clock, start-up, guard, and all of it.

Written by `make docs` from the declarations in Rust (spec.rs of ccgym-path and ccgym-run, and the
agent's spec): change it there.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from ccgym.config import declared
from ccgym.config.models.actions import Action
from ccgym.config.models.experts import ExpertField
from ccgym.config.models.observations import Observation
from ccgym.config.models.rewards import Reward
from ccgym.config.quantities import FlowRateField, PeriodField, ProbabilityField, TimeField


class FixedClock(declared.Declared):
    """At fixed intervals."""

    kind: Literal["fixed"] = "fixed"
    interval: PeriodField = Field(description="Length.")
    on_ack: bool = Field(
        default=False,
        description=(
            "Decide at the first acknowledgement strictly more than `interval` after the previous decision instead of "
            "by a timer (Indigo)."
        ),
    )
    tick: TimeField = Field(
        default=0,
        description=(
            "With `on_ack`: compare times truncated to whole ticks, as Indigo does with milliseconds. Zero: exact."
        ),
    )


class RttClock(declared.Declared):
    """At multiples of a round trip."""

    kind: Literal["rtt"] = "rtt"
    multiple: float = Field(le=1000, gt=0, description="Interval over round trip.")
    of: Literal["mean", "smoothed", "min"] = Field(default="mean", description="RTT that sets the interval.")
    floor: PeriodField = Field(default=10_000_000, description="Min interval.")
    ceiling: PeriodField | None = Field(
        default=None,
        description="Max interval; unlimited unless given. After a silence the mean RTT is as long as the silence.",
    )
    warm_up_rtts: float = Field(
        default=0.0,
        ge=0,
        le=1000,
        description="Unrecorded time before the first decision, in multiples of the first round-trip sample.",
    )
    first_rtts: float | None = Field(
        default=None,
        le=1000,
        gt=0,
        description=(
            "Length of the first recorded interval in multiples of the first round-trip sample; `multiple` unless "
            "given."
        ),
    )
    no_ack: PeriodField = Field(default=1_000_000_000, description="Interval while there is no round-trip sample.")


AnyClock: TypeAlias = FixedClock | RttClock
"""Times of decisions."""

ClockField: TypeAlias = Annotated[AnyClock, declared.OneOf("clock", declared.read_clock)]


class RateStart(declared.Declared):
    """At a rate."""

    kind: Literal["rate"] = "rate"
    rate: FlowRateField = Field(description="Bit/s.")


class WindowStart(declared.Declared):
    """With a window."""

    kind: Literal["window"] = "window"
    packets: float = Field(default=10.0, ge=1, le=1_000_000_000, description="Packets.")


class PacketsPerRttStart(declared.Declared):
    """A number of packets, unpaced, before the first round-trip sample; then at that number per round trip."""

    kind: Literal["packets_per_rtt"] = "packets_per_rtt"
    packets: float = Field(default=10.0, ge=1, le=1_000_000_000, description="Packets.")


class SlowStart(declared.Declared):
    """Doubling each round trip until one of the exits; the agent does not decide before."""

    kind: Literal["slow_start"] = "slow_start"
    packets: float = Field(default=10.0, ge=1, le=1_000_000_000, description="Packets at first.")
    exit: tuple[Literal["loss", "plateau", "delay"], ...] = Field(
        default=("loss", "plateau", "delay"), min_length=1, description="Events that end it."
    )


class InnerStart(declared.Declared):
    """As the base scheme starts; the agent does not decide before that has left slow start."""

    kind: Literal["inner"] = "inner"
    gain: float = Field(
        default=1.0,
        ge=1,
        le=10,
        description="Until then each interval multiplies the window of the base scheme by this.",
    )


class NoneStart(declared.Declared):
    """As the base scheme starts; the agent decides from the first interval on."""

    kind: Literal["none"] = "none"


AnyStart: TypeAlias = RateStart | WindowStart | PacketsPerRttStart | SlowStart | InnerStart | NoneStart
"""Start of the flow."""

StartField: TypeAlias = Annotated[AnyStart, declared.OneOf("start", declared.read_start)]


class NoneGuard(declared.Declared):
    """No guard."""

    kind: Literal["none"] = "none"


class RecoveryGuard(declared.Declared):
    """Search upwards from a rate that is low for no visible reason, as slow start does."""

    kind: Literal["recovery"] = "recovery"
    fraction: float = Field(
        default=0.125,
        le=1,
        gt=0,
        description="A rate is low up to this fraction of the max rate that the path is known to carry …",
    )
    near: float = Field(default=2.0, ge=1, le=1_000_000, description="… or up to this multiple of the lower bound.")
    memory: PeriodField = Field(
        default=60_000_000_000, description="Time for which the max rate is remembered; silence does not count."
    )
    patience: PeriodField = Field(
        default=500_000_000, description="Time of a low rate on a clear path before the first search."
    )
    loss: ProbabilityField = Field(
        default=0.1,
        description="Loss over that time up to which a path is clear, 0–1; a search ends if loss rises by more.",
    )
    lift: float = Field(default=0.9, le=1, gt=0, description="Fraction of the rate found at which the flow is held.")
    hold: PeriodField = Field(
        default=1_000_000_000,
        description="Time of holding before the agent decides again; doubles each time the rate falls back at once.",
    )
    max_hold: PeriodField = Field(
        default=16_000_000_000,
        description=(
            "Max hold, max wait between searches that find nothing, and time of a low rate on a path that is not "
            "clear: twice that the second time, four times from the third on."
        ),
    )


AnyGuard: TypeAlias = NoneGuard | RecoveryGuard
"""Guard against a rate that is too low."""

GuardField: TypeAlias = Annotated[AnyGuard, declared.OneOf("guard", declared.read_guard)]


class Phases(declared.Declared):
    """Thresholds of the phases."""

    window: int = Field(default=10, ge=1, le=1000, description="Intervals over which the max delivery rate is taken.")
    growth: float = Field(
        default=0.25, gt=0, description="Relative growth of that rate below which an interval counts as flat."
    )
    plateau_steps: int = Field(default=3, ge=1, le=10_000, description="Flat intervals that end start-up.")
    exit_queue: float | None = Field(
        default=None,
        ge=0,
        description="One flat interval ends it if the mean round trip exceeds the minimum by more than this fraction.",
    )
    reenter_growth: float = Field(
        default=0.25,
        gt=0,
        description=(
            "Relative growth of the max delivery rate above its minimum since start-up at which start-up begins again …"
        ),
    )
    reenter_steps: int = Field(
        default=2, ge=1, le=10_000, description="… if seen in this number of intervals in a row, without a queue."
    )


class Agent(declared.Declared):
    """An agent: clock, observation, action and reward."""

    name: str = Field(
        default="agent", min_length=1, max_length=100, pattern=r"^[A-Za-z0-9][\w.+-]*$", description="Name."
    )
    clock: ClockField = Field(description="Times of decisions.")
    decision_latency: TimeField = Field(default=0, description="Time from a decision to its effect.")
    observation: Observation = Field(description="Its observation.")
    action: Action = Field(description="Its action.")
    reward: Reward = Field(default=Reward(), description="Its reward.")
    startup: StartField = Field(description="Start of the flow.")
    guard: GuardField = Field(default=NoneGuard(), description="Guard against a rate that is too low.")
    phases: Phases = Field(
        default=Phases(), description="Thresholds of the phases that features and reward terms may refer to."
    )
    min_rtt_window: int | None = Field(
        default=None,
        ge=1,
        le=100_000,
        description=(
            "Intervals over which `min_rtt` is taken; all since the flow started unless given. If a path's RTT grows, "
            "the min since the start stays too low."
        ),
    )
    ecn: bool | None = Field(
        default=None,
        description=(
            "True to send ECN-capable packets, with ECT(0): queues can then mark them instead of dropping, and the "
            "signals `ce_packets` and `ce_fraction` count the marks. A base scheme must react to marks."
        ),
    )
    expert: ExpertField | None = Field(
        default=None, description="Expert whose labels it can imitate; does not affect the flow."
    )
