"""The report on a scorecard: rankings, a table per path, figures and ``scorecard.html``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ccgym.evaluation.backends import PLACES
from ccgym.evaluation.bootstrap import Interval
from ccgym.evaluation.engine import Observer
from ccgym.experiments.request import Written
from ccgym.experiments.scorecard import (
    JSON_FILE,
    PATHS_DIRECTORY,
    RANKING_FILE,
    RESULTS_FILE,
    CardPath,
    Group,
    PathResult,
    Scorecard,
)
from ccgym.files import atomic_write
from ccgym.report.evaluation_report import write_tables
from ccgym.report.evaluation_table import LIMITED_MARK, LIMITED_NOTE
from ccgym.report.table import Cell, Column, Row, Table, Tone, counted, number

if TYPE_CHECKING:
    from rich.console import RenderableType

HTML_FILE: Final = "scorecard.html"
MARKDOWN_FILE: Final = "scorecard.md"
MAX_TRAININGS: Final = 2
"""Trainings whose groups have columns in the terminal's table; more of them are in the report."""

EXPLANATION_LINES: Final = (
    "score = log₂(throughput / capacity) − log₂(p95 delay / propagation delay), mean over paths and runs;",
    "0 is the limit, −1 half the power; interval by the bootstrap over paths and runs",
)
EXPLANATION: Final = " ".join(EXPLANATION_LINES)

score_text: Final = number(2)


def interval_text(interval: Interval) -> str:
    """``[−0.45, −0.21]``."""
    return f"[{score_text(interval.low)}, {score_text(interval.high)}]"


_RANKING: Final = (
    Column("rank", ""),
    Column("scheme", "scheme", align="left"),
    Column("score", "score", format=score_text, better="max"),
    Column("interval", "95 %\ninterval", format=interval_text),
    Column("first", "first", format=lambda value: f"{100 * value:.0f} %"),
    Column("wins", "wins", better="max"),
    Column("pareto_optimal", "Pareto-optimal", optional=True),
    Column("utilization", "throughput /\ncapacity", format=number(3), better="max"),
    Column("delay_ratio", "delay /\nbase", format=number(2), better="min"),
    Column("loss", "loss", "%", number(2, 100), better="min"),
)

_PATH: Final = (
    Column("scheme", "scheme", align="left"),
    Column("score", "score", format=score_text, better="max"),
    Column("throughput_mbps", "throughput", "Mbit/s", number(2), better="max"),
    Column("utilization", "/ capacity", format=number(3), better="max"),
    Column("delay_p95_ms", "p95 delay", "ms", number(1), better="min"),
    Column("delay_ratio", "/ base", format=number(2), better="min"),
    Column("loss", "loss", "%", number(2, 100), better="min"),
    Column("trained", "training"),
)


def ranking_table(card: Scorecard, group: Group) -> Table:
    """The ranking of a group of paths."""
    paths = len(card.ranked_paths(group))
    rows = []
    for place in card.rankings[group.name]:
        values: dict[str, Any] = {
            "rank": "" if place.rank is None else place.rank,
            "scheme": place.label,
            "score": place.score.mean,
            "interval": place.score,
            **{name: getattr(place, name) for name in ("utilization", "delay_ratio", "loss")},
        }
        if not place.reference:
            values |= {"first": place.first, "wins": place.wins, "pareto_optimal": f"{place.pareto_optimal} of {paths}"}
        rows.append(Row(values, "reference" if place.reference else ""))
    return Table(_RANKING, rows)


def groups_table(card: Scorecard) -> Table:
    """The mean score in every group of paths."""
    groups = shown_groups(card)
    means = {(group.name, place.scheme): place.score.mean for group in groups for place in card.rankings[group.name]}
    columns = [Column(group.name, *_group_heading(group), score_text, better="max") for group in groups]
    rows = [
        Row(
            {
                "rank": "" if place.rank is None else place.rank,
                "scheme": place.label,
                **{group.name: means.get((group.name, place.scheme)) for group in groups},
            },
            "reference" if place.reference else "",
        )
        for place in card.rankings[groups[0].name]
    ]
    return Table([*_RANKING[:2], *columns], rows)


