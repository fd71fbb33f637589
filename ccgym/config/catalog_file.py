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
    """The rule that generates a trace: ``kind`` is the name of a function in :mod:`ccgym.tracetools.generate`."""

    kind: Literal["constant", "poisson", "cellular"]
    rate: RateField
    """Mean rate; for ``poisson``, the mean rate after the cold start."""
    duration: PeriodField = DEFAULT_DURATION_NS
    seed: int = Field(default=0, ge=0)
    """Seed of the random numbers."""
    cold_start: TimeField = 0
    """Duration of the slow start of ``poisson``."""

    def times(self) -> Times:
        """Return the lines of the trace."""
        if self.kind == "constant":
            return generate.constant(self.rate, self.duration)
        if self.kind == "cellular":
            return generate.cellular(self.rate, self.duration, seed=self.seed)
        return generate.poisson(self.rate, self.duration, seed=self.seed, cold_start_ns=self.cold_start)


class TraceEntry(Strict):
    """A trace of the catalog."""

    file: str | None = None
    """File in the folder of the catalog; ``None`` if a rule is given."""
    rule: Rule | None = None
    lines: int = Field(ge=1)
    last_ms: int = Field(ge=1)
    """Value of the last line, ms: the period of the trace."""
    sha256: str = Field(pattern=r"[0-9a-f]{64}")
    nominal_rate: RateField | None = None
    """The stated rate of the trace."""
    intended: tuple[str, ...] = ()
    """Codes of intended findings; see :func:`ccgym.tracetools.check.check_trace`."""
    source: str
    license: str

    @model_validator(mode="after")
    def _one_origin(self) -> TraceEntry:
        if (self.file is None) == (self.rule is None):
            raise ConfigError("exactly-one", "both or neither of file and rule", expected="exactly one of the two")
        return self


class Recorded(Strict):
    """Recorded traces in a package of the Linux distribution."""

    package: str
    directory: str
    """Folder in which the package installs the traces."""
    names: tuple[str, ...]
    """Names of the traces; each name has two files, NAME.up and NAME.down."""
    source: str
    license: str


class PublishedResult(Strict):
    """Published result of a scheme on a path."""

    scheme: str = ""
    """Name of the scheme in ccgym; in the catalog, the key."""
    label: str
    """Name of the scheme in the report."""
    runs: int = Field(ge=1)
    """Number of runs in the means."""
    throughput_mbps: float = Field(ge=0)
    """Mean average throughput, Mbit/s."""
    delay_p95_ms: float = Field(ge=0)
    """Mean 95th percentile of the one-way delay, ms."""
    loss: Annotated[float, BeforeValidator(parse_probability)]
    """Mean loss, a fraction."""
    each: tuple[tuple[float, float, Annotated[float, BeforeValidator(parse_probability)]], ...] = ()
    """All runs, if the report contains them: throughput, Mbit/s; 95th percentile of one-way delay, ms; loss."""


class PathEntry(Strict):
    """A path of the catalog."""

    title: str
    source: str
    aliases: tuple[str, ...] = ()
    path: dict[str, Any]
    """Arguments of :class:`ccgym.config.path.NetworkPath`."""
    calibration_error: ProbabilityField | None = None
    """Mean relative error of throughput and p95 delay over schemes, between the emulation and the real path."""
    expert_cwnd: int | None = Field(default=None, ge=1)
    """Window in packets that Indigo's expert used on the path."""
    published: Mapping[str, PublishedResult] = Field(default={})
    """Published results, by the name of the scheme in ccgym."""
    published_source: str = ""


class CatalogFile(Strict):
    """The content of ``paths.yaml``."""

    traces: dict[str, TraceEntry]
    recorded: Recorded
    paths: dict[str, PathEntry]


class FoundPaths(Strict):
    """The content of ``adversary.yaml``, which `ccgym adversary` writes: more paths of the catalog."""

    paths: dict[str, PathEntry]
