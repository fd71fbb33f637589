"""Criteria and their bounds, as the YAML has them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from pydantic import Field, model_validator

from ccgym.config.declared import Strict
from ccgym.errors import ConfigError

Raw: TypeAlias = Any
"""A part of the YAML that may hold placeholders."""


class Reference(Strict):
    """A bound that is measured: a multiple of a scheme's mean, or of its own under other conditions, plus a number."""

    scheme: str = ""
    """The scheme; empty: the tested one."""
    where: Mapping[str, Raw] = Field(default_factory=dict)
    """Its conditions, in place of the criterion's."""
    times: float = Field(default=1.0, gt=0)
    """Multiple of the mean."""
    plus: float = 0.0
    """What is added to it, in the metric's own unit; fractions are written as such."""

    @model_validator(mode="after")
    def _another(self) -> Reference:
        if not self.scheme and not self.where:
            raise ConfigError(
                "key-missing", "a scheme compared with itself", expected="scheme or where", where="criteria"
            )
        return self

    @property
    def text(self) -> str:
        """``0.9 × cubic's``."""
        times = "" if self.times == 1 else f"{self.times:g} × "
        at = ", ".join(f"{name} {value}" for name, value in self.where.items())
        whose = f"{self.scheme}'s" if self.scheme else "its own"
        plus = f" {'+' if self.plus > 0 else '−'} {abs(self.plus):g}" if self.plus else ""
        return f"{times}{whose}{f' at {at}' if at else ''}{plus}"


Bound: TypeAlias = float | str | Reference
"""A number, the name of a scheme whose mean it is, or a :class:`Reference`."""


class CriterionSpec(Strict):
    """What the mean of a metric over a group of conditions has to be."""

    metric: str | tuple[str, ...]
    """The metric, or several that each have to."""
    min: Bound | None = None
    """Minimum that passes."""
    max: Bound | None = None
    """Largest value that passes."""
    below: float | None = None
    """Value that has to be stayed below."""
    where: Mapping[str, Raw] = Field(default_factory=dict)
    """Only conditions with these values, or one of a list: ``{buffer: [0.5bdp, 1bdp]}``."""
    per: str | tuple[str, ...] = ()
    """For each value of these parameters apart."""
    schemes: tuple[str, ...] = ()
    """Only these schemes have to, with at least the parameters named here; empty: all."""
    training_range: str | None = Field(default=None, pattern="^(inside|outside)$")
    """Only conditions ``inside`` or ``outside`` the range of rate and delay that a scheme was trained on; inside are
    all conditions of schemes that were not trained."""

    @model_validator(mode="after")
    def _one_bound(self) -> CriterionSpec:
        if self.min is None and self.max is None and self.below is None:
            raise ConfigError(
                "key-missing", "a criterion without a bound", expected="min, max or below", where="criteria"
            )
        return self

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics."""
        return (self.metric,) if isinstance(self.metric, str) else self.metric

    @property
    def split(self) -> tuple[str, ...]:
        """The parameters of :attr:`per`."""
        return (self.per,) if isinstance(self.per, str) else self.per

    @property
    def references(self) -> tuple[Reference, ...]:
        """The bounds that are measured."""
        found = (reference(bound) for bound in (self.min, self.max) if bound is not None)
        return tuple(one for one in found if isinstance(one, Reference))

    @property
    def baselines(self) -> tuple[str, ...]:
        """The schemes that bounds refer to."""
        return tuple(one.scheme for one in self.references if one.scheme)


def reference(bound: Bound) -> float | Reference:
    """A bound without its short form."""
    return Reference(scheme=bound) if isinstance(bound, str) else bound