def shown_groups(card: Scorecard) -> list[Group]:
    """The groups that have columns in the terminal: shared ones, and those of a few trainings."""
    shared = [group for group in card.groups if not group.learners]
    special = [group for group in card.groups if group.learners]
    trainings = list(dict.fromkeys(group.learners for group in special))[:MAX_TRAININGS]
    return shared + [group for group in special if group.learners in trainings]


def _group_heading(group: Group) -> tuple[str, str]:
    """Name of a group with its policies, and the number of its paths."""
    paths = f"{len(group.paths)}"
    if not group.learners:
        return group.name, paths
    more = f" +{len(group.learners) - 1}" if len(group.learners) > 1 else ""
    return f"{'trained' if group.trained else 'held out'}\n{group.learners[0]}{more}", paths


def scores_table(card: Scorecard) -> Table:
    """Paths down, schemes across; the best in bold, ``t`` where a policy was trained on the path."""
    rows = []
    for path in card.paths:
        path_results = {one.key: card.path_results[path.name, one.key] for one in card.schemes}
        cells = {
            key: Cell((result.score, bool(result.trained)), "best" if result.best else "")
            for key, result in path_results.items()
            if result.score is not None
        }
        rows.append(Row({"path": path.name, **cells}))
    columns = [Column(one.key, one.style.label, format=_score_and_training) for one in card.schemes]
    return Table([Column("path", "path", align="left"), *columns], rows)


def _score_and_training(value: tuple[float, bool]) -> str:
    score, trained = value
    return score_text(score) + (" t" if trained else "")


def path_table(card: Scorecard, path: CardPath) -> Table:
    """The schemes on a path from best to worst."""
    by_key = {one.key: one for one in card.schemes}
    path_results = [card.path_results[path.name, key] for key in by_key]
    path_results.sort(key=lambda result: 1e9 if result.score is None else -result.score)
    trained = {None: "", True: "trained here", False: "held out"}
    rows = []
    for result in path_results:
        label = by_key[result.scheme].style.label
        values: dict[str, Any] = {
            "scheme": f"{label} {LIMITED_MARK}" if result.limited else label,
            "trained": Cell(trained[result.trained], "muted"),
            **{column.name: getattr(result, column.name) for column in _PATH[1:-1]},
        }
        rows.append(Row(values, "reference" if by_key[result.scheme].reference else _tone(result)))
    return Table(_PATH, rows)


def _tone(result: PathResult) -> Tone:
    if result.best:
        return "best"
    return "" if result.pareto_optimal else "muted"


def terminal(result: Scorecard) -> Sequence[RenderableType]:
    """The ranking, and what belongs below it."""
    if not any(result.rankings.values()):
        return ["no scheme has a number on any path\n"]
    lines: list[RenderableType] = ["", ranking_table(result, result.groups[0]), *EXPLANATION_LINES, ""]
    lines.append(groups_table(result))
    if any(group.learners for group in shown_groups(result)):
        lines.append("trained, held out: paths that these policies' training could draw, and the others")
    return [*lines, *footnotes(result), ""]


def write(result: Scorecard, directory: Path, progress: Observer, *, figures: bool) -> Sequence[Written]:
    """Write the tables, and with ``figures`` the figures and the page."""
    for name, results in result.results.items():
        write_tables(results, directory / PATHS_DIRECTORY / name)
    atomic_write(directory / MARKDOWN_FILE, markdown(result))
    written = [
        Written("results", directory / JSON_FILE),
        Written("table", directory / MARKDOWN_FILE),
        Written("", directory / RESULTS_FILE),
        Written("", directory / RANKING_FILE),
        Written("each path", directory / PATHS_DIRECTORY),
    ]
    if not figures or not any(result.rankings.values()):
        return written
    return [*_draw(result, directory, progress), *written]


