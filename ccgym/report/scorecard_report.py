"""The report on a scorecard: rankings, a table per path, figures; ``scorecard.html``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ccgym.evaluation.backends import PLACES
from ccgym.evaluation.observer import Observer
from ccgym.experiments.request import Written
from ccgym.experiments.views.path_result import CardPath, PathResult
from ccgym.experiments.views.scorecard import PATHS_DIRECTORY, Group, Scorecard
from ccgym.report.evaluation_report import write_tables
from ccgym.report.evaluation_table import LIMITED_MARK, LIMITED_NOTE
from ccgym.report.page import Block, Details, Heading, Page, Text, drawn, flags, warnings, write_report
from ccgym.report.ranking_table import NAMES, ranked_row, ranking_columns, score_text
from ccgym.report.table import Cell, Column, Row, Table, Tone, counted, number

if TYPE_CHECKING:
    from rich.console import RenderableType

MAX_TRAININGS: Final = 2
"""Max trainings whose groups have columns in the terminal's table; all trainings are in the report."""

EXPLANATION_LINES: Final = (
    "score = log₂(throughput / capacity) − log₂(p95 delay / propagation delay), mean over paths and runs;",
    "0 is the limit, −1 is half the power; bootstrap interval over paths and runs",
)
EXPLANATION: Final = " ".join(EXPLANATION_LINES)
COLUMNS_EXPLAINED: Final = (
    "First: fraction of the resamples in which the scheme leads. Wins: paths on which it has the best score. "
    "Pareto-optimal: paths on which no other scheme is better in throughput, delay or loss without being worse in one. "
    "Schemes in italics know the path: they have no rank, and no scheme is compared with them. Throughput and loss are "
    "means, delay is a geometric mean; loss is not part of the score."
)
PATHS_EXPLAINED: Final = (
    "From best to worst. Bold: the best score of the schemes that do not know the path. Gray: another scheme is "
    "better. The folder `paths` next to this page has more about each path, its runs and Pantheon's files."
)

