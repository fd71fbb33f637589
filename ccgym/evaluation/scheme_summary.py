"""The runs of an evaluation, and the summary of each scheme over its runs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated

import numpy as np
from pydantic import PlainSerializer, PlainValidator

from ccgym.config.catalog_file import PublishedResult
from ccgym.evaluation.backends import is_real
from ccgym.evaluation.metrics import RunMetrics
from ccgym.evaluation.pantheon import printed_number
from ccgym.evaluation.run_numbers import flow_summary
from ccgym.evaluation.run_record import RunRecord
from ccgym.evaluation.spread import Spread
from ccgym.schemes.style import SchemeStyle


@dataclass(frozen=True)
class AckLink:
    """The ACKs of a run on the return path."""

    metrics: RunMetrics
    """Pantheon's numbers, computed for the ACKs in the same way as for the data."""
    curves: str
    """The file of the ACKs' curves, relative to the results directory."""


@dataclass(frozen=True)
class CellResult:
    """One run of one scheme."""

    scheme: str
    run: int
    """Number of the run, from 1."""
    record: Annotated[RunRecord, PlainValidator(RunRecord.from_dict), PlainSerializer(RunRecord.as_dict)]
    invalid: str | None
    """Reason why the run does not count by Pantheon's rules, or None."""
    started_epoch_s: float | None
    """Start time, seconds since the epoch; None if it is missing in Pantheon's files. In virtual time, runs follow one
    another, as in Pantheon."""
    wall_s: float
    curves: str = ""
    """The file of the curves (:meth:`RunCurves.load`), relative to the results directory; empty without packets."""
    acklink: AckLink | None = None
    """The ACKs, if the report includes them."""

    @property
    def name(self) -> str:
        """The run's name in files: ``cubic_run1``."""
        return f"{self.scheme}_run{self.run}"

    @property
    def limited(self) -> str | None:
        """Reason why the machine could not hold a real path's schedule in this run; None if it could."""
        return self.record.limited

    def __repr__(self) -> str:
        record = self.record
        numbers = record.flows[0].summary() if len(record.flows) == 1 else f"{len(record.flows)} flows"
        ignored = "" if self.invalid is None else f"; does not count: {self.invalid}"
        seed = "" if record.seed is None else f", seed {record.seed}"
        return f"CellResult({self.scheme}, run {self.run}{seed}: {numbers}{ignored})"


@dataclass(frozen=True)
class CellFailure:
    """A run that ended in an error."""

    scheme: str
    run: int
    seed: int
    """Seed of the run. With this seed, the failed run can be repeated alone."""
    error: str


@dataclass(frozen=True)
class FlowSummary:
    """A flow of a scheme over the runs that count."""

    number: int
    """From 1."""
    scheme: str
    throughput_mbps: Spread | None
    delay_p95_ms: Spread | None
    loss: Spread | None
    """A fraction."""


def _jain(record: RunRecord) -> float | None:
    """Return Jain's index of the flows' throughputs; None for one flow, and for flows without a common bottleneck."""
    rates = [flow.throughput_mbps or 0.0 for flow in record.flows]
    squares = sum(rate * rate for rate in rates)
    if len(rates) < 2 or not squares or len({flow.bottleneck for flow in record.flows}) > 1:
        return None
    return sum(rates) ** 2 / (len(rates) * squares)


