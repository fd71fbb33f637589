"""``explore.html``: the interactive page of an evaluation: every scheme, every run, and each run over time.

The page is one file that fetches nothing: the numbers as JSON, the series as 32-bit floats, and uPlot
(``vendor/uplot``), which draws them. Its scripts are ``templates/charts.js``, ``explore.js`` and
``explore_plane.js``.
"""

from __future__ import annotations

import base64
import shlex
import warnings
from collections.abc import Container, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
from markupsafe import Markup
from matplotlib.markers import MarkerStyle

from ccgym.evaluation.backends import PLACES, SIMULATED
from ccgym.evaluation.curves import RunCurves
from ccgym.evaluation.kept_series import SERIES_STEP_NS, read_series
from ccgym.evaluation.results import ResultSet
from ccgym.evaluation.scheme_summary import CellResult, SchemeSummary
from ccgym.evaluation.spread import Spread
from ccgym.invocation import command
from ccgym.report.evaluation_table import PUBLISHED_COLUMNS, evaluation_table, explanation
from ccgym.report.page import write_page
from ccgym.report.style import CAPACITY_EDGE, page_colors
from ccgym.report.table import Column, Row, Table, number
from ccgym.schemes.style import FLOW_COLORS
from ccgym.units import NS_PER_S

EXPLORE_FILE: Final = "explore.html"

UPLOT: Final = Path(__file__).with_name("vendor") / "uplot"

MAX_VALUES: Final = 700_000
"""Max values of all series together, 3.7 MB of the page: with more, several intervals are merged into one."""

FloatArray = npt.NDArray[np.float64]

Merge = Literal["mean", "sum", "min", "max"]


@dataclass(frozen=True)
class Line:
    """A column of the series, and its style."""

    column: str
    label: str
    kind: Literal["line", "thin", "low", "high", "bars", "area"] = "line"
    """``low`` and ``high`` are the edges of a band; without ``low``, the band begins at the line. ``thin`` is hidden
    until its name is clicked."""
    merge: Merge = "mean"
    """How values of several intervals are merged into one."""
    shared: bool = False
    """Whether the column belongs to the path, not to a flow."""
    scale: float = 1.0


@dataclass(frozen=True)
class Panel:
    """Axes of a run over time."""

    name: str
    title: str
    unit: str
    lines: tuple[Line, ...]
    from_zero: bool = True
    """Whether the axis begins at zero."""
    total: Literal["sum", "mean"] = "mean"
    """How the values of all flows of a run are combined."""


PANELS: Final = (
    Panel(
        "throughput", "Throughput", "Mbit/s", total="sum",
        lines=(
            Line("capacity_mbps", "capacity", "area", shared=True),
            Line("throughput_mbps", "received"),
            Line("sending_rate_mbps", "sent", "thin"),
            Line("pacing_rate_mbps", "pacing rate", "thin"),
        ),
    ),
    Panel(
        "delay", "One-way delay", "ms", from_zero=False,
        lines=(
            Line("one_way_delay_ms", "mean"),
            Line("one_way_delay_min_ms", "smallest", "low", "min"),
            Line("one_way_delay_max_ms", "largest", "high", "max"),
        ),
    ),
    Panel(
        "queue", "Queue of the bottleneck", "packets",
        (Line("queue_packets", "mean", shared=True), Line("queue_max_packets", "largest", "high", "max", shared=True)),
    ),
    Panel("drops", "Dropped by the queue", "packets", (Line("dropped_packets", "drops", "bars", "sum", shared=True),)),
    Panel("loss", "Declared lost by the sender", "packets", (Line("lost_packets", "lost", "bars", "sum"),)),
    Panel(
        "window", "Congestion window", "kB",
        (Line("cwnd_bytes", "window", scale=1e-3), Line("in_flight_bytes", "in flight", "thin", scale=1e-3)),
    ),
    Panel("srtt", "Smoothed round-trip time", "ms", (Line("srtt_ms", "sRTT"),), from_zero=False),
)  # fmt: skip

METRICS: Final = (
    Column("throughput_mbps", "throughput", "Mbit/s", number(2), better="max"),
    Column("delay_p95_ms", "95th %-ile delay", "ms", number(2), better="min"),
    Column("loss", "loss", "%", number(2, 100), better="min"),
    Column("utilization", "utilization", "%", number(1, 100), better="max"),
    Column("mean_queue_delay_ms", "mean queueing delay", "ms", number(2), better="min"),
    Column("drops", "queue drops", "packets", number(0), better="min"),
    Column("mean_rtt_ms", "mean RTT", "ms", number(2), better="min"),
    Column("retransmissions", "retransmissions", "packets", number(0), better="min"),
)
"""Numbers of a run, over all its flows together."""


def _scale(column: Column) -> float:
    """Return the factor between a number and its displayed value."""
    return 100.0 if column.unit == "%" else 1.0


def write_explore(results: ResultSet, directory: Path) -> None:
    """Write ``explore.html`` into the results directory, from the series and curves in it."""
    write_page(directory / EXPLORE_FILE, "explore", explore_values(results, directory))


