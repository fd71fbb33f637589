"""The results of an experiment: every run, summarized per scheme, with a versioned form on disk.

``ccgym_results.json`` holds what Pantheon's files have no place for: seeds, capacity, versions, trajectory hashes,
failed cells, flags. Its schema is documented in ``docs/evaluation.md``; ``version`` rises with any change of meaning.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import statistics
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import numpy as np
from pydantic import Field, PlainSerializer, PlainValidator, TypeAdapter, ValidationError

from ccgym.config.catalog_file import PublishedResult
from ccgym.errors import ConfigError, ResultsError, did_you_mean, shown
from ccgym.evaluation.backends import SIMULATED, is_real
from ccgym.evaluation.differences import Difference, Direction, differences
from ccgym.evaluation.frames import import_pandas, rows_to_csv, to_csv, to_frame, write_csv
from ccgym.evaluation.metrics import RunMetrics
from ccgym.evaluation.pantheon import printed_number
from ccgym.evaluation.run_record import FLOW_COLUMN, FlowRecord, RunRecord, flow_summary
from ccgym.files import UnreadableError, atomic_write, read_json
from ccgym.schemes.style import SchemeStyle
from ccgym.units import NS_PER_MS

if TYPE_CHECKING:
    import pandas as pd

RESULTS_FILE: Final = "ccgym_results.json"
RESULTS_CSV: Final = "ccgym_results.csv"
DIFFERENCES_CSV: Final = "ccgym_differences.csv"
SERIES_STEP_NS: Final = 100 * NS_PER_MS
"""Intervals of the CSV of a run: a tenth of the recorded series, some 20 kB per flow and 30 s."""

FORMAT: Final = "ccgym-results"
FORMAT_VERSION: Final = 1

RUN_COLUMNS: Final[Mapping[str, str]] = {
    "scheme": "key of the scheme, as in file names",
    "label": "name of the scheme for people",
    "run": "number of the run, from 1",
    "seed": "seed of the run",
    "counts": "whether the run counts by Pantheon's rules",
    "capacity_mbps": "average capacity of the bottleneck over the run, Mbit/s",
    "utilization": "throughput of all flows of the run together / capacity",
    "flow_scheme": "name of the flow's own scheme, where schemes share a run",
}
"""Columns of a result set before those of each flow: one row per scheme, run and flow."""


COMPARED: Final[Mapping[str, Direction]] = {"throughput_mbps": "higher", "delay_p95_ms": "lower", "loss": "lower"}
"""Quantities of all flows of a run together in which schemes are compared, and which values are the better ones."""


@dataclass(frozen=True)
class AckLink:
    """What the acknowledgements of a run did on their way back."""

    metrics: RunMetrics
    """Pantheon's numbers of the acknowledgements, as of the data."""
    curves: str
    """The file of their curves, relative to the results directory."""


@dataclass(frozen=True)
class CellResult:
    """One run of one scheme."""

    scheme: str
    run: int
    """Number of the run, from 1."""
    record: Annotated[RunRecord, PlainValidator(RunRecord.from_dict), PlainSerializer(RunRecord.as_dict)]
    invalid: str | None
    """Why the run does not count (Pantheon's rules), or None."""
    started_epoch_s: float | None
    """When it began, seconds since the epoch; None where Pantheon's files do not say. In virtual time runs follow one
    another, as Pantheon's do."""
    wall_s: float
    curves: str = ""
    """The file of its curves (:meth:`RunCurves.load`), relative to the results directory; empty without packets."""
    acklink: AckLink | None = None
    """The acknowledgements, where a report was asked to include them."""

    @property
    def name(self) -> str:
        """The run's name in files: ``cubic_run1``."""
        return f"{self.scheme}_run{self.run}"

    @property
    def limited(self) -> str | None:
        """Why the machine could not hold a real path's schedule in this run; None where it could."""
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
    """Its seed: with it the failure can be repeated alone."""
    error: str