_RANKING: Final = (
    *ranking_columns("score"),
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
    """Return the ranking of a group of paths."""
    paths = len(card.ranked_paths(group))
    rows = []
    for place in card.rankings[group.name]:
        values: dict[str, Any] = {name: getattr(place, name) for name in ("utilization", "delay_ratio", "loss")}
        if not place.reference:
            values |= {"wins": place.wins, "pareto_optimal": f"{place.pareto_optimal} of {paths}"}
        rows.append(ranked_row(place, values))
    return Table(_RANKING, rows)


def groups_table(card: Scorecard) -> Table:
    """Return the mean scores in every group of paths."""
    groups = shown_groups(card)
    means = {(group.name, place.scheme): place.score.mean for group in groups for place in card.rankings[group.name]}
    columns = [Column(group.name, *_group_heading(group), score_text, better="max") for group in groups]
    rows = [
        ranked_row(place, {group.name: means.get((group.name, place.scheme)) for group in groups})
        for place in card.rankings[groups[0].name]
    ]
    return Table([*NAMES, *columns], rows)


def shown_groups(card: Scorecard) -> list[Group]:
    """Return the groups that have columns in the terminal: shared groups, and the groups of a few trainings."""
    shared = [group for group in card.groups if not group.learners]
    special = [group for group in card.groups if group.learners]
    trainings = list(dict.fromkeys(group.learners for group in special))[:MAX_TRAININGS]
    return shared + [group for group in special if group.learners in trainings]


def _group_heading(group: Group) -> tuple[str, str]:
    """Return the name of a group with its policies, and the number of its paths."""
    paths = f"{len(group.paths)}"
    if not group.learners:
        return group.name, paths
    more = f" +{len(group.learners) - 1}" if len(group.learners) > 1 else ""
    return f"{'trained' if group.trained else 'held out'}\n{group.learners[0]}{more}", paths


def scores_table(card: Scorecard) -> Table:
    """Return a row per path, a column per scheme; the best is bold, ``t`` means that a policy trained on the path."""
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
    """Return the schemes on a path from best to worst."""
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
    """Return the ranking with its notes."""
    if not any(result.rankings.values()):
        return ["no scheme has a number on any path\n"]
    lines: list[RenderableType] = ["", ranking_table(result, result.groups[0]), *EXPLANATION_LINES, ""]
    lines.append(groups_table(result))
    if any(group.learners for group in shown_groups(result)):
        lines.append("trained: paths that the training of these policies could draw; held out: all other paths")
    return [*lines, *footnotes(result), ""]


def write(result: Scorecard, directory: Path, progress: Observer, *, figures: bool) -> Sequence[Written]:
    """Write the tables; with ``figures``, also the figures and the page."""
    for name, results in result.results.items():
        write_tables(results, directory / PATHS_DIRECTORY / name)
    return write_report(
        page(result), directory, "scorecard", progress, figures=figures and any(result.rankings.values()),
        files=[Written("each path", directory / PATHS_DIRECTORY)],
    )  # fmt: skip


def footnotes(card: Scorecard) -> list[str]:
    """Return notes on missing, failed and limited runs, and on trainings."""
    labels = {one.key: one.style.label for one in card.schemes}
    notes = [f"{labels[key]} is unavailable: {why}" for key, why in card.unavailable.items()]
    lost = [result for result in card.path_results.values() if result.counted < result.runs]
    if lost:
        runs = sum(result.runs - result.counted for result in lost)
        where = ", ".join(f"{labels[result.scheme]} on {result.path}" for result in lost[:4])
        notes.append(
            f"{counted(runs, 'run')} in which next to nothing arrived, or only briefly, have the lowest "
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


def page(card: Scorecard) -> Page:
    """Return the report."""
    from ccgym.report.figures import figures_of

    parameters = card.parameters
    groups = [group for group in card.groups if card.rankings[group.name]]
    first: list[Block] = [ranking_table(card, group) for group in groups[:1]]
    others: list[Block] = []
    for group in groups[1:]:
        title = f"{group.title} ({counted(len(card.ranked_paths(group)), 'path')})"
        names = Text(", ".join(group.paths), "muted")
        others += [Heading(title, level=3), ranking_table(card, group), Details("Its paths", "", [names])]
    each: list[Block] = []
    for section, title in card.sections.items():
        paths = [path for path in card.paths if path.section == section]
        if paths:
            each.append(Heading(title, level=3))
        each += [Details(path.name, f"{path.facts} · {path.title}", [path_table(card, path)]) for path in paths]
    place = PLACES[str(parameters["backend"])]
    policies = ", ".join(f"{key} {digest[:16]}" for key, digest in parameters["policies"].items())
    return Page(
        title=f"Scorecard: {parameters['experiment']}",
        lead=f"{counted(len(card.schemes), 'congestion-control scheme')} on {counted(len(card.paths), 'path')}, "
        f"{counted(parameters['runs'], 'run')} each of {parameters['runtime_s']:g} s with one flow. "
        f"{place[0].upper()}{place[1:]}, {card.provenance['started']}.",
        blocks=[
            *first,
            Text(f"{EXPLANATION}. {COLUMNS_EXPLAINED}", "muted"),
            *warnings(footnotes(card)),
            *flags(card.failures),
            *drawn(figures_of("scorecard"), card),
            *([Heading("Rankings", "rankings"), *others] if others else []),
            Heading("Score by path", "scores"),
            scores_table(card),
            Text("Bold: the best score on the path; t: the policy was trained on the path.", "muted"),
            Heading("Each path", "paths"),
            Text(PATHS_EXPLAINED, "muted"),
            *each,
        ],
        provenance=card.provenance,
        made=[
            ("Root seed", str(parameters["seed"])),
            ("Policies", policies),
            ("Took", f"{card.provenance['run_s']:.1f} s of runs"),
        ],
    )
