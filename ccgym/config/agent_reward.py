"""What an agent is rewarded for, as users write it: a sum of weighted terms.

::

    reward:
      scale: 0.001
      terms:
        - {term: throughput, weight: 10, unit: packets/s}
        - {term: latency, weight: -1000}
        - {term: loss, weight: -2000}

or, where no term needs more than its weight and unit::

    reward: {scale: 0.001, linear: {throughput: 10 per packets/s, latency: -1000 per s, loss: -2000}}

Terms are raw measurements, so that costs have negative weights.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final, Literal, TypeAlias, get_args

from pydantic import BeforeValidator, Field, model_validator

from ccgym.config.agent_observation import ExpressionField, Strict
from ccgym.config.quantities import PeriodField
from ccgym.errors import ConfigError, did_you_mean, shown

Phase: TypeAlias = Literal["startup", "drain", "probe"]
"""Where a flow stands: its delivery rate grows, its queue drains, or afterward."""

_PER: Final = re.compile(r"\s*([-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?)\s+per\s+(\S+)\s*")


class _Term(Strict):
    term: str
    weight: float = Field(allow_inf_nan=False)
    """Factor; negative for costs."""
    name: str | None = Field(default=None, min_length=1, max_length=100)
    """Name to show, and in logs; the term's by default."""
    phase: tuple[Phase, ...] | None = Field(default=None, min_length=1)
    """Phases in which it counts; all by default."""


class Throughput(_Term):
    """Throughput."""

    term: Literal["throughput"] = "throughput"
    of: ExpressionField = "delivery_rate"
    """A signal in bit/s: ``delivery_rate``, ``receive_rate``, ``send_rate``."""
    unit: Literal["Mbit/s", "packets/s", "bit/s", "MB/s"] = "Mbit/s"
    """Unit of the weight."""
    over: ExpressionField | None = None
    """Divided by this signal, instead of a unit."""


class Latency(_Term):
    """A round trip."""

    term: Literal["latency"] = "latency"
    of: ExpressionField = "mean_rtt"
    """A signal in seconds."""
    unit: Literal["s", "ms"] = "s"
    """Unit of the weight."""


class QueueDelay(_Term):
    """Round trip above the smallest one."""

    term: Literal["queue_delay"] = "queue_delay"
    unit: Literal["s", "ms", "min_rtt"] = "s"
    """Unit of the weight; ``min_rtt`` counts in smallest round trips."""
    at_most: float | None = Field(default=None, gt=0)
    """Larger ones count as this, in the unit."""


class LossShare(_Term):
    """Share of packets lost."""

    term: Literal["loss"] = "loss"
    of: Literal["settled", "sent"] = "settled"
    """Of the packets whose fate became known in the interval, or of those sent in it."""


class Utilization(_Term):
    """Throughput over what the path has to give; only where the path's truth is known."""

    term: Literal["utilization"] = "utilization"
    of: ExpressionField = "delivery_rate"
    """A signal in bit/s."""
    base: Literal["link_rate", "fair_share"] = "link_rate"
    """Over the link's rate, or over the flow's fair share of it."""
    at_most: float | None = Field(default=None, gt=0)
    """Larger ones count as this."""


class LogPower(_Term):
    """ln of throughput (MB/s) less ln of the interval's largest queueing delay (ms) and of loss (MB), as mvfst-rl."""

    term: Literal["log_power"] = "log_power"
    throughput_weight: float = Field(default=1.0, ge=0)
    """Of the throughput's logarithm."""
    delay_weight: float = Field(default=0.2, ge=0)
    """Of the delay's logarithm."""
    loss_weight: float = Field(default=0.0, ge=0)
    """Of the loss's logarithm."""
    epsilon: float = Field(default=1e-5, gt=0)
    """Added before taking logarithms."""


class SquarePower(_Term):
    """Square of throughput after losses over capacity, times smallest over present round trip, as Sage."""

    term: Literal["square_power"] = "square_power"
    loss_factor: float = Field(default=2.0, ge=0)
    """Weight of the lost rate."""
    forgive: float = Field(default=0.8, gt=0, le=1)
    """From this ratio of round trips on, delay costs nothing."""


class OrcaPower(_Term):
    """Throughput after losses over the greatest so far, times a delay metric, as Orca."""

    term: Literal["orca_power"] = "orca_power"
    loss_factor: float = Field(default=5.0, ge=0)
    """Weight of the lost rate."""
    margin: float = Field(default=1.25, ge=1)
    """Up to this multiple of the smallest round trip, delay costs nothing."""


class DelayTarget(_Term):
    """Throughput while a delay target is kept, as DeepCC."""

    term: Literal["delay_target"] = "delay_target"
    target: PeriodField
    """The target."""
    cap: float = Field(default=100.0, gt=0)
    """Largest reward."""


