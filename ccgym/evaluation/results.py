"""The results of an experiment: every run, summarized per scheme, with a versioned form on disk.

``results.json`` contains what Pantheon's files cannot: seeds, capacity, versions, trajectory hashes, failed
cells, flags. Its schema is documented in ``docs/guides/evaluate.md``.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

from pydantic import Field, TypeAdapter, ValidationError

from ccgym.config.catalog_file import PublishedResult
from ccgym.config.display import html_table
from ccgym.errors import ConfigError, ResultsError, did_you_mean, shown
from ccgym.evaluation.backends import SIMULATED, is_real
from ccgym.evaluation.differences import Difference, Direction, differences
from ccgym.evaluation.frames import import_pandas, to_frame, write_csv
from ccgym.evaluation.kept_series import read_series, series_file
from ccgym.evaluation.results_file import (
    RESULTS_FILE,
    Measurement,
    as_document,
    damaged,
    read_results,
    unit_of,
)
from ccgym.evaluation.run_numbers import FLOW_COLUMN, NUMBER_HEADS, FlowRecord
from ccgym.evaluation.scheme_summary import CellFailure, CellResult, SchemeSummary
from ccgym.evaluation.spread import Spread
from ccgym.schemes.style import SchemeStyle

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

RUN_COLUMNS: Final[Mapping[str, str]] = {
    "scheme": "key of the scheme, as in file names",
    "label": "label of the scheme",
    "run": "number of the run, from 1",
    "seed": "seed of the run",
    "counts": "whether the run counts by Pantheon's rules",
    "capacity_mbps": "average capacity of the bottleneck over the run, Mbit/s",
    "utilization": "throughput of all flows of the run together / capacity",
    "flow_scheme": "name of the flow's own scheme, where schemes share a run",
}
"""Columns of a result set before those of each flow: one row per scheme, run and flow."""


COMPARED: Final[Mapping[str, Direction]] = {"throughput_mbps": "higher", "delay_p95_ms": "lower", "loss": "lower"}
"""Quantities of all flows of a run together that are compared between schemes, and which values are better."""


def chosen_styles(styles: Iterable[SchemeStyle], schemes: Collection[str] | None) -> tuple[SchemeStyle, ...]:
    """Return the styles of the given schemes, in table order; of all schemes if ``schemes`` is None.

    Raises:
        ConfigError: A key belongs to no scheme.
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
    """The parameters and all results of an experiment."""

    parameters: Mapping[str, Any]
    """The full parameters of the experiment, as plain data."""
    provenance: Mapping[str, Any]
    """Versions, command line, platform and time: how the results were made."""
    styles: Annotated[tuple[SchemeStyle, ...], Field(alias="schemes")]
    """The schemes, in the order of the table."""
    cells: tuple[CellResult, ...]
    """All finished runs, ordered by scheme and run."""
    failures: tuple[CellFailure, ...] = ()
    published: Mapping[str, PublishedResult] = field(default_factory=dict)
    """Published numbers on this path, by scheme key."""
    published_source: str = ""
    """Source of the published numbers."""
    flags: tuple[Mapping[str, str], ...] = ()
    """Warnings and notes, with likely causes (see ``flags.py``)."""
    unavailable: Mapping[str, str] = field(default_factory=dict)
    """Reasons why schemes could not run here, by key. Such a scheme has a row without numbers, and is no failure."""
    left: int = 0
    """Number of runs that were not started because the time budget ran out."""
    directory: Annotated[Path | None, Field(exclude=True)] = field(default=None, compare=False)
    """The results directory, with curves and series of every run; None if the results are in memory only."""

    def __repr__(self) -> str:
        asked = self.parameters
        lines = [f"ResultSet: {asked.get('path_name', 'a path')}, {self.backend}, seed {asked.get('seed', '?')}"]
        width = max((len(style.label) for style in self.styles), default=0)
        lines += [f"  {one.style.label:<{width}}  {len(one.valid_runs)} runs: {one.summary()}" for one in self.schemes]
        if self.failures:
            lines.append(f"  {len(self.failures)} runs failed")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = [
            (one.style.label, str(len(one.valid_runs)), *(one.cell(name) for name in COMPARED)) for one in self.schemes
        ]
        return html_table(repr(self).partition("\n")[0], ("scheme", "runs", *NUMBER_HEADS), rows)

    def plot(self, file: str | os.PathLike[str] | None = None) -> Figure:
        """Draw mean throughput against mean 95th-percentile one-way delay, a mark per scheme.

        Args:
            file: The file to save it to: ``.png``, ``.svg`` or ``.pdf``. By default it is not saved.

        Raises:
            ConfigError: matplotlib does not support the suffix of the file.
            PlatformError: matplotlib is not installed, or the file cannot be written.
        """
        from ccgym import plot_results  # drawing is in a higher layer, reached through the package

        return plot_results(self, file)

    def to_pandas(self, table: Literal["flows", "series"] = "flows") -> pd.DataFrame:
        """Return a table of all runs as a data frame; ``docs/reference/results.md`` lists the columns with their units.

        Args:
            table: ``"flows"``: one row per scheme, run and flow; ``"series"``: one row per scheme, run, interval of
                100 ms and flow.

        Raises:
            ConfigError: There is no such table.
            PlatformError: pandas is not installed.
            ResultsError: The series are missing.
        """
        if table not in ("flows", "series"):
            raise ConfigError("unknown-choice", shown(table), where="table", expected="'flows' or 'series'")
        return series_frame(self) if table == "series" else to_frame(result_table(self))

    def to_csv(self, file: str | os.PathLike[str]) -> None:
        """Write the table of :meth:`to_pandas` as CSV; raise :class:`ResultsError` if this fails."""
        write_csv(file, result_table(self))

    @property
    def backend(self) -> str:
        """Name of the backend that carried the packets."""
        return str(self.parameters.get("backend", SIMULATED))

    @property
    def real(self) -> bool:
        """Whether packets were real. If so, equal parameters do not give equal runs."""
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
        """Return the results of the given schemes only.

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

    @cached_property
    def differences(self) -> list[Difference]:
        """Compare all pairs of schemes in the quantities that reports show. Runs are unpaired: they share no seeds."""
        asked = self.parameters.get("seed")
        seed = 1 if asked is None else int(asked)
        return [
            one
            for name, better in COMPARED.items()
            for one in differences(name, better, self._by_run(name), paired=False, seed=seed)
        ]

    def _by_run(self, name: str) -> dict[str, dict[int, float]]:
        """Return a quantity by scheme and run, for the runs that count."""
        found: dict[str, dict[int, float]] = {style.key: {} for style in self.styles}
        for cell in self.cells:
            value = getattr(cell.record.total, name)
            if cell.invalid is None and value is not None:
                found[cell.scheme][cell.run] = float(value)
        return found

    @property
    def wall_s(self) -> float:
        """Wall time of all runs, seconds, summed, including runs of earlier commands."""
        return sum(cell.wall_s for cell in self.cells)

    @property
    def trajectory_hash(self) -> str:
        """One hash over all runs: equal hashes mean that two sweeps had the same packets at the same times.

        For runs in real time, which never repeat exactly, it only identifies the runs.
        """
        digest = hashlib.sha256()
        for cell in self.cells:
            digest.update(f"{cell.scheme} {cell.run} {cell.record.trajectory_hash}\n".encode())
        return digest.hexdigest()[:16]

    def as_dict(self) -> dict[str, Any]:
        """Return plain data, as in ``results.json``."""
        return {**self._document}

    @cached_property
    def _document(self) -> dict[str, Any]:
        return as_document(
            {
                "kind": "evaluation",
                **_RESULTS.dump_python(self, mode="json", by_alias=True),
                "trajectory_hash": self.trajectory_hash,
                "summary": [_summary_dict(summary) for summary in self.schemes],
                "differences": [one.row() for one in self.differences],
            }
        )

    def rows(self, experiment: str = "", condition: str = "") -> Iterator[Measurement]:
        """Yield all measurements; a row without a known value has NaN.

        Args:
            experiment: Name of the experiment; by default the name of the path.
            condition: Text that distinguishes this evaluation from others of the experiment.
        """
        name = experiment or str(self.parameters.get("path_name", ""))
        for cell in self.cells:
            place = (name, condition, cell.scheme)
            link = {"capacity_mbps": cell.record.link.capacity_mbps, "utilization": cell.record.link.utilization}
            whole = {**{one: getattr(cell.record.total, one) for one in COMPARED}, **link}
            parts: list[tuple[int | None, Mapping[str, Any]]] = [(None, whole)]
            parts += [(number, vars(flow)) for number, flow in enumerate(cell.record.flows, start=1)]
            for flow, values in parts:
                for metric, value in values.items():
                    if isinstance(value, (int, float)):
                        yield Measurement(*place, flow, cell.run, metric, value, unit_of(metric))

    @classmethod
    def load(cls, directory: str | Path) -> ResultSet:
        """Read the results of an evaluation.

        Raises:
            ResultsError: There are no results, they are damaged, or they are not of an evaluation.
        """
        directory = Path(directory)
        document = read_results(directory)
        try:
            if document["kind"] != "evaluation":
                raise damaged(directory / RESULTS_FILE, f"it is of a {document['kind']}")
            return replace(_RESULTS.validate_python(document), directory=directory)
        except ValidationError as error:
            raise damaged(directory / RESULTS_FILE, f"the file is damaged: {error!r}") from error


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
    """Return one row per scheme, run and flow: :data:`RUN_COLUMNS`, then :func:`flow_table` without the scheme."""
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
    """Return the series of all runs: scheme, run, :data:`SERIES_COLUMNS`; ``flow_scheme`` is the scheme of the flow.

    Raises:
        PlatformError: pandas is not installed.
        ResultsError: The results are not from a directory, or one of their files is missing.
    """
    if results.directory is None:
        raise ResultsError(
            "not-recorded",
            "these results contain no series",
            expected="results from a directory, as ResultSet.load() reads them",
        )
    pandas = import_pandas()
    parts = []
    for cell in results.cells:
        series = read_series(results.directory, cell)
        if series is None:
            raise ResultsError(
                "results-damaged",
                "the series of a run are missing",
                where=str(results.directory / series_file(cell.name)),
                hint="run the same evaluation again: it repeats only missing runs",
            )
        part = pandas.DataFrame(series).rename(columns={"scheme": "flow_scheme"})
        part.insert(0, "scheme", cell.scheme)
        part.insert(1, "run", cell.run)
        parts.append(part)
    return pandas.concat(parts, ignore_index=True) if parts else pandas.DataFrame()


def ordered(cells: Iterable[CellResult], styles: Sequence[SchemeStyle]) -> tuple[CellResult, ...]:
    """Return cells in the order of the table: by scheme as given, then by run."""
    rank = {style.key: place for place, style in enumerate(styles)}
    return tuple(sorted(cells, key=lambda cell: (rank[cell.scheme], cell.run)))
