"""The report on the stress tests of the suite ``weaknesses``: tables, figures and ``weaknesses.html``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ccgym.evaluation.suites.protocol import SuiteProgress, Written
from ccgym.evaluation.weaknesses.base import Criterion, Measure, Weakness
from ccgym.evaluation.weaknesses.results import Outcome, Spread, Verdict, WeaknessResults
from ccgym.evaluation.weaknesses.suite import CSV_FILE, RESULTS_FILE
from ccgym.files import atomic_write
from ccgym.report.coordinates import coordinate_parts, value_text
from ccgym.report.table import NOTHING, Cell, Column, Row, Table, Tone

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ccgym.report.figures import ChosenFigure

HTML_FILE: Final = "weaknesses.html"
MARKDOWN_FILE: Final = "weaknesses.md"

WORDS: Final[dict[Verdict, str]] = {"pass": "pass", "fail": "FAIL", "incomplete": "incomplete"}
"""Verdicts in tables: fails stand out without color, too."""
TONES: Final[dict[Verdict, Tone]] = {"pass": "good", "fail": "bad", "incomplete": "unknown"}
"""Tones of their cells."""


class WeaknessReport:
    """Shows the results; a :class:`~ccgym.evaluation.suites.protocol.SuiteReport`."""

    def terminal(self, result: WeaknessResults) -> Sequence[RenderableType]:
        """The table of verdicts, and what was run."""
        lines: list[RenderableType] = ["", verdict_table(result).terminal(), ""]
        lines += [f"{test.title}: {test.question} Passes: {test.brief}." for test in result.tests]
        return [*lines, *_trained(result), result.extent, ""]

    def write(
        self, result: WeaknessResults, directory: Path, progress: SuiteProgress, *, figures: bool
    ) -> Sequence[Written]:
        """Write the table as Markdown; with ``figures`` the figures and the page."""
        atomic_write(directory / MARKDOWN_FILE, markdown(result))
        files = [
            Written("table", directory / MARKDOWN_FILE),
            Written("results", directory / RESULTS_FILE),
            Written("", directory / CSV_FILE),
        ]
        if not figures:
            return files
        from ccgym.report.figures import figures_of
        from ccgym.report.page import write_page
        from ccgym.report.style import write_figure

        whole = figures_of("experiment")
        chosen = {test.name: figures_of_test(test) for test in result.tests}
        progress.begin("figures", len(whole) + sum(map(len, chosen.values())) + 1)
        for one in whole:
            write_figure(one.draw, directory / one.name, result)
            progress.advance("figures", 1, one.name)
        for test in result.tests:
            for name, figure in chosen[test.name].items():
                write_figure(figure.draw, directory / name, result, test)
                progress.advance("figures", 1, test.title)
        write_page(directory / HTML_FILE, "weaknesses", page_values(result, directory))
        progress.advance("figures", 1, "page")
        return [
            Written("report", directory / HTML_FILE),
            *(Written("figure", directory / f"{one.name}.svg") for one in whole),
            *files,
        ]


REPORT: Final = WeaknessReport()
"""The report of the suite ``weaknesses``."""


def figures_of_test(test: Weakness) -> dict[str, ChosenFigure]:
    """The figures of a test by the names of their files: ``weakness_<test>``, further ones with the figure's name."""
    from ccgym.report.figures import chosen_figure

    chosen = [chosen_figure(choice, f"figures of {test.name}") for choice in test.figures]
    names = [f"weakness_{test.name}{f'_{one.figure.name}' if place else ''}" for place, one in enumerate(chosen)]
    return dict(zip(names, chosen, strict=True))


def quantity(results: WeaknessResults, test: Weakness) -> str:
    """The measures of a test in the table of verdicts."""
    return next((outcome.quantity for _, outcome in results.of_test(test) if outcome.quantity), NOTHING)


def verdict_table(results: WeaknessResults) -> Table:
    """Schemes down, tests across. Each cell shows the mean that decided."""
    tests = [
        Column(test.name, test.title, quantity(results, test), max_width=18) for test in results.tests
    ]  # fmt: skip
    rows = [
        Row(
            {
                "scheme": style.label,
                "passed": f"{results.passed(style.key)} of {len(tests)}",
                **{test.name: _verdict(results.outcome(test, style.key), "\n") for test in results.tests},
            }
        )
        for style in results.styles
    ]
    return Table([Column("scheme", "scheme", align="left"), *tests, Column("passed", "passed")], rows, kind="stack")


def _verdict(outcome: Outcome, between: str = " ") -> Cell:
    return Cell(f"{outcome.headline or NOTHING}{between}{WORDS[outcome.verdict]}", TONES[outcome.verdict])


