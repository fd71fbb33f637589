"""What an agent sees, as users write it: signals, and what is done to them.

In YAML a feature is the name of a signal with a usual range, or a mapping::

    features:
      - latency_ratio                                             its usual bounds
      - {signal: queue_delay, over: min_rtt, clip: [0, 4]}        a ratio of two signals
      - {signal: ewma_queue_delay, over: 200ms, clip: [0, 100]}   a signal over a constant, with its unit
      - {signal: delivery_rate, over: "max(delivery_rate, 10)", clip: [0, 1]}

Signals are in seconds, bits per second and packets; ``ccgym describe CONFIG --signals`` lists them. An expression is a
signal, or a function of its latest intervals: ``mean``, ``min``, ``max``, ``std``, ``sum``, ``previous``.
"""

from __future__ import annotations

import math
import re
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from typing_extensions import Self

from ccgym.config.packet_rates import PACKET_RATE_UNITS, parse_flow_rate
from ccgym.errors import ConfigError, UnitError, shown
from ccgym.units import NS_PER_S, parse_probability, parse_size, parse_time

STANDARD: Final[dict[str, tuple[tuple[float, float], float]]] = {
    "rtt_inflation": ((-1.0, 10.0), 0.0),
    "latency_ratio": ((1.0, 10_000.0), 1.0),
    "send_ratio": ((0.0, 1000.0), 1.0),
    "recv_ratio": ((0.0, 1000.0), 1.0),
    "loss_fraction": ((0.0, 1.0), 0.0),
    "undelivered_fraction": ((0.0, 1.0), 0.0),
    "ce_fraction": ((0.0, 1.0), 0.0),
    "app_limited": ((0.0, 1.0), 0.0),
    "phase_startup": ((0.0, 1.0), 0.0),
    "phase_drain": ((0.0, 1.0), 0.0),
    "phase_probe": ((0.0, 1.0), 0.0),
}
"""Bounds and empty value of signals that are used as they are; the first three as PCC-RL publishes them."""

FUNCTIONS: Final = ("mean", "min", "max", "std", "sum", "previous")
"""Functions of a signal's latest intervals."""

_EXPRESSION: Final = re.compile(r"([a-z]\w{0,63})(?:\(\s*([a-z]\w{0,63})\s*,\s*([0-9]{1,6})\s*\))?")


class Strict(BaseModel):
    """Unknown keys are errors, and nothing changes afterward."""

    model_config = ConfigDict(frozen=True, extra="forbid")


def read_amount(value: Any) -> float:
    """Read a constant: a number in the signal's unit, or a quantity (times to s, rates to bit/s, sizes to packets).

    Raises:
        UnitError: A text that is no quantity.
        ConfigError: No finite number.
    """
    if isinstance(value, str):
        text = value.strip()
        unit = text.lstrip("+-0123456789.eE ")
        if unit == "%":
            return parse_probability(text)
        sign, magnitude = (-1.0, text[1:]) if text.startswith("-") else (1.0, text)
        if unit in PACKET_RATE_UNITS or "bit" in unit or unit.casefold().endswith(("bps", "b/s")):
            return sign * float(parse_flow_rate(magnitude))
        if unit in ("p", "pkt", "pkts", "packet", "packets"):
            return sign * float(parse_size(magnitude).packets or 0)
        try:
            return sign * (parse_time(magnitude) / NS_PER_S)
        except UnitError as error:
            raise UnitError(
                error.found, expected="a number in the signal's unit, or a quantity like 200ms, 10mbps or 50p",
                hint=error.hint,
            ) from None  # fmt: skip
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
        raise ConfigError(shown(value), expected="a number, or a quantity like 200ms, 10mbps or 50p")
    return float(value)


def read_expression(value: Any) -> str:
    """Read ``SIGNAL`` or ``FUNCTION(SIGNAL, n)``; blanks are set as the core prints them. Raises ConfigError."""
    match = _EXPRESSION.fullmatch(value.strip()) if isinstance(value, str) and len(value) <= 200 else None
    if match is None:
        raise ConfigError(
            shown(value), expected=f"a signal like mean_rtt, or FUNCTION(signal, n) with {', '.join(FUNCTIONS)}"
        )
    outer, inner, count = match.groups()
    return outer if inner is None else f"{outer}({inner}, {int(count)})"


def read_operand(value: Any) -> float | str:
    """Read a constant or an expression."""
    if isinstance(value, str) and value.strip()[:1].isalpha():
        return read_expression(value)
    return read_amount(value)


def _read_bounds(value: Any) -> tuple[float, float]:
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        raise ConfigError(shown(value), expected="two bounds, like [0, 4]")
    low, high = (read_amount(end) for end in value)
    if low >= high:
        raise ConfigError(f"[{low:g}, {high:g}]", expected="the smaller bound first")
    return low, high


