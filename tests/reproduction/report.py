"""The tables and figures of docs/validation.md.

``python -m tests.reproduction.report`` prints the tables; ``--write`` puts them into the page, between the markers
``<!-- name -->`` and ``<!-- /name -->``, and draws the figures.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, median, pstdev
from typing import Final

from tests.reproduction import kernel_tcp, quic_stacks
from tests.reproduction.ccperf import (
    DRAWS,
    HEADLINE,
    OUTLIER,
    SCHEMES,
    Experiment,
    Row,
    loss_draws,
    ns3_experiments,
    ns3_rows,
    ns3_values,
    published_rows,
    simulated,
)

ROOT: Final = Path(__file__).parent.parent.parent
PAGE: Final = ROOT / "docs" / "validation.md"
IMAGES: Final = ROOT / "docs" / "img"

REASONS: Final = (
    (r"loss_resilience#7", "one random draw of ns-3 against a mean of ours; R1"),
    (r"rtt=60ms qlen=1280p Vegas", "ns-3 itself jumps between 77 and 130 Mbit/s here; R2"),
    (r"reno_fairness.*Cubic", "proportional rate reduction of ns-3; R3"),
    (r"synchronous.*Cubic", "proportional rate reduction of ns-3; R3"),
    (r"rtt_fairness.*(NewReno|Cubic)", "proportional rate reduction of ns-3; R3"),
    (r"rtt_fairness.*Vegas", "hangs on microseconds in ns-3, too; R2"),
)
"""Why rows of an experiment lie beyond 10 %; the page explains R1 to R3."""

LABELS: Final = {
    "mean_throughput_l4": "throughput (Mbit/s)",
    "mean_srtt_l4": "sRTT (ms)",
    "mean_cwnd_l4": "window (segments)",
}


def reason(row: Row) -> str:
    return next((text for pattern, text in REASONS if re.search(pattern, row.experiment.label)), "unexplained")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def number(value: float | None) -> str:
    return "–" if value is None else f"{value:.4g}"


def percent(error: float) -> str:
    return f"{100 * error:+.1f} %"


def medians() -> str:
    rows = ns3_rows()
    lines = []
    for metric, limit in HEADLINE.items():
        errors = [abs(row.error) for row in rows if row.metric == metric]
        beyond = sum(error > OUTLIER for error in errors)
        cells = [f"`{metric}`", f"{len(errors)}", f"{100 * median(errors):.2f} %", f"{100 * limit:g} %", f"{beyond}"]
        lines.append(cells)
    return table(["metric", "rows", "median error", "limit", "rows beyond 10 %"], lines)


def outliers() -> str:
    rows = [row for row in ns3_rows() if row.metric in HEADLINE and abs(row.error) > OUTLIER]
    head = ["run", "scope", "metric", "ns-3", "ours", "error", "reason"]
    return table(
        head,
        [
            [
                row.experiment.label,
                f"`{row.scope}`",
                f"`{row.metric}`",
                number(row.theirs),
                number(row.ours),
                percent(row.error),
                reason(row),
            ]
            for row in rows
        ],
    )


def _pair(experiment: Experiment, scope: str, metric: str, theirs: dict[tuple[str, str, str], float]) -> str:
    key = (experiment.label, scope, metric)
    return f"{number(theirs[key])} / {number(simulated(experiment)[(scope, metric)])}" if key in theirs else "–"


def runs(flows: int) -> str:
    theirs = {row.key: row.theirs for row in ns3_rows((flows,))}
    lines = []
    for experiment in ns3_experiments((flows,)):
        for place in range(flows):
            scope = f"flow_{place + 1}"
            metrics = (*HEADLINE, "total_retransmissions_l4")
            cells = [_pair(experiment, scope, metric, theirs) for metric in metrics]
            drops = _pair(experiment, "btl_forward", "total_qdisc_drops_l2", theirs)
            lines.append([experiment.label if place == 0 else "", scope.removeprefix("flow_"), *cells, drops])
    head = ["run (ns-3 / ours)", "flow", "throughput", "sRTT ms", "window", "retransmissions", "queue drops"]
    return table(head, lines)


def more_flows() -> str:
    lines = []
    for flows in (4, 8):
        rows = ns3_rows((flows,))
        for experiment in ns3_experiments((flows,)):
            mine = [row for row in rows if row.experiment == experiment]
            errors = [abs(row.error) for row in mine if row.metric == "mean_throughput_l4"]
            srtt = [abs(row.error) for row in mine if row.metric == "mean_srtt_l4"]
            total = sum(row.theirs for row in mine if row.metric == "mean_throughput_l4")
            ours = sum(row.ours or 0.0 for row in mine if row.metric == "mean_throughput_l4")
            cells = [f"{100 * median(errors):.1f} %", f"{100 * median(srtt):.1f} %"]
            names = [name.removeprefix("Tcp") for name in experiment.algorithms]
            short = f"{experiment.name} {', '.join(f'{names.count(one)} {one}' for one in dict.fromkeys(names))}"
            lines.append([short, f"{total:.2f} / {ours:.2f}", *cells])
    head = ["run", "total throughput, ns-3 / ours", "median error of a flow's throughput", "of its sRTT"]
    return table(head, lines)


def deviations() -> str:
    """Every value of ns-3's runs of these schemes, by metric and scheme: median and largest relative error."""
    rows = [row for row in ns3_rows((1, 2, 4, 8)) if row.ours is not None]
    names = sorted({row.metric for row in rows})
    lines = []
    for metric in names:
        cells = []
        for scheme in SCHEMES:
            errors = [abs(row.error) for row in rows if row.metric == metric and _scheme(row) == scheme]
            cells.append(f"{_share(median(errors))} / {_share(max(errors))} ({len(errors)})" if errors else "–")
        lines.append([f"`{metric}`", *cells])
    heads = [name.removeprefix("Tcp") for name in SCHEMES]
    note = f"{len(rows)} of {sum(1 for _ in ns3_values())} values: median / largest relative error (values)."
    return f"{note}\n\n{table(['metric', *heads], lines)}"