def markdown(results: WeaknessResults) -> str:
    """Tests down, schemes across, with what was run below."""
    columns = [Column(name, name, align="left") for name in ("test", "numbers", "passes")]
    columns += [Column(style.key, style.label) for style in results.styles]
    rows = [
        Row(
            {
                "test": test.title,
                "numbers": quantity(results, test),
                "passes": test.brief,
                **{style.key: _verdict(outcome) for style, outcome in results.of_test(test)},
            }
        )
        for test in results.tests
    ]
    passed = {style.key: f"{results.passed(style.key)} of {len(results.tests)}" for style in results.styles}
    rows.append(Row({"test": "passed", "numbers": "", "passes": "", **passed}))
    extent = f"{results.extent[0].upper()}{results.extent[1:]}, seed {results.parameters['seed']}."
    return f"{Table(columns, rows).markdown()}\n{extent}\n"


def criteria_table(results: WeaknessResults, test: Weakness) -> Table:
    """What had to hold in a test, scheme by scheme."""
    rows = []
    for style, outcome in results.of_test(test):
        for place, one in enumerate(outcome.criteria):
            measure = test.by_key(one.measure)
            verdict: Verdict = "incomplete" if one.passed is None else "pass" if one.passed else "fail"
            values = {
                "scheme": style.label if place == 0 else "",
                "criterion": f"{measure.label}, {one.group}" if one.group else measure.label,
                "found": measure.show(one.value),
                "passes": threshold_text(measure, one),
                "verdict": Cell(WORDS[verdict], TONES[verdict]),
            }
            rows.append(Row(values, first=place == 0))
    left = ("scheme", "criterion")
    names = ("scheme", "criterion", "found", "passes", "verdict")
    return Table([Column(name, name, align="left" if name in left else "right") for name in names], rows)


def threshold_text(measure: Measure, criterion: Criterion) -> str:
    """``≥ 0.80``, ``0.30 to 0.70``, ``≤ 1.00 %``."""
    low, high = criterion.low, criterion.high
    if low is not None and high is not None:
        return f"{measure.show(low)} to {measure.show(high)}"
    signs = (">", "<") if criterion.strict else ("≥", "≤")
    if low is not None:
        return f"{signs[0]} {measure.show(low)}"
    return f"{signs[1]} {measure.show(high)}" if high is not None else ""


def conditions_table(test: Weakness, outcome: Outcome) -> Table:
    """Every condition of a test with the means of its measures, for one scheme."""
    names = list(dict.fromkeys(name for one in outcome.conditions for name in one.at))
    columns = [
        *(Column(name, *coordinate_parts(name), value_text) for name in names),
        Column("inside", "training range"),
        *(Column(one.key, one.label, format=_range(one)) for one in test.measures),
        Column("runs", "runs"),
    ]
    inside = {None: None, True: "inside", False: "outside"}
    rows = []
    for one in outcome.conditions:
        runs = next((spread.count for spread in one.measures.values()), 0)
        rows.append(Row({**one.at, "inside": inside[one.inside], **one.measures, "runs": runs}))
    return Table(columns, rows)


def _range(measure: Measure) -> Callable[[Spread], str]:
    """Formats the mean of a measure, with the range from min to max over several runs."""

    def text(spread: Spread) -> str:
        span = f" ({measure.show(spread.low)} to {measure.show(spread.high)})" if spread.count > 1 else ""
        return f"{measure.show(spread.mean)}{span}"

    return text


def _trained(results: WeaknessResults) -> list[str]:
    """On what the learned schemes were trained."""
    return [
        f"{style.label} was trained on {results.trained_on[style.key]}"
        for style in results.styles
        if style.key in results.trained_on
    ]


def page_values(results: WeaknessResults, directory: Path) -> dict[str, Any]:
    """What the template ``weaknesses`` needs.

    Args:
        results: What was measured.
        directory: Where its figures are; the page says of missing ones that they are.
    """
    from ccgym.report.figures import figures_of
    from ccgym.report.page import Picture

    return {
        "results": results,
        "provenance": results.provenance,
        "sections": [(test.name, test.title) for test in results.tests],
        "figures": [Picture.of(directory / f"{one.name}.svg", one.title) for one in figures_of("experiment")],
        "verdicts": verdict_table(results),
        "trained": _trained(results),
        "tests": [
            {
                "test": test,
                "figures": [
                    Picture.of(directory / f"{name}.svg", f"{test.title}: {one.figure.title}")
                    for name, one in figures_of_test(test).items()
                ],
                "criteria": criteria_table(results, test),
                "schemes": [
                    (style, outcome, conditions_table(test, outcome)) for style, outcome in results.of_test(test)
                ],
            }
            for test in results.tests
        ],
    }