ExpressionField: TypeAlias = Annotated[str, BeforeValidator(read_expression)]
"""``SIGNAL`` or ``FUNCTION(SIGNAL, n)``."""
OperandField: TypeAlias = Annotated[float | str, BeforeValidator(read_operand)]
"""A number in the signal's unit, a quantity, or an expression."""
AmountField: TypeAlias = Annotated[float, BeforeValidator(read_amount)]
"""A number in the unit of what it is compared with, or a quantity."""
BoundsField: TypeAlias = Annotated[tuple[float, float], BeforeValidator(_read_bounds)]
"""Two finite numbers or quantities, the smaller first."""


class Difference(Strict):
    """Over how many intervals a change is taken."""

    steps: int | None = Field(default=None, ge=1, le=10_000)
    """Intervals."""
    rtts: float | None = Field(default=None, gt=0, le=1000)
    """Or smallest round trips, made into intervals by the length of the present one."""
    at_most: int | None = Field(default=None, ge=1, le=10_000)
    """With ``rtts``: most intervals."""
    relative: bool = False
    """Whether the change is divided by the old value."""

    @model_validator(mode="after")
    def _one(self) -> Self:
        if (self.steps is None) == (self.rtts is None):
            raise ConfigError("both or neither of steps and rtts", expected="exactly one of the two")
        return self


class LogPlus(Strict):
    """A logarithm of something that may be zero."""

    plus: float = Field(gt=0)
    """Added before, in the unit of what is there."""


def _read_difference(value: Any) -> Any:
    return {"steps": value} if isinstance(value, int) and not isinstance(value, bool) else value


class Feature(Strict):
    """One number that the agent sees. What is done to the signal happens in the order of these fields."""

    signal: ExpressionField
    """The signal."""
    name: str | None = Field(default=None, min_length=1, max_length=100)
    """Name to show; made of the parts by default."""
    minus: OperandField | None = None
    """Subtracted."""
    over: OperandField | None = None
    """Divided by."""
    when_undefined: float = Field(default=0.0, allow_inf_nan=False)
    """The ratio where the divisor is zero."""
    difference: Annotated[Difference, BeforeValidator(_read_difference)] | None = None
    """Change since so many intervals ago; a number alone is that of intervals."""
    log: bool | LogPlus = False
    """Natural logarithm; ``{plus: x}`` adds x before."""
    ewma: float | None = Field(default=None, gt=0, le=1)
    """Weight of a new value in an exponentially weighted mean over intervals."""
    scale: float = Field(default=1.0, allow_inf_nan=False)
    """Multiplied by."""
    clip: BoundsField
    """Smallest and largest value: the bounds of the observation space."""
    empty: float | None = Field(default=None, allow_inf_nan=False)
    """Value in the history before anything was measured; by default zero, moved into ``clip``."""
    history: int | None = Field(default=None, ge=1, le=1000)
    """Intervals that the agent sees of this feature; by default the observation's."""

    @model_validator(mode="before")
    @classmethod
    def _usual_bounds(cls, value: Any) -> Any:
        if isinstance(value, str):
            value = {"signal": value}
        if not isinstance(value, dict) or value.get("clip") is not None or not isinstance(value.get("signal"), str):
            return value
        changed = {"minus", "over", "difference", "log", "ewma", "scale"}.intersection(value)
        usual = STANDARD.get(value["signal"].strip())
        if changed or usual is None:
            raise ConfigError(
                f"{value['signal']} without clip",
                expected="clip: [smallest, largest], the bounds of the observation space",
                hint=f"without one: {', '.join(STANDARD)}, as they are",
            )
        bounds, empty = usual
        return {"empty": empty, **value, "clip": list(bounds)}


class Observation(Strict):
    """What the agent sees."""

    features: tuple[Feature, ...] = Field(default=(), max_length=1000)
    """Numbers of one interval, in order."""
    history: int = Field(default=1, ge=1, le=1000)
    """Intervals seen, the oldest first."""
    previous_action: Literal["none", "value", "one_hot"] = "none"
    """Whether and how each interval also shows the action in force during it."""
    initial_action: float | None = Field(default=None, allow_inf_nan=False)
    """What is shown as the action before the first one (the position of a discrete one); nothing by default."""


def given(model: BaseModel) -> dict[str, Any]:
    """All fields except those that are ``None``, as plain data for the core."""
    values = {name: getattr(model, name) for name in type(model).model_fields}
    return {name: _plain(value) for name, value in values.items() if value is not None}


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return given(value)
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return value
