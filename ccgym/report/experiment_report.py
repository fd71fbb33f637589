"""The report on experiments: the table of verdicts, figures, and a page with every number (``NAME.html``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from ccgym.evaluation.observer import Observer
from ccgym.evaluation.results_file import RESULTS_FILE
from ccgym.evaluation.spread import Spread
from ccgym.experiments.criteria import Criterion
from ccgym.experiments.metrics.base import Better, Metric
from ccgym.experiments.outcome import ConditionResult, Outcome, Test, Verdict
from ccgym.experiments.request import Written
from ccgym.experiments.views.results import ExperimentResults, merit
from ccgym.report.coordinates import coordinate_parts, value_text
from ccgym.report.differences_table import EXPLANATION, MOST_ON_SCREEN, differences_table, undecided_text
from ccgym.report.evaluation_table import IDENTICAL_MARK
from ccgym.report.page import Block, Details, Facts, Heading, Page, Picture, Text, experiments_page, flags, write_report
from ccgym.report.table import NOTHING, Cell, Column, Row, Table, Tone, counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ccgym.report.figures import ChosenFigure

MOST_ROWS_ON_SCREEN: Final = 60
"""Longer tables of conditions are only in files."""

WORDS: Final[dict[Verdict, str]] = {
    "pass": "pass", "fail": "FAIL", "undecided": "undecided", "incomplete": "incomplete", "none": "",
}  # fmt: skip
"""Verdicts in tables; fails are visible without color, too."""
TONES: Final[dict[Verdict, Tone]] = {
    "pass": "good", "fail": "bad", "undecided": "unknown", "incomplete": "unknown", "none": "",
}  # fmt: skip


def terminal(result: ExperimentResults) -> Sequence[RenderableType]:
    """Return the table of verdicts, and a line on what was run."""
    judged = not all(test.spec.compare and not test.spec.criteria for test in result.tests)
    lines: list[RenderableType] = ["", verdict_table(result), ""] if judged else [""]
    for test in result.tests:
        passes = f"Passes: {test.brief}." if test.brief else ""
        if words := " ".join(filter(None, (test.spec.question, passes))):
            lines.append(f"{test.title}: {words}")
    for test in result.tests:
        if test.spec.compare:
            lines += [*_compared(result, test), ""]
        elif not test.spec.criteria and 1 < len(test.conditions) <= MOST_ROWS_ON_SCREEN // len(result.styles):
            lines += [compared_table(result, test), ""]
    return [*lines, *trained(result), *result.notes, result.extent, ""]


def _compared(result: ExperimentResults, test: Test) -> Sequence[RenderableType]:
    """Return the terminal's view of an experiment that compares: every condition, and which scheme is better."""
    table, found = compared_table(result, test), result.differences(test)
    between = pairs_table(result, test)
    shown: list[RenderableType] = [
        table if len(table.rows) <= MOST_ROWS_ON_SCREEN else f"{len(table.rows)} rows are in {result.name}.md",
        *table.notes,
    ]
    if not found:  # one scheme, or no repetition that has every condition
        return shown
    shown += ["", between if len(between.rows) <= MOST_ON_SCREEN else undecided_text(found)]
    return [*shown, f"over all conditions; {RESULTS_FILE} has the differences in each condition"]


