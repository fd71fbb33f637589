"""The tables of the weakness tests: for the terminal, as Markdown, and the rows of the page."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from rich.text import Text

from ccgym.evaluation.weaknesses.base import Criterion, Measure, Weakness
from ccgym.evaluation.weaknesses.results import ConditionResult, Outcome, Verdict, WeaknessResults
from ccgym.report.terminal import NOTHING, FittingTable, plain_table

WORDS: Final[dict[Verdict, str]] = {"pass": "pass", "fail": "FAIL", "incomplete": "incomplete"}
"""Verdicts in tables: fails stand out without color, too."""
COLORS: Final[dict[Verdict, str]] = {"pass": "green", "fail": "red", "incomplete": "yellow"}


def terminal_table(results: WeaknessResults) -> FittingTable:
    """Schemes × tests for a rich console."""
    table = plain_table()
    table.add_column("scheme", no_wrap=True)
    for test in results.tests:
        table.add_column(f"{test.title}\n({quantity(results, test)})", justify="right", max_width=18)
    for style in results.styles:
        outcomes = [results.outcome(test, style.key) for test in results.tests]
        cells = [
            Text.assemble(outcome.headline or NOTHING, "\n", (WORDS[outcome.verdict], COLORS[outcome.verdict]))
            for outcome in outcomes
        ]
        passed = Text(f"{results.passed(style.key)} of {len(results.tests)}", style="dim")
        table.add_row(Text.assemble(style.label, "\n", passed), *cells)
    return FittingTable(table)


def quantity(results: WeaknessResults, test: Weakness) -> str:
    """What the numbers of a test in the overview are."""
    return next((outcome.quantity for _, outcome in results.of_test(test) if outcome.quantity), NOTHING)


def markdown_table(results: WeaknessResults) -> str:
    """GitHub-flavoured Markdown, with what was run below it."""
    heads = ["test", "numbers", "passes", *(style.label for style in results.styles)]
    lines = ["| " + " | ".join(heads) + " |", "|---|---|---|" + "---:|" * len(results.styles)]
    for test in results.tests:
        cells = [_cell(outcome) for _, outcome in results.of_test(test)]
        lines.append("| " + " | ".join([test.title, quantity(results, test), test.brief, *cells]) + " |")
    passed = [f"{results.passed(style.key)} of {len(results.tests)}" for style in results.styles]
    lines.append("| " + " | ".join(["passed", "", "", *passed]) + " |")
    return (
        "\n".join([*lines, "", f"{results.extent[0].upper()}{results.extent[1:]}, seed {results.parameters['seed']}."])
        + "\n"
    )


def _cell(outcome: Outcome) -> str:
    text = f"{outcome.headline or NOTHING} {WORDS[outcome.verdict]}"
    return f"**{text}**" if outcome.verdict == "fail" else text


@dataclass(frozen=True)
class CriterionRow:
    """A criterion as text."""

    what: str
    """Measure and group."""
    found: str
    """The value."""
    mark: str
    """What it had to be."""
    verdict: Verdict
    """Whether it was."""


def criterion_row(test: Weakness, criterion: Criterion) -> CriterionRow:
    """The words of a criterion."""
    measure = test.by_key(criterion.measure)
    verdict: Verdict = {True: "pass", False: "fail", None: "incomplete"}[criterion.passed]  # type: ignore[assignment]
    what = f"{measure.label}, {criterion.group}" if criterion.group else measure.label
    return CriterionRow(what, measure.show(criterion.value), mark_text(measure, criterion), verdict)


def mark_text(measure: Measure, criterion: Criterion) -> str:
    """``≥ 0.80``, ``0.30 to 0.70``, ``≤ 1.00 %``."""
    low, high = criterion.low, criterion.high
    if low is not None and high is not None:
        return f"{measure.show(low)} to {measure.show(high)}"
    signs = (">", "<") if criterion.strict else ("≥", "≤")
    if low is not None:
        return f"{signs[0]} {measure.show(low)}"
    return f"{signs[1]} {measure.show(high)}" if high is not None else ""


def condition_heads(test: Weakness, outcome: Outcome) -> list[str]:
    """Headings of the table of conditions."""
    places = list(dict.fromkeys(name for one in outcome.conditions for name in one.at))
    return [
        *(_PLACES.get(name, name) for name in places),
        "training range",
        *(one.label for one in test.measures),
        "runs",
    ]


def condition_cells(test: Weakness, outcome: Outcome, row: ConditionResult) -> list[str]:
    """Texts of a condition, under :func:`condition_heads`."""
    places = list(dict.fromkeys(name for one in outcome.conditions for name in one.at))
    cells = [_place_text(row.at.get(name, "")) for name in places]
    cells.append({None: NOTHING, True: "inside", False: "outside"}[row.inside])
    for measure in test.measures:
        spread = row.measures.get(measure.key)
        if spread is None:
            cells.append(NOTHING)
        else:
            span = f" ({measure.show(spread.low)} to {measure.show(spread.high)})" if spread.count > 1 else ""
            cells.append(f"{measure.show(spread.mean)}{span}")
    counts = [spread.count for spread in row.measures.values()]
    return [*cells, str(counts[0]) if counts else "0"]


_PLACES: Final = {
    "rate_mbps": "rate (Mbit/s)",
    "one_way_ms": "one way (ms)",
    "buffer_bdp": "buffer (BDP)",
    "cubic": "Cubic comes",
}


def _place_text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"
