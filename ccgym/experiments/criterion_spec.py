"""Models of criteria and their bounds in the YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

from pydantic import Field, model_validator

from ccgym.config.declared import Strict
from ccgym.errors import ConfigError

Raw: TypeAlias = Any
"""A part of the YAML that may contain placeholders."""


class Reference(Strict):
    """A measured bound: a multiple of a scheme's mean, or of its own mean under other conditions, plus a number."""

    scheme: str = ""
    """The scheme; empty: the tested one."""
    where: Mapping[str, Raw] = Field(default_factory=dict)
    """Conditions of this mean, instead of the criterion's."""
    times: float = Field(default=1.0, gt=0)
    """Multiple of the mean."""
    plus: float = 0.0
    """Number that is added to the multiple, in the metric's unit; fractions as fractions, not as percentages."""

    @model_validator(mode="after")
    def _another(self) -> Reference:
        if not self.scheme and not self.where:
            raise ConfigError(
                "key-missing", "a scheme compared with itself", expected="scheme or where", where="criteria"
            )
        return self

    @property
    def text(self) -> str:
        """The bound as text: ``0.9 × cubic's``."""
        times = "" if self.times == 1 else f"{self.times:g} × "
        at = ", ".join(f"{name} {value}" for name, value in self.where.items())
        whose = f"{self.scheme}'s" if self.scheme else "its own"
        plus = f" {'+' if self.plus > 0 else '−'} {abs(self.plus):g}" if self.plus else ""
        return f"{times}{whose}{f' at {at}' if at else ''}{plus}"


Bound: TypeAlias = float | str | Reference
"""A number, the name of a scheme (the bound is its mean), or a :class:`Reference`."""


class CriterionSpec(Strict):
    """Bounds for the mean of a metric over a group of conditions."""

    metric: str | tuple[str, ...]
    """The metric, or several metrics; each must meet the bounds."""
    min: Bound | None = None
    """Min value that passes."""
    max: Bound | None = None
    """Max value that passes."""
    below: float | None = None
    """The mean must be less than this value."""
    where: Mapping[str, Raw] = Field(default_factory=dict)
    """Only conditions with these values, or with one of a list: ``{buffer: [0.5bdp, 1bdp]}``."""
    per: str | tuple[str, ...] = ()
    """Parameters: each of their values has a separate mean."""
    schemes: tuple[str, ...] = ()
    """Only these schemes must meet the criterion, with at least the parameters named here; empty: all schemes."""
    training_range: str | None = Field(default=None, pattern="^(inside|outside)$")
    """Only conditions ``inside`` or ``outside`` the scheme's training range of rate and delay. For schemes that were
    not trained, all conditions are inside."""

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
        """The measured bounds."""
        found = (reference(bound) for bound in (self.min, self.max) if bound is not None)
        return tuple(one for one in found if isinstance(one, Reference))

    @property
    def baselines(self) -> tuple[str, ...]:
        """The schemes that bounds refer to."""
        return tuple(one.scheme for one in self.references if one.scheme)


def reference(bound: Bound) -> float | Reference:
    """Return a bound with the name of a scheme replaced by a :class:`Reference`."""
    return Reference(scheme=bound) if isinstance(bound, str) else bound