def compared_table(results: ExperimentResults, test: Test) -> Table:
    """Return a row per condition and scheme, with means and deviations over the runs; the best mean is bold."""
    at_names = coordinate_columns(test, align="left")
    columns = [
        *at_names,
        Column("scheme", "scheme", align="left"),
        *(Column(one.key, one.label, one.unit, partial(_deviation, one)) for one in test.metrics),
        Column("runs", "runs"),
    ]
    rows, notes = [], []
    for place, condition in enumerate(test.conditions):
        found = {style.key: outcome.conditions[place] for style, outcome in results.of_test(test)}
        at = {f"at {name}": value for name, value in condition.at.items()}
        rows += _compared_rows(results, test, at, found)
    if any(own.identical for _, outcome in results.of_test(test) for own in outcome.conditions):
        notes.append(f"{IDENTICAL_MARK} identical packets in all runs: nothing is random there, so one run is enough")
    if test.links_differ and len(results.styles) > 1:
        means = {one.key: results.overall(test, one) for one in test.metrics}
        found = {
            style.key: ConditionResult(
                key="",
                at={},
                inside=None,
                metrics={key: own[style.key] for key, own in means.items() if style.key in own},
                identical=all(one.identical for one in outcome.conditions),
            )
            for style, outcome in results.of_test(test)
        }
        at = {one.name: "" if place else "all" for place, one in enumerate(at_names)}
        rows += _compared_rows(results, test, at, found)
        notes.append("all: means over all conditions; mean ranks of metrics that depend on the links' rates and delays")
    return Table(columns, rows, notes=notes, kind="stack")


def _compared_rows(
    results: ExperimentResults, test: Test, at: Mapping[str, Any], found: Mapping[str, ConditionResult]
) -> list[Row]:
    """Return the rows of a condition, one per scheme; no key means all conditions together."""
    whole = not any(own.key for own in found.values())
    ranked = {one.key for one in test.metrics if whole and test.ranks(one)}
    best = {
        one.key: best_schemes(
            "lower" if one.key in ranked else one.better,
            {key: own.metrics[one.key].mean for key, own in found.items() if one.key in own.metrics},
        )
        for one in test.metrics
    }
    rows: list[Row] = []
    for style in results.styles:
        own = found[style.key]
        cells = {
            key: Cell(f"rank {spread.mean:.2f}" if key in ranked else spread, "best" if style.key in best[key] else "")
            for key, spread in own.told.items()
        }
        runs = f"{max((spread.count for spread in own.metrics.values()), default=0)}"
        runs += f" {IDENTICAL_MARK}" if own.identical else ""
        first = {name: "" if rows else value for name, value in at.items()}
        rows.append(Row({**first, "scheme": style.label, **cells, "runs": runs}, first=not rows))
    return rows


def best_schemes(better: Better, means: Mapping[str, float]) -> set[str]:
    """Return the keys of the schemes with the best mean; empty if all means are equal, or if no side is better."""
    merits = {key: merit(better, mean) for key, mean in means.items()}
    most = max(merits.values(), default=0.0)
    return {key for key, one in merits.items() if one == most} if len({*merits.values()}) > 1 else set()


def pairs_table(results: ExperimentResults, test: Test) -> Table:
    """Return the differences between each two schemes, over all conditions."""
    labels = {style.key: style.label for style in results.styles}
    quantities = [
        Column(f"{one.key}_rank", f"rank in\n{one.label}") if test.ranks(one) else Column(one.key, one.label, one.unit)
        for one in test.metrics
        if one.better in ("higher", "lower")
    ]
    return differences_table(results.differences(test), labels, quantities)


def write(result: ExperimentResults, directory: Path, progress: Observer, *, figures: bool) -> Sequence[Written]:
    """Write the tables as Markdown; with ``figures``, also the figures and the page."""
    return write_report(page(result), directory, result.name, progress, figures=figures)


def overall_file(results: ExperimentResults, figure: str) -> str:
    """Return the file name of a figure of all experiments together, without suffix: ``stress_tests_overview``."""
    return f"{results.source.name}_{figure}"


def figures_of_test(results: ExperimentResults, test: Test) -> dict[str, ChosenFigure]:
    """Return the figures of a test by file name: ``<prefix>_<test>``; further figures add the figure's name and, if
    this name is taken, a number."""
    from ccgym.report.figures import chosen_figure

    chosen = [chosen_figure(choice, f"figures of {test.name}") for choice in test.figures]
    stem = "_".join(dict.fromkeys([results.source.name, test.name]))
    alone = stem == results.source.name  # Then its first figure adds its own name, too.
    found: dict[str, ChosenFigure] = {}
    for place, one in enumerate(chosen):
        name = f"{stem}_{one.figure.name}" if place or alone else stem
        found[f"{name}_{place + 1}" if name in found else name] = one
    return found