def _draw(card: Scorecard, directory: Path, progress: Observer) -> list[Written]:
    from ccgym.report.figures import figures_of
    from ccgym.report.page import write_page
    from ccgym.report.style import write_figure

    drawing = figures_of("scorecard")
    progress.begin("drawing", len(drawing) + 1)
    for one in drawing:
        write_figure(one.draw, directory / one.name, card)
        progress.advance("drawing", 1, one.name)
    write_page(directory / HTML_FILE, "scorecard", page_values(card, directory))
    progress.advance("drawing", 1, HTML_FILE)
    return [
        Written("report", directory / HTML_FILE),
        *(Written("" if place else "figures", directory / f"{one.name}.svg") for place, one in enumerate(drawing)),
    ]


def footnotes(card: Scorecard) -> list[str]:
    """What the numbers leave out, or are partly made of."""
    labels = {one.key: one.style.label for one in card.schemes}
    notes = [f"{labels[key]} is unavailable: {why}" for key, why in card.unavailable.items()]
    lost = [result for result in card.path_results.values() if result.counted < result.runs]
    if lost:
        runs = sum(result.runs - result.counted for result in lost)
        where = ", ".join(f"{labels[result.scheme]} on {result.path}" for result in lost[:4])
        notes.append(
            f"{counted(runs, 'run')} in which next to nothing arrived, or not for long, have the lowest "
            f"score: {where}{', …' if len(lost) > 4 else ''}"
        )
    if any(result.limited for result in card.path_results.values()):
        notes.append(LIMITED_NOTE)
    none = [one.style.label for one in card.schemes if one.trained_on is not None and not any(one.trained_on.values())]
    if none:
        notes.append(f"trained on none of these paths: {', '.join(none)}")
    silent = [one.style.label for one in card.schemes if one.learned and one.trained_on is None]
    if silent:
        notes.append(f"training paths unknown: {', '.join(silent)}")
    missing = {path for group in card.groups for path in group.paths if path not in card.ranked_paths(group)}
    if missing:
        notes.append(f"left out of the rankings, because runs are missing: {', '.join(sorted(missing))}")
    return notes


def markdown(card: Scorecard) -> str:
    """The rankings and the scores of all paths, GitHub-flavored."""
    parts = [f"# {card.provenance['path']}\n"]
    for group in card.groups:
        if card.rankings[group.name]:
            title = f"## {group.title} ({len(card.ranked_paths(group))} paths)\n"
            parts += [title, ranking_table(card, group).markdown()]
    parts += [f"{EXPLANATION}.\n", "## Score by path\n", scores_table(card).markdown()]
    parts += ["Bold: the best of the path; t: the policy was trained on it.\n"]
    parts += [f"{note}  " for note in footnotes(card)]
    parameters = card.parameters
    parts.append(
        f"{parameters['runs']} runs of {parameters['runtime_s']:g} s per scheme and path, seed {parameters['seed']}, "
        f"backend {parameters['backend']}; `{card.provenance['command']}`"
    )
    return "\n".join(parts) + "\n"


def page_values(card: Scorecard, directory: Path) -> dict[str, Any]:
    """What the template ``scorecard`` needs.

    Args:
        card: What was measured.
        directory: Where its figures are; the page says of missing ones that they are.
    """
    from ccgym.report.figures import figures_of
    from ccgym.report.page import Picture

    return {
        "card": card,
        "parameters": card.parameters,
        "provenance": card.provenance,
        "place": PLACES[str(card.parameters["backend"])],
        "explanation": EXPLANATION,
        "sections": [("figures", "Figures"), ("rankings", "Rankings"), ("paths", "Each path")],
        "groups": [
            (group, len(card.ranked_paths(group)), ranking_table(card, group))
            for group in card.groups
            if card.rankings[group.name]
        ],
        "path_sections": [
            (title, [(path, path_table(card, path)) for path in card.paths if path.section == section])
            for section, title in card.sections.items()
            if any(path.section == section for path in card.paths)
        ],
        "notes": footnotes(card),
        "figures": [Picture.of(directory / f"{one.name}.svg", one.title) for one in figures_of("scorecard")],
    }