def explore_values(results: ResultSet, directory: Path) -> dict[str, Any]:
    """Return the values that the template ``explore`` needs.

    Args:
        results: The experiment.
        directory: Directory of its series; a run without series has numbers only.
    """
    script, style = chart_library()
    return {
        "results": results,
        "parameters": results.parameters,
        "provenance": results.provenance,
        "place": PLACES[results.backend],
        "table": replace(evaluation_table(results), kind="sortable"),
        "explanation": explanation(results),
        "run_table": run_table(results),
        "sections": (),
        "data": page_data(results, directory),
        "uplot_script": Markup(script),
        "uplot_style": Markup(style),
    }


def chart_library() -> tuple[str, str]:
    """Return script and style sheet of uPlot; the script contains its license."""
    names = ("LICENSE", "uPlot.iife.min.js", "uPlot.min.css")
    license_text, script, style = ((UPLOT / name).read_text(encoding="utf-8") for name in names)
    return f"/*! {license_text.strip().replace('*/', '* /')} */\n{script}", style


def run_table(results: ResultSet) -> Table:
    """Return a row per run, in the order of the results."""
    labels = {style.key: style.label for style in results.styles}
    known = [column for column in METRICS if any(_number(cell, column.name) is not None for cell in results.cells)]
    rows = [
        Row(
            {
                "scheme": labels[cell.scheme],
                "run": cell.run,
                "counts": "yes" if cell.invalid is None else f"no: {cell.invalid}",
                **{column.name: _number(cell, column.name) for column in known},
            },
            tone="" if cell.invalid is None else "muted",
        )
        for cell in results.cells
    ]
    counts = [Column("counts", "counts", align="left")] if any(cell.invalid for cell in results.cells) else []
    columns = [Column("scheme", "scheme", align="left"), Column("run", "run"), *known, *counts]
    return Table(columns, rows, kind="sortable")


