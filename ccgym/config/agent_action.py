"""What an agent does, as users write it: how its output becomes a rate or a window.

::

    action: {map: {kind: signed_multiply, delta: 0.025}, target: rate, limits: {rate: [40 packets/s, 1000 packets/s]}}
    action: {map: {kind: discrete, operations: ["/2", "-10", "+0", "+10", "*2"]}, target: cwnd}
    action: {map: {kind: exponential, base: 4}, target: cwnd, inner: cubic}
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from pydantic import BeforeValidator, Field, model_validator
from typing_extensions import Self

from ccgym.config.agent_observation import AmountField, BoundsField, ExpressionField, Strict
from ccgym.config.quantities import TimeField
from ccgym.errors import ConfigError, did_you_mean, shown

_OPERATION: Final = re.compile(r"([*/+-])\s*([0-9]+(?:\.[0-9]+)?|\.[0-9]+)")
_SIGNS: Final = {"×": "*", "x": "*", "÷": "/", "−": "-", ":": "/"}


def read_operation(value: Any) -> str:
    """Read ``"/2"``, ``"*1.25"``, ``"+10"``, ``"-10"``; ``×``, ``÷`` and bare numbers (``+10``) are understood.

    Raises:
        ConfigError: It is none of these, or divides or multiplies by zero.
    """
    if isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value):
        value = f"{'-' if value < 0 else '+'}{abs(value):.12g}"  # YAML reads +10 as a number
    match = None
    if isinstance(value, str) and 0 < len(value) <= 100:
        text = value.strip()
        match = _OPERATION.fullmatch(_SIGNS.get(text[:1], text[:1]) + text[1:])
    if match is None:
        raise ConfigError(
            shown(value), expected="an operation: '/2', '*1.25', '+10' or '-10'", hint="quote '*2' in YAML"
        )
    sign, amount = match.groups()
    if sign in "*/" and float(amount) == 0.0:
        raise ConfigError(shown(value), expected="a factor above zero")
    return f"{sign}{amount}"


OperationField: TypeAlias = Annotated[str, BeforeValidator(read_operation)]
"""One operation on the value in force."""


class DiscreteMap(Strict):
    """One of several operations on the value in force."""

    kind: Literal["discrete"] = "discrete"
    operations: tuple[OperationField, ...] = Field(min_length=2, max_length=10_000)
    """``*x``, ``/x``, ``+n``, ``-n``; n in packets, for a rate in packets per smallest round trip."""


class SignedMultiplyMap(Strict):
    """Times 1 + delta·a, or over 1 − delta·a where a is negative, as Aurora does."""

    kind: Literal["signed_multiply"] = "signed_multiply"
    delta: float = Field(gt=0, le=1e6)
    """Relative change per unit of the action."""


class ExponentialMap(Strict):
    """Times base to the power of a, as Orca and Sage do."""

    kind: Literal["exponential"] = "exponential"
    base: float = Field(gt=1, le=1e6)
    """The base."""


class GainOnEstimateMap(Strict):
    """One of several gains times an estimate of the path, as BBR does."""

    kind: Literal["gain_on_estimate"] = "gain_on_estimate"
    gains: tuple[Annotated[float, Field(gt=0, le=1e6)], ...] = Field(min_length=2, max_length=10_000)
    """The gains."""
    estimate: ExpressionField = "max_delivery_rate"
    """The estimate: bit/s for a rate, packets for a window."""


class SetMap(Strict):
    """A value between two ends, whatever it was before; the bounds of the action map to the ends."""

    kind: Literal["set"] = "set"
    low: AmountField
    """At the lower bound: a rate like ``1mbps``, or packets."""
    high: AmountField
    """At the upper bound."""
    log: bool = False
    """Even steps of the logarithm."""


class PairMap(Strict):
    """Two numbers: the first steers the rate, the second the window, each as ``signed_multiply``."""

    kind: Literal["pair"] = "pair"
    delta: float = Field(gt=0, le=1e6)
    """Relative change per unit of the action."""


class PassiveMap(Strict):
    """No action: the scheme below decides. For measuring a scheme by an agent's reward."""

    kind: Literal["passive"] = "passive"


