"""What an agent is rewarded for.

Written by `make docs` from the declarations in Rust (spec.rs of ccgym-path and ccgym-run, and the
agent's spec): change it there.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from ccgym.config import declared
from ccgym.config.expressions import ExpressionField


class Term(declared.Declared):
    """One term of a reward."""

    term: str
    weight: float = Field(description="Factor; negative for costs.")
    name: str | None = Field(
        default=None, min_length=1, max_length=100, description="Name to show, and in logs; the term's by default."
    )
    phase: tuple[Literal["startup", "drain", "probe"], ...] | None = Field(
        default=None, min_length=1, description="Phases in which it counts; all by default."
    )


class ThroughputTerm(Term):
    """A rate."""

    term: Literal["throughput"] = "throughput"
    of: ExpressionField = Field(default="delivery_rate", description="A rate: delivery_rate, receive_rate, …")
    unit: Literal["Mbit/s", "packets/s", "MB/s", "bit/s"] = Field(
        default="Mbit/s",
        description="Unit of the weight; packets are full ones of wire bytes; without effect where over is given.",
    )
    over: ExpressionField | None = Field(default=None, description="Divide by this rate, instead of a unit.")


class LatencyTerm(Term):
    """A round-trip time."""

    term: Literal["latency"] = "latency"
    of: ExpressionField = Field(default="mean_rtt", description="A signal in seconds.")
    unit: Literal["s", "ms"] = Field(default="s", description="Unit of the weight.")


class QueueDelayTerm(Term):
    """Round-trip time above the minimum."""

    term: Literal["queue_delay"] = "queue_delay"
    unit: Literal["s", "ms", "min_rtt"] = Field(default="s", description="Unit of the weight; min_rtt: relative to it.")
    max: float | None = Field(default=None, ge=0, description="Larger values count as this, in the unit.")


class LossTerm(Term):
    """Fraction of packets lost."""

    term: Literal["loss"] = "loss"
    of: Literal["settled", "sent"] = Field(
        default="settled", description="Of the packets acknowledged or lost in the interval, or of those sent in it."
    )


class MarksTerm(Term):
    """Fraction of packets marked with congestion experienced."""

    term: Literal["marks"] = "marks"


class UtilizationTerm(Term):
    """A rate over the path's capacity."""

    term: Literal["utilization"] = "utilization"
    of: ExpressionField = Field(default="delivery_rate", description="A rate.")
    base: Literal["link_rate", "fair_share"] = Field(
        default="link_rate", description="The bottleneck's rate, or the flow's fair share of it."
    )
    max: float | None = Field(default=None, ge=0, description="Larger values count as this.")


class UnfairnessTerm(Term):
    """How unequally the flows of the path are served."""

    term: Literal["unfairness"] = "unfairness"


class OrcaPowerTerm(Term):
    """Throughput minus losses over the maximum throughput, times closeness to the minimum round trip, as Orca."""

    term: Literal["orca_power"] = "orca_power"
    loss_factor: float = Field(default=5.0, ge=0, description="What a lost bit costs in delivered ones.")
    margin: float = Field(
        default=1.25,
        ge=1,
        le=1_000_000,
        description="Up to this multiple of the minimum round trip, delay costs nothing.",
    )


AnyTerm: TypeAlias = (
    ThroughputTerm
    | LatencyTerm
    | QueueDelayTerm
    | LossTerm
    | MarksTerm
    | UtilizationTerm
    | UnfairnessTerm
    | OrcaPowerTerm
)
"""One term of a reward."""

TermField: TypeAlias = Annotated[AnyTerm, declared.OneOf("term", tag="term")]


class Reward(declared.Declared):
    """The reward: scale × Σ weight × term."""

    scale: float = Field(default=1.0, description="Factor of the sum.")
    terms: tuple[TermField, ...] = Field(default=(), max_length=1000, description="The terms.")