def _scheme(row: Row) -> str:
    """The flow's, of what is of one; else the first flow's, which is the tested one."""
    place = int(row.scope.removeprefix("flow_")) - 1 if row.scope.startswith("flow_") else 0
    return row.experiment.algorithms[place]


def _share(error: float) -> str:
    """Against a zero there is no relative error."""
    return "∞" if error == float("inf") else f"{100 * error:.2g} %" if error < 1 else f"{100 * error:.0f} %"


def published() -> str:
    rows = published_rows()
    names = dict.fromkeys((row.metric, row.scope.startswith("flow")) for row in rows)
    found = {(row.scope, row.metric): row for row in rows}
    lines = []
    for metric, per_flow in names:
        scopes = ["flow_1", "flow_2"] if per_flow else [row.scope for row in rows if row.metric == metric]
        for scope in scopes:
            row = found[(scope, metric)]
            comparable = row.ours is not None and row.theirs != 0
            lines.append(
                [
                    f"`{metric}`",
                    f"`{scope}`",
                    f"{row.theirs:g}",
                    number(row.ours),
                    percent(row.error) if comparable else "",
                ]
            )
    return table(["metric", "scope", "published", "ours", "error"], lines)


def draws() -> str:
    lines = []
    for algorithm in SCHEMES:
        theirs = loss_draws(algorithm)
        runs_of_ours = Experiment("loss_resilience#7", (algorithm,)).runs()
        ours = [run.ccperf().flows[0]["mean_throughput_l4"].value or 0.0 for run in runs_of_ours]
        for_both = [
            f"{fmean(one):.2f} ± {pstdev(one):.2f} ({min(one):.2f} to {max(one):.2f})" for one in (theirs, ours)
        ]
        lines.append([algorithm.removeprefix("Tcp"), *for_both])
    return table(["scheme", "30 draws of ns-3, Mbit/s", f"{DRAWS} of ours"], lines)


def kernel() -> str:
    lines = []
    for path in kernel_tcp.PATHS:
        for scheme in kernel_tcp.SEEDS:
            theirs = kernel_tcp.recorded(path, scheme)
            lines.append([path, f"{scheme}, kernel", f"{theirs.runs}", *_kernel_cells(theirs)])
            for mode in ("", "linux") if scheme == "cubic" else ("",):
                for ack_every in (1, 2):
                    seeds = 1 if path == "12mbps" else 0
                    ours = kernel_tcp.simulated(path, scheme, mode, ack_every, seeds)
                    words = [scheme, *([f"mode={mode}"] if mode else []), *(["ack_every 2"] if ack_every == 2 else [])]
                    lines.append(["", ", ".join(words), f"{ours.runs}", *_kernel_cells(ours)])
    head = [
        "path",
        "scheme",
        "runs",
        "Mbit/s",
        "p95 ms",
        "mean ms",
        "loss %",
        "drops",
        "retransmissions",
        "first drop s",
    ]
    return table(head, lines)


