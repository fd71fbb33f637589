"""The tables, the figure and the CSV that docs/studies/ccperf.md speaks of."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Sequence
from io import StringIO
from pathlib import Path
from statistics import fmean, median, pstdev
from typing import Final

from tests.reproduction.ccperf import (
    DRAWS,
    JUDGED,
    Experiment,
    Row,
    loss_draws,
    ns3_experiments,
    ns3_metrics,
    ns3_rows,
    other_runs_values,
    published_rows,
)
from tests.reproduction.markdown import number, table

COLUMNS: Final = ("run", "schemes", "scope", "metric", "ns3", "ours", "deviation", "limit", "judged")
"""Of ccperf.csv; ``judged`` says ``yes`` or why not."""

SHARE: Final = "(mean_throughput_l4|mean_utilization_bw_l4|mean_in_flight_l4)"
SEVERAL_CUBIC: Final = r"(synchronous_fairness k=[48]|rtt_fairness) .* (Cubic, )+Cubic flow_\d"
REASONS: Final[Sequence[tuple[str, float, str]]] = (
    (r"scalability\S* .*\bVegas \w+ mean_(est_qdelay|qdisc_delay|qdisc_length)_", 2, "E1, fractions of a millisecond"),
    (r"reno_fairness#85 Vegas, NewReno flow_2 cov_throughput_l4", 0.3, "E1, whole milliseconds"),
    (rf"rtt_fairness .* Vegas, Vegas flow_\d {SHARE}", 0.05, "E1, whole milliseconds"),
    (rf"{SEVERAL_CUBIC} {SHARE}", 0.25, "E2, order of single packets"),
    (rf"{SEVERAL_CUBIC} cov_throughput_l4", 0.8, "E2, order of single packets"),
)
"""A pattern for a row's run, scope and metric, the largest deviation that it covers, and why such rows may lie beyond
the limit: docs/studies/ccperf.md."""


def reason(row: Row) -> str:
    """Why a row lies beyond its limit."""
    where = f"{row.experiment.label} {row.scope} {row.metric}"
    found = (text for pattern, most, text in REASONS if abs(row.deviation) <= most and re.match(pattern, where))
    return next(found, "unexplained")


def percent(deviation: float) -> str:
    """Against a zero there is no deviation."""
    return "∞" if deviation == float("inf") else f"{100 * deviation:+.1f} %"


def size(deviation: float) -> str:
    """The same without a sign, in two digits."""
    if deviation == float("inf"):
        return "∞"
    return f"{100 * deviation:.2g} %" if deviation < 0.995 else f"{100 * deviation:.0f} %"


def judged(rows: Iterable[Row]) -> list[Row]:
    """Those of no caution."""
    return [row for row in rows if not row.caution]


def summary() -> str:
    """How many values there are, are judged, and hold."""
    rows = ns3_rows()
    parts = [
        ("published, experiment 85", published_rows(85)),
        ("published, experiment 21", published_rows(21)),
        ("ns-3, NewReno, Cubic and Vegas", judged(rows)),
        *((f"ns-3, *{caution}*", [row for row in rows if row.caution == caution]) for caution in cautions(rows)),
    ]
    lines = []
    for name, part in parts:
        counted = judged(part)
        held = sum(row.holds for row in counted)
        middle = size(median(abs(row.deviation) for row in part))
        lines.append([name, f"{len(part)}", f"{len(counted)}", f"{held}", f"{len(counted) - held}", middle])
    lines.insert(2, ["published, experiment 21, of another run", f"{other_runs_values()}", "0", "0", "0", "–"])
    return table(["values", "number", "judged", "within the limit", "beyond", "median deviation"], lines)


def cautions(rows: Iterable[Row]) -> list[str]:
    """Why rows are not judged."""
    return list(dict.fromkeys(row.caution for row in rows if row.caution))


def published(experiment: int) -> str:
    """Every published value of an experiment."""
    lines = []
    for row in published_rows(experiment):
        deviation = percent(row.deviation) if row.theirs else ""
        verdict = f"**no**: {reason(row)}"
        if row.holds:
            verdict = "yes" if abs(row.deviation) <= row.limit else "yes, with its last digit"
        limit = f"{100 * row.limit:g} %"
        lines.append(
            [f"`{row.metric}`", f"`{row.scope}`", f"{row.theirs:.2f}", number(row.ours), deviation, limit, verdict]
        )
    return table(["metric", "scope", "published", "ours", "deviation", "limit", "within"], lines)


NOT_JUDGED: Final = ("random loss", "runs with TcpBbr")


def column(row: Row) -> str:
    """Which column of the table by metric a value is in."""
    if not row.caution:
        return row.scheme.removeprefix("Tcp")
    return NOT_JUDGED["TcpBbr" in row.caution]


def deviations() -> str:
    """Every value of ns-3's runs, by metric and scheme: median and worst deviation."""
    rows = ns3_rows()
    columns = [*(name.removeprefix("Tcp") for name in JUDGED), *NOT_JUDGED]
    lines = []
    for metric in ns3_metrics():
        mine = [row for row in rows if row.metric == metric]
        cells = []
        for name in columns:
            found = [abs(row.deviation) for row in mine if column(row) == name]
            cells.append(f"{size(median(found))} / {size(max(found))} ({len(found)})" if found else "–")
        lines.append([f"`{metric}`", f"{100 * mine[0].limit:g} %", *cells, f"{len(mine)}"])
    totals = [f"{sum(column(row) == name for row in rows)}" for name in columns]
    lines.append(["values", "", *totals, f"{len(rows)}"])
    return table(["metric", "limit", *columns, "values"], lines)