@dataclass(frozen=True)
class SchemeSummary:
    """One row of the table: a scheme over its runs that count."""

    style: SchemeStyle
    runs: tuple[CellResult, ...]
    """All runs of the scheme, in order."""
    published: PublishedResult | None
    """Published numbers of the scheme on this path, if any."""
    unavailable: str | None = None
    """Reason why the scheme could not run here; None if it could."""

    def __repr__(self) -> str:
        counted = f"{len(self.valid_runs)} of {len(self.runs)} runs count"
        return f"SchemeSummary({self.style.label}, {counted}: {self.summary()})"

    def cell(self, name: str) -> str:
        """Return a quantity as a cell of a table, mean ± std: ``throughput_mbps``, ``delay_p95_ms``, ``loss`` (%)."""
        spread: Spread | None = getattr(self, name)
        if spread is None:
            return "–"
        scale = 100 if name == "loss" else 1
        return f"{scale * spread.mean:.2f}" + ("" if spread.std is None else f" ± {scale * spread.std:.2f}")

    def summary(self) -> str:
        """Return the means of throughput, 95th percentile of the one-way delay, and loss on one line."""
        throughput, delay, loss = self.throughput_mbps, self.delay_p95_ms, self.loss
        if throughput is None:
            return "no run counts" if self.unavailable is None else self.unavailable
        return flow_summary(throughput.mean, None if delay is None else delay.mean, None if loss is None else loss.mean)

    @property
    def limited_runs(self) -> tuple[CellResult, ...]:
        """The runs in which the machine could not hold the path's schedule."""
        return tuple(cell for cell in self.runs if cell.limited is not None)

    @property
    def valid_runs(self) -> tuple[CellResult, ...]:
        """The runs that count."""
        return tuple(cell for cell in self.runs if cell.invalid is None)

    @property
    def identical_runs(self) -> bool:
        """Whether there are several simulated runs, all with the same packets: nothing was random."""
        runs = [cell.record for cell in self.valid_runs]
        # The hash leaves out packets in flight at the end, which count as lost.
        found = [(one.trajectory_hash, one.total) for one in runs if not is_real(one.backend)]
        return len(found) > 1 and len(found) == len(runs) and all(one == found[0] for one in found)

    def as_printed(self, name: str) -> Spread | None:
        """Return a quantity over the runs as in Pantheon's report, which reads the rounded numbers of statistics files.

        Args:
            name: ``throughput_mbps``, ``delay_p95_ms`` or ``loss``; the latter in per cent.
        """
        spread = self._over_runs(lambda record: printed_number(record.total, name))
        printed = [printed_number(cell.record.total, name) for cell in self.valid_runs]
        # numpy's mean, as in Pantheon: for two runs, half of all means are a rounding tie that the last bit decides.
        return spread and replace(spread, mean=float(np.mean([value for value in printed if value is not None])))

    def flow_as_printed(self, name: str, flow: int) -> float | None:
        """Return a flow's mean over the runs as in Pantheon's report; ``name`` as for :meth:`as_printed`."""
        parts = [cell.record.metrics.flows.get(flow) for cell in self.valid_runs if cell.record.metrics is not None]
        printed = [printed_number(part, name) for part in parts if part is not None]
        known = [value for value in printed if value is not None]
        return float(np.mean(known)) if known else None

    def _over_runs(self, value: Callable[[RunRecord], float | None]) -> Spread | None:
        spread = Spread.of(value(cell.record) for cell in self.valid_runs)
        # Identical runs give one number, not a spread of zero.
        return replace(spread, std=None) if spread is not None and self.identical_runs else spread

    @property
    def flows(self) -> tuple[FlowSummary, ...]:
        """The flows of the scheme over the runs that count; empty if no run counts."""
        first = self.valid_runs[0].record.flows if self.valid_runs else ()
        return tuple(
            FlowSummary(
                place + 1,
                flow.scheme,
                *(
                    self._over_runs(lambda record, place=place, name=name: getattr(record.flows[place], name))  # type: ignore[misc]
                    for name in ("throughput_mbps", "delay_p95_ms", "loss")
                ),
            )
            for place, flow in enumerate(first)
        )

    @property
    def jain(self) -> Spread | None:
        """Jain's index of the throughputs of n flows, from 1/n to 1 (equal); None for one flow."""
        return self._over_runs(_jain)

    @property
    def throughput_mbps(self) -> Spread | None:
        """Total average throughput, Mbit/s."""
        return self._over_runs(lambda record: record.total.throughput_mbps)

    @property
    def delay_p95_ms(self) -> Spread | None:
        """95th percentile of the one-way delay of all packets, ms."""
        return self._over_runs(lambda record: record.total.delay_p95_ms)

    @property
    def loss(self) -> Spread | None:
        """Loss over all packets, a fraction."""
        return self._over_runs(lambda record: record.total.loss)

    def of_frames(self, name: str) -> Spread | None:
        """Return a quantity of video frames over the runs: the mean of the flows with video; None if there are none."""

        def mean(record: RunRecord) -> float | None:
            spread = Spread.of(getattr(flow, name) for flow in record.flows)
            return None if spread is None else spread.mean

        return self._over_runs(mean)

    @property
    def utilization(self) -> Spread | None:
        """Total throughput / capacity."""
        return self._over_runs(lambda record: record.link.utilization)