@dataclass(frozen=True)
class Spread:
    """Mean and sample standard deviation over runs."""

    mean: float
    std: float | None
    """Sample standard deviation (n − 1); None where runs cannot show one: a single run, or all of the same packets."""
    count: int

    @classmethod
    def of(cls, values: Iterable[float | None]) -> Spread | None:
        """Over the values that are there; None if there are none."""
        known = [value for value in values if value is not None and math.isfinite(value)]
        if not known:
            return None
        return cls(statistics.fmean(known), statistics.stdev(known) if len(known) > 1 else None, len(known))


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
    """Jain's index of the flows' throughputs; None of a single flow, and where they do not share a bottleneck."""
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
    """All its runs, in order."""
    published: PublishedResult | None
    """What was published for it on this path, if anything."""
    unavailable: str | None = None
    """Why it could not be run here; None where it could."""

    def __repr__(self) -> str:
        counted = f"{len(self.valid_runs)} of {len(self.runs)} runs count"
        return f"SchemeSummary({self.style.label}, {counted}: {self.summary()})"

    def summary(self) -> str:
        """Means of throughput, 95th percentile of the one-way delay, and loss, on one line."""
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
        """Whether there are several simulated runs and all were the same packets: nothing was random."""
        runs = [cell.record for cell in self.valid_runs]
        # The hash leaves out what was still on its way at the end, which counts as lost.
        found = [(one.trajectory_hash, one.total) for one in runs if not is_real(one.backend)]
        return len(found) > 1 and len(found) == len(runs) and all(one == found[0] for one in found)

    def as_printed(self, name: str) -> Spread | None:
        """A quantity over the runs as Pantheon's report has it, which reads the rounded numbers of statistics files.

        Args:
            name: ``throughput_mbps``, ``delay_p95_ms`` or ``loss``; the latter in per cent.
        """
        spread = self._over_runs(lambda record: printed_number(record.total, name))
        printed = [printed_number(cell.record.total, name) for cell in self.valid_runs]
        # numpy's mean, as there: half of all means of two runs are a tie that the last bit decides.
        return spread and replace(spread, mean=float(np.mean([value for value in printed if value is not None])))

    def flow_as_printed(self, name: str, flow: int) -> float | None:
        """The mean of a flow's quantity over the runs, as Pantheon's report has it; names as :meth:`as_printed`."""
        parts = [cell.record.metrics.flows.get(flow) for cell in self.valid_runs if cell.record.metrics is not None]
        printed = [printed_number(part, name) for part in parts if part is not None]
        known = [value for value in printed if value is not None]
        return float(np.mean(known)) if known else None

    def _over_runs(self, value: Callable[[RunRecord], float | None]) -> Spread | None:
        spread = Spread.of(value(cell.record) for cell in self.valid_runs)
        # Five times the same number is one number, and not certainty.
        return replace(spread, std=None) if spread is not None and self.identical_runs else spread

    @property
    def flows(self) -> tuple[FlowSummary, ...]:
        """Its flows over the runs that count; empty without such runs."""
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
        """Jain's index of its flows' throughputs, from 1/n to 1 (equal); None of a single flow."""
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
        """A quantity of the video frames over the runs, the mean of the flows that carry video; None without any."""

        def mean(record: RunRecord) -> float | None:
            spread = Spread.of(getattr(flow, name) for flow in record.flows)
            return None if spread is None else spread.mean

        return self._over_runs(mean)

    @property
    def utilization(self) -> Spread | None:
        """Total throughput / capacity."""
        return self._over_runs(lambda record: record.link.utilization)


def chosen_styles(styles: Iterable[SchemeStyle], schemes: Collection[str] | None) -> tuple[SchemeStyle, ...]:
    """The styles of some schemes, in their order; of all without ``schemes``.

    Raises:
        ConfigError: There is no scheme of a key.
    """
    known = {style.key: style for style in styles}
    for name in schemes or ():
        if name not in known:
            raise ConfigError(
                "unknown-scheme",
                shown(name),
                where="--schemes",
                expected=f"one of {', '.join(known)}",
                hint=did_you_mean(name, known),
            )
    return tuple(style for key, style in known.items() if schemes is None or key in schemes)


