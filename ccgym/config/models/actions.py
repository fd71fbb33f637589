"""What an agent does.

Written by `make docs` from the declarations in Rust (spec.rs of ccgym-path and ccgym-run, and the
agent's spec): change it there.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from ccgym.config import declared
from ccgym.config.expressions import BoundsField, ExpressionField, OperationField
from ccgym.config.quantities import TimeField


class DiscreteMap(declared.Declared):
    """One of several operations on the value in force: `*x`, `/x`, `+n`, `-n`. Amounts are packets for a window, and
    packets per min RTT for a rate."""

    kind: Literal["discrete"] = "discrete"
    operations: tuple[OperationField, ...] = Field(min_length=2, max_length=10_000, description="The operations.")


class SignedMultiplyMap(declared.Declared):
    """Times 1 + delta·a, or over 1 − delta·a if a is negative (Aurora)."""

    kind: Literal["signed_multiply"] = "signed_multiply"
    delta: float = Field(le=1_000_000, gt=0, description="Relative change per unit.")


class ExponentialMap(declared.Declared):
    """Times base to the a-th power (Orca, Sage)."""

    kind: Literal["exponential"] = "exponential"
    base: float = Field(le=1_000_000, gt=1, description="Base.")


class GainOnEstimateMap(declared.Declared):
    """One of several gains times an estimate; nothing changes while the estimate is unknown."""

    kind: Literal["gain_on_estimate"] = "gain_on_estimate"
    gains: tuple[Annotated[float, Field(gt=0, le=1_000_000)], ...] = Field(
        min_length=2, max_length=10_000, description="The gains."
    )
    estimate: ExpressionField = Field(
        default="max_delivery_rate", description="The estimate: bit/s for a rate, packets for a window."
    )


class PairMap(declared.Declared):
    """Two numbers: the first steers the rate, the second the window, each as `signed_multiply`."""

    kind: Literal["pair"] = "pair"
    delta: float = Field(le=1_000_000, gt=0, description="Relative change per unit.")


class PassiveMap(declared.Declared):
    """No action: the base scheme decides."""

    kind: Literal["passive"] = "passive"


AnyMap: TypeAlias = DiscreteMap | SignedMultiplyMap | ExponentialMap | GainOnEstimateMap | PairMap | PassiveMap
"""Map from numbers to a rate, a window or a gain."""

MapField: TypeAlias = Annotated[AnyMap, declared.OneOf("map", declared.read_map)]


class Limits(declared.Declared):
    """Bounds of the steered quantity."""

    rate: BoundsField = Field(default=(10000.0, 1000000000000.0), description="Bounds of the rate, bit/s.")
    window: BoundsField = Field(default=(2.0, 1000000.0), description="Bounds of the window, packets.")
    packets_per_min_rtt: float = Field(default=0.0, ge=0, le=1_000_000, description="Min rate in packets per min RTT.")
    gain: BoundsField | None = Field(default=None, description="Bounds of the gain; [0.01, 100] unless given.")


class Smoothing(declared.Declared):
    """Part of the current value that a decision keeps: keep · old + (1 − keep) · new."""

    min_rtt: TimeField = Field(description="Min RTT from which on this counts; of several the last one does.")
    keep: float = Field(ge=0, le=1, description="Fraction of the old value.")


class Cap(declared.Declared):
    """An upper bound of the window: a multiple of the bandwidth-delay product plus packets."""

    bdp: float = Field(ge=0, le=1_000_000, description="Multiple of estimate × min RTT.")
    packets: float = Field(ge=0, le=1_000_000_000, description="Packets added to that.")
    startup: float | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="Multiple in start-up, where the estimate lags by a round trip; `bdp` if absent.",
    )
    estimate: ExpressionField = Field(default="max_delivery_rate", description="The bandwidth, bit/s.")


class Inner(declared.InnerBase):
    """A base scheme."""

    scheme: str = Field(min_length=1, max_length=100, description="Its name in the registry.")
    params: dict[str, Any] = Field(default={}, description="Its parameters.")


class Action(declared.Declared):
    """The action of an agent."""

    map: MapField = Field(description="Map from numbers to a rate, a window or a gain.")
    target: Literal["rate", "cwnd", "both", "gain"] = Field(description="The steered quantity.")
    limits: Limits = Field(default=Limits(), description="Bounds of the steered quantity.")
    bounds: BoundsField = Field(
        default=(-1.0, 1.0), description="Bounds of the numbers, for maps that take real numbers."
    )
    smoothing: tuple[Smoothing, ...] | None = Field(
        default=None,
        max_length=100,
        description=(
            "Part of the current value that each decision keeps, by the min RTT; nothing unless given (Muses' trees)."
        ),
    )
    pace: Literal["none", "cwnd_over_min_rtt", "cwnd_over_srtt"] = Field(
        default="none", description="Pacing of a steered window."
    )
    cwnd_cap: Cap | None = Field(default=None, description="Upper bound of the window.")
    inner: Inner | None = Field(
        default=None,
        description=(
            "Base scheme whose window the agent overwrites; it continues from there with each acknowledgement (Orca). "
            "With the target `gain`, the scheme whose queue it scales."
        ),
    )
