"""The content of ``traces/paths.yaml``: see :mod:`ccgym.config.catalog`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from ccgym.config.declared import Strict
from ccgym.config.quantities import PeriodField, ProbabilityField, RateField, TimeField
from ccgym.errors import ConfigError
from ccgym.tracetools import generate
from ccgym.tracetools.generate import DEFAULT_DURATION_NS, Times
from ccgym.units import parse_probability


class Rule(Strict):
    """How a trace is made: by the function of :mod:`ccgym.tracetools.generate` that is called as the kind."""

    kind: Literal["constant", "poisson", "cellular"]
    rate: RateField
    """Mean rate; of ``poisson`` that after the cold start."""
    duration: PeriodField = DEFAULT_DURATION_NS
    seed: int = Field(default=0, ge=0)
    """Root of what is random."""
    cold_start: TimeField = 0
    """Length of the slow beginning of ``poisson``."""

    def times(self) -> Times:
        """The trace's lines."""
        if self.kind == "constant":
            return generate.constant(self.rate, self.duration)
        if self.kind == "cellular":
            return generate.cellular(self.rate, self.duration, seed=self.seed)
        return generate.poisson(self.rate, self.duration, seed=self.seed, cold_start_ns=self.cold_start)


class TraceEntry(Strict):
    """A trace of the catalog."""

    file: str | None = None
    """Next to the catalog; or else the rule that makes it is given."""
    rule: Rule | None = None
    lines: int = Field(ge=1)
    last_ms: int = Field(ge=1)
    """The last line, which is the period, ms."""
    sha256: str = Field(pattern=r"[0-9a-f]{64}")
    nominal_rate: RateField | None = None
    """The rate it is said to have."""
    intended: tuple[str, ...] = ()
    """Codes of findings that are meant to be so; see :func:`ccgym.tracetools.check.check_trace`."""
    source: str
    license: str

    @model_validator(mode="after")
    def _one_origin(self) -> TraceEntry:
        if (self.file is None) == (self.rule is None):
            raise ConfigError("exactly-one", "both or neither of file and rule", expected="exactly one of the two")
        return self


class Recorded(Strict):
    """Recorded traces that a package of the distribution brings."""

    package: str
    directory: str
    """Where it puts them."""
    names: tuple[str, ...]
    """Their names; each stands for NAME.up and NAME.down."""
    source: str
    license: str


class PublishedResult(Strict):
    """What a report published for a scheme on a path."""

    scheme: str = ""
    """ccgym's name of the scheme; in the catalog it is the key."""
    label: str
    """The report's name of the scheme."""
    runs: int = Field(ge=1)
    """Number of runs that the means are of."""
    throughput_mbps: float = Field(ge=0)
    """Mean average throughput, Mbit/s."""
    delay_p95_ms: float = Field(ge=0)
    """Mean 95th percentile of the one-way delay, ms."""
    loss: Annotated[float, BeforeValidator(parse_probability)]
    """Mean loss, a fraction."""
    each: tuple[tuple[float, float, Annotated[float, BeforeValidator(parse_probability)]], ...] = ()
    """Every run, if the report has them: throughput, Mbit/s; 95th percentile of the one-way delay, ms; loss."""


class PathEntry(Strict):
    """A path of the catalog."""

    title: str
    source: str
    aliases: tuple[str, ...] = ()
    path: dict[str, Any]
    """Arguments of :class:`ccgym.config.path.NetworkPath`."""
    calibration_error: ProbabilityField | None = None
    """How far the emulation is from the real path: mean relative error of throughput and p95 delay over schemes."""
    expert_cwnd: int | None = Field(default=None, ge=1)
    """Window in packets that Indigo's expert kept on it."""
    published: Mapping[str, PublishedResult] = Field(default={})
    """What a report published, by ccgym's name of the scheme."""
    published_source: str = ""


class CatalogFile(Strict):
    """The content of ``paths.yaml``."""

    traces: dict[str, TraceEntry]
    recorded: Recorded
    paths: dict[str, PathEntry]


class FoundPaths(Strict):
    """The content of ``adversary.yaml``, which `ccgym adversary` writes: further paths of the catalog."""

    paths: dict[str, PathEntry]