def _kernel_cells(one: kernel_tcp.Outcome) -> list[str]:
    mean = one.mean
    return [
        f"{mean['throughput_mbps']:.2f} ± {one.spread['throughput_mbps']:.2f}",
        f"{mean['p95_owd_ms']:.1f}",
        f"{mean['mean_owd_ms']:.1f}",
        f"{100 * mean['loss']:.2f}",
        f"{mean['queue_drops']:.0f}",
        f"{mean['retransmits']:.0f}",
        f"{mean['first_queue_drop_s']:.3f}",
    ]


def quinn() -> str:
    rows = []
    for path in (*quic_stacks.DROP_TAIL, quic_stacks.RANDOM_LOSS):
        for controller in ("reno", "cubic"):
            rows.append([f"`{path}`", f"{controller}, quinn", *_sawtooth_cells(quic_stacks.recorded(path, controller))])
            ours = [scheme for scheme, theirs in quic_stacks.CONTROLLER.items() if theirs == controller]
            rows.extend(["", scheme, *_sawtooth_cells(quic_stacks.simulated(path, scheme))] for scheme in ours)
    return table(["path", "scheme", "mean window", "Mbit/s", "period s", "kept at a cut"], rows)


def _sawtooth_cells(one: quic_stacks.Sawtooth) -> list[str]:
    return [f"{one.window:.1f}", f"{one.throughput_mbps:.2f}", f"{one.period_s:.2f}", f"{one.kept:.3f}"]


TABLES: Final[dict[str, Callable[[], str]]] = {
    "medians": medians,
    "outliers": outliers,
    "single": lambda: runs(1),
    "two": lambda: runs(2),
    "more": more_flows,
    "draws": draws,
    "published": published,
    "deviations": deviations,
    "kernel": kernel,
    "quinn": quinn,
}


def draw_figure() -> None:
    """Ours against ns-3's, one panel per metric."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "ccgym"
    from matplotlib import pyplot as plt
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    figure, axes = plt.subplots(1, 3, figsize=(11, 4.3))
    figure.subplots_adjust(left=0.06, right=0.99, top=0.92, bottom=0.24, wspace=0.22)
    colors = {"TcpNewReno": "#1b6ca8", "TcpCubic": "#d1495b", "TcpVegas": "#3a8a4d"}
    rows = ns3_rows()
    for axis, (metric, label) in zip(axes, LABELS.items()):
        shown = [row for row in rows if row.metric == metric]
        low, high = min(row.theirs for row in shown) * 0.8, max(row.theirs for row in shown) * 1.25
        axis.fill_between([low, high], [0.9 * low, 0.9 * high], [1.1 * low, 1.1 * high], color="0.9", label="±10 %")
        axis.plot([low, high], [low, high], color="0.5", linewidth=0.8)
        for algorithm, color in colors.items():
            for two, marker in ((False, "o"), (True, "^")):
                part = [
                    (row.theirs, row.ours)
                    for row in shown
                    if row.experiment.algorithms[int(row.scope[-1]) - 1] == algorithm
                    and (len(row.experiment.algorithms) == 2) == two
                ]
                if part:
                    name = f"{algorithm.removeprefix('Tcp')}, {'two flows' if two else 'alone'}"
                    face = "none" if two else color
                    axis.scatter(*zip(*part), s=26, marker=marker, facecolors=face, edgecolors=color, label=name)
        axis.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high), title=label)
        axis.set_xlabel("ns-3.37")
        for ruler in (axis.xaxis, axis.yaxis):
            ruler.set_major_locator(LogLocator(subs=(1, 2, 5)))
            ruler.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            ruler.set_minor_formatter(NullFormatter())
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].set_ylabel("ccgym")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="lower center", ncols=7, fontsize=8, frameon=False)
    IMAGES.mkdir(parents=True, exist_ok=True)
    figure.savefig(IMAGES / "validation_ccperf.png", dpi=140, metadata={"Software": None})
    plt.close(figure)


def filled(page: str) -> str:
    """The page with fresh tables."""
    for name, make in TABLES.items():
        before, rest = page.split(f"<!-- {name} -->")
        _, after = rest.split(f"<!-- /{name} -->")
        page = f"{before}<!-- {name} -->\n\n{make()}\n\n<!-- /{name} -->{after}"
    return page


def main(arguments: Sequence[str]) -> int:
    if "--write" in arguments:
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        draw_figure()
        return 0
    for name, make in TABLES.items():
        sys.stdout.write(f"## {name}\n\n{make()}\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