AnyMap: TypeAlias = DiscreteMap | SignedMultiplyMap | ExponentialMap | GainOnEstimateMap | SetMap | PairMap | PassiveMap
"""Every map."""

MAPS: Final = tuple(cls.model_fields["kind"].default for cls in get_args(AnyMap))
"""Their kinds."""


def _read_map(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return {"kind": "discrete", "operations": list(value)}
    if isinstance(value, str):
        value = {"kind": value}
    return with_known_kind(value, MAPS, "map")


def with_known_kind(value: Any, known: tuple[str, ...], what: str) -> Any:
    """Refuse a mapping of unknown ``kind`` with a near miss; the rest is the models' business."""
    if isinstance(value, dict) and value.get("kind") not in known:
        kind = value.get("kind")
        raise ConfigError(
            f"a {what} without kind" if kind is None else f"unknown {what} {shown(kind)}",
            expected="kind: " + ", ".join(known),
            hint="" if kind is None else did_you_mean(str(kind), known),
            where="" if kind is None else "kind",
        )
    return value


class Limits(Strict):
    """Floor and ceiling of what is steered."""

    rate: BoundsField = (1e4, 1e12)
    """Of the rate: ``[40 packets/s, 3mbps]``."""
    window: BoundsField = (2.0, 1e6)
    """Of the window, packets."""
    packets_per_min_rtt: float = Field(default=0.0, ge=0, le=1e6)
    """The rate is also at least so many packets per smallest round trip."""


class WindowCap(Strict):
    """An upper bound of the window: a multiple of the bandwidth-delay product, and packets beside."""

    bdp: float = Field(ge=0, le=1e6)
    """Multiple of estimate × smallest round trip."""
    packets: float = Field(ge=0, le=1e9)
    """Packets beside."""
    startup: float | None = Field(None, ge=0, le=1e6)
    """Multiple in start-up, where the estimate lags behind by a round trip; ``bdp`` if absent."""
    estimate: ExpressionField = "max_delivery_rate"
    """The bandwidth, bit/s."""


class Inner(Strict):
    """A scheme that runs below, and whose decision the agent adjusts."""

    scheme: str = Field(min_length=1)
    """A name from `ccgym schemes`."""
    params: dict[str, Any] = Field(default_factory=dict)
    """Its parameters."""
    role: Literal["gain", "cap"] = "gain"
    """``gain`` multiplies its window and rate (Orca); ``cap`` bounds its window (DeepCC)."""


def _read_inner(value: Any) -> Any:
    return {"scheme": value} if isinstance(value, str) else value


Weight: TypeAlias = Annotated[float, Field(ge=0, lt=1)]


class Action(Strict):
    """What the agent does."""

    map: Annotated[AnyMap, Field(discriminator="kind"), BeforeValidator(_read_map)]
    """How its output becomes a rate or a window; a list alone is that of discrete operations."""
    target: Literal["rate", "cwnd", "both"]
    """What is steered: the pacing rate, the window, or both."""
    limits: Limits = Limits()
    """Floor and ceiling."""
    bounds: BoundsField = (-1.0, 1.0)
    """Bounds of the action space, for maps that take real numbers."""
    smoothing: Weight | tuple[tuple[TimeField, Weight], ...] = 0.0
    """Weight of the old value in the new one; or pairs: from this smallest round trip on, this weight."""
    pace: Literal["none", "cwnd_over_min_rtt", "cwnd_over_srtt"] = "none"
    """How a steered window is paced."""
    cwnd_cap: WindowCap | None = None
    """Upper bound of the window."""
    inner: Annotated[Inner, BeforeValidator(_read_inner)] | None = None
    """A scheme that runs below; a name alone is enough."""

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if isinstance(self.map, SetMap) and self.map.low >= self.map.high:
            raise ConfigError(
                f"low {self.map.low:g}, high {self.map.high:g}", expected="low below high", where="map.low"
            )
        return self
