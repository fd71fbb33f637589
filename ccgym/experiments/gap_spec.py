"""The model of a gap's YAML."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from ccgym.config.path import NetworkPath
from ccgym.config.quantities import TimeField
from ccgym.errors import ConfigError
from ccgym.evaluation.backends import BACKENDS, check_name
from ccgym.evaluation.experiment import MAX_RUNS
from ccgym.experiments.comparison import Comparison
from ccgym.units import format_time


class GapSpec(Comparison):
    """The same schemes and seeds on several backends, and the differences between their results."""

    kind: Literal["gap"] = "gap"
    title: str = "The gap between backends"
    path: Annotated[NetworkPath, BeforeValidator(NetworkPath.from_any)]
    schemes: Sequence[Any] = ("bbr", "cubic")
    backends: tuple[str, ...] | None = None
    """The compared backends; by default all that work on this machine."""
    sim_runs: int | None = Field(default=None, ge=1, le=MAX_RUNS)
    """Number of runs in the simulator; by default as many as on other backends."""
    host_jitter: TimeField = 0
    """Max random delay of every acknowledgement in the simulator. No host is as exact as the simulator: if fractions
    of a millisecond decide the behavior of a scheme, only means over such runs are comparable."""
    host_start: TimeField = 0
    """Max random delay of the start of a run's flows in the simulator. With real packets, a flow never starts exactly
    with the clock of its path."""

    @field_validator("backends")
    @classmethod
    def _known(cls, backends: tuple[str, ...] | None) -> tuple[str, ...] | None:
        if backends is None:
            return None
        if not backends:
            raise ConfigError("argument-missing", "no backend", expected=f"some of {', '.join(BACKENDS)}")
        for name in backends:
            check_name(name, "")
        return tuple(name for name in BACKENDS if name in backends)

    @model_validator(mode="after")
    def _starts_within_the_run(self) -> Self:
        if self.host_start >= self.duration:
            raise ConfigError(
                "out-of-range", format_time(self.host_start), where="host_start", expected="less than the run time"
            )
        return self