@dataclass(frozen=True)
class ResultSet:
    """An experiment's parameters and everything that came out of it."""

    parameters: Mapping[str, Any]
    """The full parameters, as plain data: what was asked for."""
    provenance: Mapping[str, Any]
    """Versions, command line, platform, time: who made it."""
    styles: tuple[SchemeStyle, ...]
    """The schemes, in the order of the table."""
    cells: tuple[CellResult, ...]
    """All finished runs, ordered by scheme and run."""
    failures: tuple[CellFailure, ...] = ()
    published: Mapping[str, PublishedResult] = field(default_factory=dict)
    """Published numbers on this path, by scheme key."""
    published_source: str = ""
    """Where the published numbers come from."""
    flags: tuple[Mapping[str, str], ...] = ()
    """What looks wrong, and why (see ``flags.py``)."""
    unavailable: Mapping[str, str] = field(default_factory=dict)
    """Why schemes could not be run here, by key: they have a row without numbers, and nothing failed."""
    left: int = 0
    """How many runs were left because time was up."""
    directory: Annotated[Path | None, Field(exclude=True)] = field(default=None, compare=False)
    """Where they are, with curves and series of every run; None where they are in memory only."""

    def __repr__(self) -> str:
        asked = self.parameters
        lines = [f"ResultSet: {asked.get('path_name', 'a path')}, {self.backend}, seed {asked.get('seed', '?')}"]
        width = max((len(style.label) for style in self.styles), default=0)
        lines += [f"  {one.style.label:<{width}}  {len(one.valid_runs)} runs: {one.summary()}" for one in self.schemes]
        if self.failures:
            lines.append(f"  {len(self.failures)} runs failed")
        return "\n".join(lines)

    def to_pandas(self, table: Literal["flows", "series"] = "flows") -> pd.DataFrame:
        """A table of all runs as a data frame; ``docs/results.md`` lists the columns with their units.

        Args:
            table: ``"flows"``: one row per scheme, run and flow; ``"series"``: one row per scheme, run, interval of
                100 ms and flow.

        Raises:
            ConfigError: There is no such table.
            PlatformError: pandas is not installed.
            ResultsError: The series are not there.
        """
        if table not in ("flows", "series"):
            raise ConfigError("unknown-choice", shown(table), where="table", expected="'flows' or 'series'")
        return series_frame(self) if table == "series" else to_frame(result_table(self))

    def to_csv(self, file: str | os.PathLike[str]) -> None:
        """Write the table of :meth:`to_pandas` as CSV; :class:`ResultsError` where that cannot be done."""
        write_csv(file, result_table(self))

    @property
    def backend(self) -> str:
        """Where packets traveled."""
        return str(self.parameters.get("backend", SIMULATED))

    @property
    def real(self) -> bool:
        """Whether packets were real: then equal parameters do not give equal runs."""
        return is_real(self.backend)

    @property
    def schemes(self) -> tuple[SchemeSummary, ...]:
        """One summary per scheme."""
        return tuple(
            SchemeSummary(
                style=style,
                runs=tuple(cell for cell in self.cells if cell.scheme == style.key),
                published=self.published.get(style.key),
                unavailable=self.unavailable.get(style.key),
            )
            for style in self.styles
        )

    def only(self, schemes: Collection[str]) -> ResultSet:
        """The same of some schemes.

        Args:
            schemes: Their keys.

        Raises:
            ConfigError: There is no such scheme.
        """
        styles = chosen_styles(self.styles, schemes)
        keys = {style.key for style in styles}
        others = {style.label for style in self.styles if style.key not in keys}
        return replace(
            self,
            styles=styles,
            cells=tuple(cell for cell in self.cells if cell.scheme in keys),
            failures=tuple(failure for failure in self.failures if failure.scheme in keys),
            flags=tuple(flag for flag in self.flags if flag["subject"] not in others),
        )

    @property
    def differences(self) -> list[Difference]:
        """All pairs of schemes compared in what reports show. Their runs do not share seeds, and so are no pairs."""
        asked = self.parameters.get("seed")
        seed = 1 if asked is None else int(asked)
        return [
            one
            for name, better in COMPARED.items()
            for one in differences(name, better, self._by_run(name), paired=False, seed=seed)
        ]

    def _by_run(self, name: str) -> dict[str, dict[int, float]]:
        """A quantity by scheme and run, of the runs that count."""
        found: dict[str, dict[int, float]] = {style.key: {} for style in self.styles}
        for cell in self.cells:
            value = getattr(cell.record.total, name)
            if cell.invalid is None and value is not None:
                found[cell.scheme][cell.run] = float(value)
        return found

    @property
    def wall_s(self) -> float:
        """Time that the runs took, seconds, summed over all of them, whenever they were run."""
        return sum(cell.wall_s for cell in self.cells)

    @property
    def trajectory_hash(self) -> str:
        """One hash over all runs: equal hashes mean that two sweeps saw the same packets at the same times.

        Of runs in real time it says no more than which runs these are: none of them ever comes again.
        """
        digest = hashlib.sha256()
        for cell in self.cells:
            digest.update(f"{cell.scheme} {cell.run} {cell.record.trajectory_hash}\n".encode())
        return digest.hexdigest()[:16]

    def as_dict(self) -> dict[str, Any]:
        """Plain data; :meth:`from_dict` is the inverse."""
        return {
            "format": FORMAT,
            "version": FORMAT_VERSION,
            **_RESULTS.dump_python(self, mode="json"),
            "trajectory_hash": self.trajectory_hash,
            "summary": [_summary_dict(summary) for summary in self.schemes],
            "differences": [one.row() for one in self.differences],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ResultSet:
        """The inverse of :meth:`as_dict`; raises :class:`ResultsError` where it is something else."""
        if data.get("format") != FORMAT or data.get("version") != FORMAT_VERSION:
            raise ResultsError(
                "results-version",
                f"format {shown(data.get('format'))}, version {shown(data.get('version'))}",
                expected=f"format {FORMAT!r}, version {FORMAT_VERSION}",
                hint="evaluate again with this version of ccgym, into a new directory",
            )
        return _RESULTS.validate_python(data)

    @classmethod
    def load(cls, directory: Path) -> ResultSet:
        """Read ``ccgym_results.json`` from a results directory."""
        file = directory / RESULTS_FILE
        try:
            return replace(cls.from_dict(read_json(file)), directory=directory)
        except FileNotFoundError:
            raise ResultsError(
                "results-missing",
                "there are no results",
                where=str(file),
                expected="the output directory of `ccgym evaluate`",
                hint="an unfinished evaluation has none yet: run the same command again, it resumes",
            ) from None
        except (UnreadableError, AttributeError, ValidationError) as error:
            reason = f"it {error}" if isinstance(error, UnreadableError) else repr(error)
            raise ResultsError(
                "results-damaged",
                f"the file is damaged: {reason}",
                where=str(file),
                expected="what `ccgym evaluate` wrote",
                hint="run the same evaluation again: finished runs are kept, the file is written anew",
            ) from error
        except ResultsError as error:
            raise error.at(str(file)) from error


_RESULTS: Final = TypeAdapter(ResultSet)


def _summary_dict(summary: SchemeSummary) -> dict[str, Any]:
    row: dict[str, Any] = {
        "scheme": summary.style.key,
        "label": summary.style.label,
        "runs": len(summary.runs),
        "valid_runs": len(summary.valid_runs),
        "limited_runs": len(summary.limited_runs),
        "identical_runs": summary.identical_runs,
        "unavailable": summary.unavailable,
    }
    for name in ("throughput_mbps", "delay_p95_ms", "loss", "utilization"):
        spread: Spread | None = getattr(summary, name)
        row[name] = None if spread is None else asdict(spread)
    return row


def result_table(results: ResultSet) -> dict[str, Any]:
    """One row per scheme, run and flow: :data:`RUN_COLUMNS`, then those of :func:`flow_table` but the scheme."""
    labels = {style.key: style.label for style in results.styles}
    names = [item.name for item in fields(FlowRecord) if item.name not in RUN_COLUMNS]
    rows = [
        {
            "scheme": cell.scheme,
            "label": labels[cell.scheme],
            "run": cell.run,
            "seed": cell.record.seed,
            "counts": cell.invalid is None,
            "capacity_mbps": cell.record.link.capacity_mbps,
            "utilization": cell.record.link.utilization,
            "flow_scheme": flow.scheme,
            "flow": number,
            **{name: getattr(flow, name) for name in names},
        }
        for cell in results.cells
        for number, flow in enumerate(cell.record.flows, start=1)
    ]
    return {name: [row[name] for row in rows] for name in (*RUN_COLUMNS, *FLOW_COLUMN, *names)}


def series_frame(results: ResultSet) -> pd.DataFrame:
    """The series of all runs: scheme, run, then :data:`SERIES_COLUMNS`, in which ``flow_scheme`` is the flow's own.

    Raises:
        PlatformError: pandas is not installed.
        ResultsError: The results are of no directory, or a file of theirs is missing.
    """
    if results.directory is None:
        raise ResultsError(
            "not-recorded",
            "these results hold no series",
            expected="results of a directory, as ResultSet.load() reads them",
        )
    pandas = import_pandas()
    parts = []
    for cell in results.cells:
        file = results.directory / series_file(cell.name)
        if not file.exists():
            raise ResultsError(
                "results-damaged",
                "the file is missing",
                where=str(file),
                hint="evaluate again: what is missing is run again",
            )
        part = pandas.read_csv(file).rename(columns={"scheme": "flow_scheme"})
        part.insert(0, "scheme", cell.scheme)
        part.insert(1, "run", cell.run)
        parts.append(part)
    return pandas.concat(parts, ignore_index=True) if parts else pandas.DataFrame()


def series_file(name: str) -> str:
    """The CSV of a run over time, in the results directory: ``cubic_run1.csv``."""
    return f"{name}.csv"


def write_results(results: ResultSet, directory: Path) -> None:
    """Write ``ccgym_results.json``, and the tables of its runs and of the differences between schemes as CSV."""
    atomic_write(directory / RESULTS_CSV, to_csv(result_table(results)))
    atomic_write(directory / DIFFERENCES_CSV, rows_to_csv([one.row() for one in results.differences]))
    atomic_write(directory / RESULTS_FILE, json.dumps(results.as_dict(), indent=1, ensure_ascii=False) + "\n")


def ordered(cells: Iterable[CellResult], styles: Sequence[SchemeStyle]) -> tuple[CellResult, ...]:
    """Cells in the order of the table: by scheme as given, then by run."""
    rank = {style.key: place for place, style in enumerate(styles)}
    return tuple(sorted(cells, key=lambda cell: (rank[cell.scheme], cell.run)))