def quantity(results: ExperimentResults, test: Test) -> str:
    """Return the metrics of a test in the table of verdicts."""
    return next((outcome.quantity for _, outcome in results.of_test(test) if outcome.quantity), NOTHING)


def verdict_table(results: ExperimentResults) -> Table:
    """Return a row per scheme and a column per test. Each cell shows the mean that decided."""
    tests = [
        Column(test.name, test.title, quantity(results, test), max_width=18) for test in results.tests
    ]  # fmt: skip
    rows = [
        Row(
            {
                "scheme": style.label,
                "passed": results.passed_text(style.key),
                **{test.name: _verdict(results.outcome(test, style.key), "\n") for test in results.tests},
            }
        )
        for style in results.styles
    ]
    passed = [Column("passed", "passed")] if any(test.spec.criteria for test in results.tests) else []
    return Table([Column("scheme", "scheme", align="left"), *tests, *passed], rows, kind="stack")


def _verdict(outcome: Outcome, between: str = " ") -> Cell:
    return Cell(f"{outcome.headline or NOTHING}{between}{WORDS[outcome.verdict]}", TONES[outcome.verdict])


def criteria_table(results: ExperimentResults, test: Test) -> Table:
    """Return the criteria of a test with their verdicts, scheme by scheme."""
    rows = []
    for style, outcome in results.of_test(test):
        for place, one in enumerate(outcome.criteria):
            metric = test.by_key(one.metric)
            values = {
                "scheme": style.label if place == 0 else "",
                "criterion": criterion_text(metric, one),
                "found": metric.show(one.value),
                "interval": interval_text(metric, one),
                "passes": threshold_text(metric, one),
                "verdict": Cell(WORDS[one.verdict], TONES[one.verdict]),
            }
            rows.append(Row(values, first=place == 0))
    left = ("scheme", "criterion")
    names = ["scheme", "criterion", "found", "interval", "passes", "verdict"]
    if not results.source.intervals:
        names.remove("interval")
    return Table([Column(name, name, align="left" if name in left else "right") for name in names], rows)


def coordinate_columns(test: Test, align: Literal["left", "right"] = "right") -> list[Column]:
    """Return a column per coordinate. Names begin with ``at``, since a metric may have the name of a coordinate."""
    names = dict.fromkeys(name for one in test.conditions for name in one.at)
    return [Column(f"at {name}", *coordinate_parts(name), value_text, align=align) for name in names]


def criterion_text(metric: Metric, criterion: Criterion) -> str:
    """Return metric and condition: ``utilization, rate 10 Mbit/s``."""
    return f"{metric.label}, {criterion.group}" if criterion.group else metric.label


def interval_text(metric: Metric, criterion: Criterion) -> str:
    """Return the confidence interval: ``0.79 to 0.83``; empty if there is no interval."""
    if criterion.low is None or criterion.high is None:
        return ""
    return f"{metric.show(criterion.low).removesuffix(f' {metric.unit}')} to {metric.show(criterion.high)}"


def threshold_text(metric: Metric, criterion: Criterion) -> str:
    """Return the threshold: ``≥ 0.80``, ``0.30 to 0.70``, ``≤ 1.00 %``."""
    low, high = criterion.min, criterion.max
    if low is not None and high is not None:
        return f"{metric.show(low)} to {metric.show(high)}"
    signs = (">", "<") if criterion.strict else ("≥", "≤")
    if low is not None:
        return f"{signs[0]} {metric.show(low)}"
    return f"{signs[1]} {metric.show(high)}" if high is not None else ""