def page_data(results: ResultSet, directory: Path) -> dict[str, Any]:
    """Return all data that the page's script reads. ``values`` are little-endian 32-bit floats in base64; a run's
    ``series`` are ``[panel, line, flow (0: the path), index of the first value]``, each of ``count`` values."""
    commands = Commands.of(results, directory)
    found = [_series(cell, directory) for cell in results.cells]
    total = sum(values.size for one in found for values in one.values())
    every = max(1, -(-total // MAX_VALUES))
    values: list[FloatArray] = []
    runs, place = [], 0
    for cell, lines in zip(results.cells, found, strict=True):
        merged = {(p, k, flow): _merged(one, every, PANELS[p].lines[k].merge) for (p, k, flow), one in lines.items()}
        count = next((one.size for one in merged.values()), 0)
        seed = cell.record.seed
        runs.append(
            {
                "name": cell.name,
                "scheme": cell.scheme,
                "run": cell.run,
                "seed": None if seed is None else str(seed),  # of 64 bits: too long for JavaScript
                "ignored": cell.invalid,
                "flows": [flow.scheme for flow in cell.record.flows],
                "numbers": [_number(cell, column.name) for column in METRICS],
                "count": count,
                "series": [[*key, place + k * count] for k, key in enumerate(merged)],
                "command": commands.of_run(cell),
            }
        )
        values += merged.values()
        place += count * len(merged)
    whole = np.concatenate(values) if values else np.empty(0)
    return {
        "title": results.parameters["path_name"],
        "step": every * SERIES_STEP_NS / NS_PER_S,
        "panels": [asdict(panel) for panel in PANELS],
        "metrics": [
            {
                "label": column.label,
                "unit": column.unit,
                "scale": _scale(column),
                "digits": len(column.format(0.0).partition(".")[2]),
            }
            for column in METRICS
        ],
        "flowColors": [page_colors(color) for color in FLOW_COLORS],
        "capacityColor": [CAPACITY_EDGE, "#5d5348"],
        "schemes": [_scheme(summary) for summary in results.schemes],
        "runs": runs,
        "command": commands.whole,
        "values": base64.b64encode(whole.astype("<f4").tobytes()).decode(),
    }


@dataclass(frozen=True)
class Commands:
    """The commands that produce the contents of the page."""

    whole: str
    """Command that produces the whole page."""
    texts: Mapping[str, str] = field(default_factory=dict)
    """The schemes as the user wrote them, by key; only where a single run can be repeated alone."""

    @classmethod
    def of(cls, results: ResultSet, directory: Path) -> Commands:
        """Return the commands of an experiment: its own command, or the command that makes the page from its files."""
        words = [word for word in shlex.split(results.provenance.get("command") or "") if word != "--no-figures"]
        if not words:
            return cls(f"{command('report')} analyze {shlex.quote(str(directory))}")
        # Only simulated runs repeat the same packets.
        alone = results.backend == SIMULATED and not _EVALUATE.isdisjoint(words)
        keys = [style.key for style in results.styles]
        return cls(shlex.join(words), dict(zip(keys, results.parameters["schemes"], strict=True)) if alone else {})

    def of_run(self, cell: CellResult) -> str:
        """Return the command that makes a run and its figures: this run alone, if it can be repeated alone."""
        if cell.scheme not in self.texts:
            return self.whole
        words = without(shlex.split(self.whole))
        return shlex.join([*words, "--schemes", self.texts[cell.scheme], "--runs", str(cell.run)])


_EVALUATE: Final = frozenset({"evaluate", "evaluate.py"})
_REPLACED: Final = ("--schemes", "--runs", "--out", "--jobs")
_LEFT_OUT: Final = ("--grow", "--json", "--random-order")


def without(words: Iterable[str], options: Container[str] = _REPLACED, flags: Container[str] = _LEFT_OUT) -> list[str]:
    """Return a command line without some options and their values: by default the options that select runs and the
    target directory."""
    kept: list[str] = []
    rest = iter(words)
    for word in rest:
        if word in options:
            next(rest, None)
        elif word not in flags and word.partition("=")[0] not in options:
            kept.append(word)
    return kept


def _scheme(summary: SchemeSummary) -> dict[str, Any]:
    def spread(column: Column) -> list[float | None] | None:
        if column.name in PUBLISHED_COLUMNS:  # as in the table: from rounded numbers
            found, scale = summary.as_printed(column.name), _scale(column)
        else:
            found, scale = Spread.of(_number(cell, column.name) for cell in summary.valid_runs), 1.0
        if found is None:
            return None
        return [found.mean / scale, None if found.std is None or summary.identical_runs else found.std / scale]

    published = summary.published
    return {
        "key": summary.style.key,
        "label": summary.style.label,
        "colors": page_colors(summary.style.color),
        "mark": _mark(summary.style.marker),
        "numbers": [spread(column) for column in METRICS],
        "published": published and [published.delay_p95_ms, published.throughput_mbps],
        "unavailable": summary.unavailable,
    }


def _number(cell: CellResult, name: str) -> float | None:
    record = cell.record
    if name in ("throughput_mbps", "delay_p95_ms", "loss"):
        value = getattr(record.total, name)
    elif name == "retransmissions":
        sent_again = [flow.retransmissions for flow in record.flows if flow.retransmissions is not None]
        value = sum(sent_again) if sent_again else None
    elif name == "mean_rtt_ms":
        found = Spread.of(flow.mean_rtt_ms for flow in record.flows)
        value = found and found.mean
    else:
        value = getattr(record.link, name)
    return None if value is None else float(value)


def _mark(marker: str) -> dict[str, Any]:
    """Return a marker as the ``d`` of an SVG path of about unit radius, y downward, and whether it is filled."""
    style = MarkerStyle(marker)
    path = style.get_path().transformed(style.get_transform())
    parts = []
    for polygon in path.to_polygons(closed_only=False):
        points = 2 * np.asarray(polygon, dtype=np.float64)
        parts.append("M" + "L".join(f"{x:.2f} {-y:.2f}" for x, y in points))
    return {"path": "".join(parts), "filled": bool(style.is_filled())}


Key = tuple[int, int, int]
"""Key of a series of a run: index of the panel, index of the line, flow from 1, or 0 for the path."""


def _series(cell: CellResult, directory: Path) -> dict[Key, FloatArray]:
    """Return the known series of a run in steps of 100 ms."""
    columns = read_series(directory, cell)
    if columns is None:
        return {}
    flows = columns["flow"]
    tables = {int(flow): {k: v[flows == flow] for k, v in columns.items()} for flow in np.unique(flows)}
    count = next((table["flow"].size for table in tables.values()), 0)
    if cell.curves and count:
        tables[0] = {"capacity_mbps": _capacity(RunCurves.load(directory / cell.curves), count)}
    found = {}
    for p, panel in enumerate(PANELS):
        for place, line in enumerate(panel.lines):
            for flow, table in tables.items():
                values = table.get(line.column)
                # Values of the path are repeated in the rows of every flow.
                wanted = flow in (0, 1) if line.shared else flow > 0
                if wanted and values is not None and not np.isnan(values).all():
                    found[p, place, 0 if line.shared else flow] = line.scale * values
    return found


def _capacity(curves: RunCurves, count: int) -> FloatArray:
    """Return the capacity in each interval."""
    middles = (np.arange(count) + 0.5) * SERIES_STEP_NS / NS_PER_S
    bins = (middles / curves.bin_s).astype(np.int64)
    known = bins < curves.capacity_mbps.size
    found = np.full(count, np.nan)
    found[known] = curves.capacity_mbps[bins[known]]
    return found


def _merged(values: FloatArray, every: int, merge: Merge) -> FloatArray:
    """Merge each ``every`` intervals into one; an incomplete group at the end is left out."""
    if every == 1:
        return values
    table = values[: values.size // every * every].reshape(-1, every)
    with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # the mean of unknown values is unknown
        found = getattr(np, f"nan{merge}")(table, axis=1)
    return np.asarray(np.where(np.isnan(table).all(axis=1), np.nan, found), dtype=np.float64)