class DelayRatio(_Term):
    """Smallest (or propagation) round trip over the present one, from 0 to 1."""

    term: Literal["delay_ratio"] = "delay_ratio"
    base: Literal["min_rtt", "base_rtt"] = "min_rtt"
    """What is divided by the present one; ``base_rtt`` needs the path's truth."""
    margin: float = Field(default=1.0, ge=1)
    """Up to this multiple, delay costs nothing."""


class Delivery(_Term):
    """One minus the share of packets lost."""

    term: Literal["delivery"] = "delivery"


class Fairness(_Term):
    """Jain's index of all flows' rates; needs the path's truth."""

    term: Literal["fairness"] = "fairness"


class FairGauss(_Term):
    """A bell curve around the fair share, as Sage; needs the path's truth."""

    term: Literal["fair_gauss"] = "fair_gauss"
    headroom: float = Field(default=0.95, gt=0, le=1)
    """Share of the fair share that the curve is centered on."""
    width: float = Field(default=8.0, gt=0)
    """Steepness."""
    at_most: float = Field(default=2.0, gt=0)
    """Larger ratios count as this."""


class Stability(_Term):
    """Standard deviation over mean of a signal's latest intervals."""

    term: Literal["stability"] = "stability"
    of: ExpressionField = "delivery_rate"
    """The signal."""
    window: int = Field(default=5, ge=2, le=10_000)
    """Intervals."""


class SignalTerm(_Term):
    """Any signal."""

    term: Literal["signal"] = "signal"
    of: ExpressionField
    """The signal, in its unit."""


AnyTerm: TypeAlias = (
    Throughput | Latency | QueueDelay | LossShare | Utilization | LogPower | SquarePower | OrcaPower | DelayTarget
    | DelayRatio | Delivery | Fairness | FairGauss | Stability | SignalTerm
)  # fmt: skip
"""Every term."""

TERMS: Final[dict[str, type[_Term]]] = {cls.model_fields["term"].default: cls for cls in get_args(AnyTerm)}
"""The terms by name."""


def _read_term(value: Any) -> Any:
    if isinstance(value, dict) and value.get("term") not in TERMS:
        term = value.get("term")
        raise ConfigError(
            "a term without `term`" if term is None else f"unknown term {shown(term)}",
            expected="term: " + ", ".join(TERMS),
            hint="" if term is None else did_you_mean(str(term), TERMS),
            where="" if term is None else "term",
        )
    return value


TermField: TypeAlias = Annotated[AnyTerm, Field(discriminator="term"), BeforeValidator(_read_term)]
"""One term of a reward."""


def _linear(value: Any) -> list[dict[str, Any]]:
    """Turn ``{throughput: 10 per packets/s, loss: -2000}`` into terms."""
    if not isinstance(value, dict) or not value:
        raise ConfigError(shown(value), expected="terms with weights: {throughput: 10 per packets/s}", where="linear")
    terms = []
    for name, weight in value.items():
        if name not in TERMS:
            raise ConfigError(
                f"unknown term {shown(name)}", expected=", ".join(TERMS), hint=did_you_mean(str(name), TERMS),
                where=f"linear.{name}",
            )  # fmt: skip
        term: dict[str, Any] = {"term": name, "weight": weight}
        if isinstance(weight, str):
            match = _PER.fullmatch(weight)
            if match is None:
                raise ConfigError(
                    shown(weight), expected="a weight, or one with its unit: 10 per packets/s", where=f"linear.{name}"
                )
            number, unit = match.groups()
            try:
                term["weight"] = float(number)
            except ValueError:
                raise ConfigError(shown(number), expected="a number", where=f"linear.{name}") from None
            if "unit" not in TERMS[name].model_fields:
                raise ConfigError(
                    f"{shown(weight)}: {name} has no unit", expected="a weight alone", where=f"linear.{name}"
                )
            units = get_args(TERMS[name].model_fields["unit"].annotation)
            if unit not in units:
                raise ConfigError(
                    f"{shown(weight)}: unknown unit {shown(unit)}", expected=" or ".join(units),
                    hint=did_you_mean(unit, units), where=f"linear.{name}",
                )  # fmt: skip
            term["unit"] = unit
        terms.append(term)
    return terms


class Reward(Strict):
    """The reward of one interval: scale × Σ weight × term."""

    scale: float = Field(default=1.0, allow_inf_nan=False)
    """Factor of the sum."""
    terms: tuple[TermField, ...] = Field(default=(), max_length=1000)
    """The terms."""

    @model_validator(mode="before")
    @classmethod
    def _short(cls, value: Any) -> Any:
        if not isinstance(value, dict) or "linear" not in value:
            return value
        if "terms" in value:
            raise ConfigError("linear and terms together", expected="one of the two", where="linear")
        rest = {key: part for key, part in value.items() if key != "linear"}
        return {**rest, "terms": _linear(value["linear"])}