def conditions_table(test: Test, outcome: Outcome) -> Table:
    """Return a row per condition of a test, with the means of its metrics for one scheme."""
    columns = [
        *coordinate_columns(test),
        Column("inside", "training range"),
        *(Column(one.key, one.label, format=partial(range_text, one)) for one in test.metrics),
        Column("runs", "runs"),
    ]
    inside = {None: None, True: "inside", False: "outside"}
    rows = []
    for one in outcome.conditions:
        runs = next((spread.count for spread in one.metrics.values()), 0)
        at = {f"at {name}": value for name, value in one.at.items()}
        rows.append(Row({**at, "inside": inside[one.inside], **one.told, "runs": runs}))
    return Table(columns, rows)


def _deviation(metric: Metric, spread: Spread) -> str:
    """Return the mean of a metric, with its standard deviation over several runs, without a unit."""
    values = [spread.mean] if spread.std is None else [spread.mean, spread.std]
    return " ± ".join(metric.show(value).removesuffix(f" {metric.unit}") for value in values)


def range_text(metric: Metric, spread: Spread) -> str:
    """Return the mean of a metric, with the range from min to max over several runs."""
    span = f" ({metric.show(spread.low)} to {metric.show(spread.high)})" if spread.count > 1 else ""
    return f"{metric.show(spread.mean)}{span}"


def trained(results: ExperimentResults) -> list[str]:
    """Return lines that name the training paths of the learned schemes."""
    return [
        f"{style.label} was trained on {results.trained_on[style.key]}"
        for style in results.styles
        if style.key in results.trained_on
    ]


def page(results: ExperimentResults) -> Page:
    """Return the report."""
    from ccgym.report.figures import figures_of

    title = results.source.title
    return experiments_page(
        results,
        f"{title[0].upper()}{title[1:]}",
        f"{counted(len(results.styles), 'scheme')}, {counted(len(results.tests), 'test')}, {results.extent}",
        [
            *(
                Picture(f"{overall_file(results, one.name)}.svg", one.title, partial(one.draw, results))
                for one in figures_of("experiment")
            ),
            verdict_table(results),
            Text(
                "Each cell shows the mean that decided; with several criteria, the criterion with the worst result. "
                "All schemes run on the same paths with the same seeds.",
                "muted",
            ),
            *remarks(results),
            *(
                block
                for test in results.tests
                for block in (Heading(test.title, test.name), *test_blocks(results, test))
            ),
        ],
    )


def remarks(results: ExperimentResults) -> list[Block]:
    """Return remarks on the numbers: trainings, runs that failed, notes."""
    said = [f"{line}." for line in trained(results)]
    return [*(Text(one, "muted") for one in (*said, *results.notes)), *flags(results.failures)]


def test_blocks(results: ExperimentResults, test: Test) -> list[Block]:
    """Return the blocks of a test on a page: question, figures, criteria and conditions."""
    blocks: list[Block] = [
        Text(test.spec.question),
        Facts(
            [
                ("Setting", test.spec.setting),
                ("Passes", test.spec.threshold or test.brief),
                ("Source", test.spec.source),
            ]
        ),
        *(
            Picture(f"{name}.svg", f"{test.title}: {one.figure.title}", partial(one.draw, results, test))
            for name, one in figures_of_test(results, test).items()
        ),
        criteria_table(results, test),
    ]
    compared = compared_table(results, test) if len(results.styles) > 1 or test.spec.compare else None
    if compared is not None and not test.spec.compare:
        blocks.append(Details("All schemes side by side", "the best in bold", [compared], markdown=True))
    elif compared is not None:
        pairs = pairs_table(results, test)
        explained = "Over all conditions. Runs with the same number have the same seed, and are compared in pairs."
        blocks.append(compared)
        blocks += [pairs, Text(f"{explained} {EXPLANATION}", "muted")] if pairs.rows else []
    for style, outcome in results.of_test(test):
        extent = f"{counted(len(outcome.conditions), 'condition')}, {counted(len(outcome.runs), 'run')}"
        shown: list[Block] = [
            conditions_table(test, outcome),
            Text("Means over the runs of a condition, with min and max.", "muted"),
        ]
        blocks.append(Details(style.label, extent, shown))
    return blocks