def runs() -> str:
    """Every run of ns-3: how many of its values hold, and the worst."""
    rows = ns3_rows()
    lines = []
    for experiment in ns3_experiments():
        mine = [row for row in rows if row.experiment == experiment]
        beyond = [row for row in mine if not row.holds]
        worst = max(mine, key=lambda row: abs(row.deviation))
        why = mine[0].caution or "; ".join(dict.fromkeys(map(reason, beyond)))
        lines.append(
            [
                short(experiment),
                f"{len(mine)}",
                f"{len(mine) - len(beyond)}",
                size(median(abs(row.deviation) for row in mine)),
                f"`{worst.metric}` of `{worst.scope}`: {number(worst.theirs)} / {number(worst.ours)}" if beyond else "",
                why,
            ]
        )
    return table(["run", "values", "within", "median deviation", "worst value, ns-3 / ours", "why"], lines)


def short(experiment: Experiment) -> str:
    """The run's name, with equal schemes counted."""
    names = [name.removeprefix("Tcp") for name in experiment.algorithms]
    each = [f"{names.count(one)} {one}" if names.count(one) > 1 else one for one in dict.fromkeys(names)]
    return f"{experiment.name}: {', '.join(each)}"


def draws() -> str:
    """Random loss: what one draw of it can come to."""
    lines = []
    for algorithm in JUDGED:
        theirs = loss_draws(algorithm)
        runs_of_ours = Experiment("loss_resilience#7", (algorithm,)).runs()
        ours = [run.ccperf().flows[0]["mean_throughput_l4"].value or 0.0 for run in runs_of_ours]
        both = [f"{fmean(one):.2f} ± {pstdev(one):.2f} ({min(one):.2f} to {max(one):.2f})" for one in (theirs, ours)]
        lines.append([algorithm.removeprefix("Tcp"), *both])
    return table(["scheme", "30 draws of ns-3, Mbit/s", f"{DRAWS} of ours"], lines)


def rows_as_csv() -> str:
    """Every value of ns-3's runs, ours and how far they are apart."""
    out = StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in ns3_rows():
        schemes = " ".join(name.removeprefix("Tcp") for name in row.experiment.algorithms)
        ours, deviation = f"{row.ours:.5g}", f"{row.deviation:.4f}"
        fixed = [row.experiment.name, schemes, row.scope, row.metric, f"{row.theirs:g}"]
        writer.writerow([*fixed, ours, deviation, f"{row.limit:g}", row.caution or "yes"])
    return out.getvalue()


def draw_figure(file: Path) -> None:
    """How far ours lie from ns-3's: a point per judged value, a line of them per metric."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt
    from matplotlib.ticker import FuncFormatter

    rows = judged(ns3_rows())
    metrics = sorted({row.metric for row in rows}, key=lambda name: (_row_of(rows, name).limit, name), reverse=True)
    colors = {"TcpNewReno": "#1b6ca8", "TcpCubic": "#d1495b", "TcpVegas": "#3a8a4d"}
    least, most = 1e-5, 10.0
    figure, axis = plt.subplots(figsize=(10, 8))
    figure.subplots_adjust(left=0.27, right=0.98, top=0.95, bottom=0.07)
    for place, metric in enumerate(metrics):
        limit = _row_of(rows, metric).limit
        axis.plot([limit, limit], [place - 0.45, place + 0.45], color="0.3", linewidth=1.2)
        for offset, (scheme, color) in zip((0.22, 0.0, -0.22), colors.items(), strict=True):
            found = [abs(row.deviation) for row in rows if row.metric == metric and row.scheme == scheme]
            shown = [min(max(one, least), most) for one in found]
            axis.scatter(shown, [place + offset] * len(shown), s=9, color=color, alpha=0.6, linewidths=0)
            if found:
                middle = min(max(median(found), least), most)
                axis.plot([middle, middle], [place + offset - 0.11, place + offset + 0.11], color=color, linewidth=2.2)
    for scheme, color in colors.items():
        axis.scatter([], [], s=16, color=color, label=scheme.removeprefix("Tcp"))
    axis.scatter([], [], s=60, marker="|", color="0.5", linewidths=2.2, label="median")
    axis.plot([], [], color="0.3", linewidth=1.2, label="limit")
    axis.set(xscale="log", xlim=(least * 0.7, most * 1.4), ylim=(-0.7, len(metrics) - 0.3))
    axis.set_yticks(range(len(metrics)), [name.removeprefix("mean_") for name in metrics], fontsize=8)
    axis.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:g} %"))
    axis.grid(axis="x", color="0.92")
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)
    axis.set_xlabel("deviation of ccgym from ns-3.37 (0.001 % or less on the left edge, 1,000 % or more on the right)")
    figure.legend(loc="upper center", ncols=5, fontsize=9, frameon=False)
    file.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(file, dpi=120, metadata={"Software": None})
    plt.close(figure)


def _row_of(rows: Sequence[Row], metric: str) -> Row:
    return next(row for row in rows if row.metric == metric)


TABLES: Final[dict[str, Callable[[], str]]] = {
    "summary": summary,
    "published-85": lambda: published(85),
    "published-21": lambda: published(21),
    "deviations": deviations,
    "runs": runs,
    "draws": draws,
}
