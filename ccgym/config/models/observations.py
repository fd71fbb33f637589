"""What an agent sees.

Written by `make docs` from the declarations in Rust (spec.rs of ccgym-path and ccgym-run, and the
agent's spec): change it there.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from ccgym.config import declared
from ccgym.config.expressions import BoundsField, ExpressionField, OperandField


class LogPlus(declared.Declared):
    """With another number added first."""

    plus: float = Field(gt=0, description="Added first, in the unit of the value.")


class Feature(declared.FeatureBase):
    """One number of the observation: a signal, transformed in the order of the fields."""

    signal: ExpressionField = Field(description="The signal, or a statistic of it over several intervals.")
    name: str | None = Field(
        default=None, min_length=1, max_length=100, description="Name to show; made from the parts unless given."
    )
    minus: OperandField | None = Field(default=None, description="Subtracted.")
    over: OperandField | None = Field(default=None, description="Divided by.")
    when_undefined: float = Field(default=0.0, description="The result if the divisor is zero.")
    log: bool | LogPlus = Field(default=False, description="Natural logarithm.")
    scale: float = Field(default=1.0, description="Multiplied by.")
    clip: BoundsField = Field(description="Min and max.")
    empty: float | None = Field(default=None, description="Value before anything was recorded.")
    history: int | None = Field(
        default=None,
        ge=1,
        le=1000,
        description="Number of intervals of this feature; at most the observation's `history`, which is the default.",
    )


class Observation(declared.Declared):
    """The observation of an agent."""

    features: tuple[Feature, ...] = Field(
        default=(), max_length=1000, description="Features of one interval, in order."
    )
    history: int = Field(default=1, ge=1, le=1000, description="Number of intervals, oldest first.")
    previous_action: Literal["none", "value", "one_hot"] = Field(
        default="none", description="Form in which each interval also shows its action."
    )
    initial_action: float | None = Field(
        default=None, description="Value shown as the action before the first; zeros unless given."
    )
