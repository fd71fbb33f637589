"""The report on a scorecard: the ranking for the terminal, Markdown, two figures in three formats, and an HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from rich.table import Table

from ccgym.evaluation.results import atomic_write
from ccgym.evaluation.suites.bootstrap import Interval
from ccgym.evaluation.suites.calibrated import JSON_FILE, MARKS_FILE, PATHS_DIRECTORY, RANKING_FILE
from ccgym.evaluation.suites.protocol import SuiteProgress, Written
from ccgym.evaluation.suites.scorecard import Group, Mark, Place, Scorecard
from ccgym.report.build import write_tables
from ccgym.report.table import LIMITED_MARK
from ccgym.report.terminal import NOTHING, FittingTable, plain_table

if TYPE_CHECKING:
    from rich.console import RenderableType

HTML_FILE: Final = "scorecard.html"
MARKDOWN_FILE: Final = "scorecard.md"
HEAT_MAP_NAME: Final = "scorecard_heat_map"
RANKING_NAME: Final = "scorecard_ranking"
FIGURE_SUFFIXES: Final = (".svg", ".pdf", ".png")
SHARED_COLUMNS: Final = 2
"""Trainings whose groups have columns in the terminal's table; more of them are in the report."""

EXPLANATION_LINES: Final = (
    "score = log₂(throughput / capacity) − log₂(p95 delay / propagation delay), mean over paths and runs;",
    "0 is the limit, −1 half the power; interval by the bootstrap over paths and runs",
)
EXPLANATION: Final = " ".join(EXPLANATION_LINES)
"""What a score is."""


def score_text(value: float | None) -> str:
    """Two digits after the point, and a real minus."""
    if value is None:
        return NOTHING
    text = f"{value:.2f}".replace("-", "−")
    return "0.00" if text == "−0.00" else text


def interval_text(interval: Interval) -> str:
    """``[−0.45, −0.21]``."""
    return f"[{score_text(interval.low)}, {score_text(interval.high)}]"


def number(value: float | None, digits: int = 2, scale: float = 1.0) -> str:
    """A number, or a dash."""
    return NOTHING if value is None else f"{scale * value:.{digits}f}"


RANKING_HEADINGS: Final = (
    "", "scheme", "score", "95 % interval", "first", "wins", "undominated", "throughput / capacity", "delay / base",
    "loss (%)",
)  # fmt: skip
"""Headings of a ranking."""


def ranking_texts(place: Place, paths: int) -> list[str]:
    """A line of a ranking, under :data:`RANKING_HEADINGS`."""
    rivals = [NOTHING] * 3
    if not place.reference:
        rivals = [f"{100 * place.first:.0f} %", f"{place.wins}", f"{place.undominated} of {paths}"]
    return [
        "" if place.rank is None else f"{place.rank}",
        place.label,
        score_text(place.score.mean),
        interval_text(place.score),
        *rivals,
        number(place.share, 3),
        number(place.delay_ratio),
        number(place.loss, 2, 100),
    ]


def terminal_ranking(card: Scorecard) -> FittingTable:
    """All paths together."""
    group = card.groups[0]
    table = _table(
        ["", "scheme", "score, 95 %\ninterval", "first", "wins", "tput /\ncapacity", "delay /\nbase", "loss\n(%)"]
    )
    paths = len(card.ranked_paths(group))
    for place in card.rankings[group.name]:
        rank, label, mean, interval, first, wins, _, *rest = ranking_texts(place, paths)
        style = "italic" if place.reference else ""
        table.add_row(rank, label, f"{mean} {interval:>14}", first, wins, *rest, style=style)
    return FittingTable(table)


def terminal_groups(card: Scorecard) -> FittingTable:
    """The mean score in every group of paths."""
    groups = shown_groups(card)
    table = _table(["", "scheme", *(_head(group) for group in groups)])
    means = {(group.name, place.scheme): place.score.mean for group in groups for place in card.rankings[group.name]}
    for place in card.rankings[groups[0].name]:
        rank = "" if place.rank is None else f"{place.rank}"
        texts = [score_text(means.get((group.name, place.scheme))) for group in groups]
        table.add_row(rank, place.label, *texts, style="italic" if place.reference else "")
    return FittingTable(table)


def _table(heads: Sequence[str]) -> Table:
    table = plain_table()
    for place, head in enumerate(heads):
        table.add_column(head, justify="left" if place == 1 else "right", no_wrap=True)
    return table


def shown_groups(card: Scorecard) -> list[Group]:
    """The groups that have columns in the terminal: those of everybody, and those of a few trainings."""
    shared = [group for group in card.groups if not group.learners]
    special = [group for group in card.groups if group.learners]
    trainings = list(dict.fromkeys(group.learners for group in special))[:SHARED_COLUMNS]
    return shared + [group for group in special if group.learners in trainings]


def _head(group: Group) -> str:
    """What, of whom, and how many paths, a line each."""
    if not group.learners:
        return f"{group.name}\n({len(group.paths)})"
    more = f" +{len(group.learners) - 1}" if len(group.learners) > 1 else ""
    return f"{'trained' if group.trained else 'held out'}\n{group.learners[0]}{more}\n({len(group.paths)})"


@dataclass(frozen=True)
class ScorecardReport:
    """Shows a scorecard; a :class:`~ccgym.evaluation.suites.protocol.SuiteReport`."""

    def terminal(self, result: Scorecard) -> Sequence[RenderableType]:
        """The ranking, and what belongs below it."""
        if not any(result.rankings.values()):
            return ["no scheme has a number on any path\n"]
        lines: list[RenderableType] = ["", terminal_ranking(result), *EXPLANATION_LINES, ""]
        lines.append(terminal_groups(result))
        if any(group.learners for group in shown_groups(result)):
            lines.append("trained, held out: paths that these policies' training could draw, and the others")
        return [*lines, *footnotes(result), ""]

    def write(self, result: Scorecard, directory: Path, progress: SuiteProgress, *, figures: bool) -> Sequence[Written]:
        """Write the tables, and with ``figures`` the figures and the page."""
        for name, results in result.results.items():
            write_tables(results, directory / PATHS_DIRECTORY / name)
        atomic_write(directory / MARKDOWN_FILE, markdown(result))
        written = [
            Written("results", directory / JSON_FILE),
            Written("table", directory / MARKDOWN_FILE),
            Written("", directory / MARKS_FILE),
            Written("", directory / RANKING_FILE),
            Written("each path", directory / PATHS_DIRECTORY),
        ]
        if not figures or not any(result.rankings.values()):
            return written
        return [*self._draw(result, directory, progress), *written]

    def _draw(self, card: Scorecard, directory: Path, progress: SuiteProgress) -> list[Written]:
        from ccgym.report.heat_map_figure import heat_map_figure
        from ccgym.report.ranking_figure import ranking_figure
        from ccgym.report.scorecard_page import html_page
        from ccgym.report.style import house_style, save

        drawing = {RANKING_NAME: ranking_figure, HEAT_MAP_NAME: heat_map_figure}
        progress.begin("drawing", len(drawing) * len(FIGURE_SUFFIXES) + 1)
        with house_style():
            for name, draw in drawing.items():
                figure = draw(card)
                for suffix in FIGURE_SUFFIXES:
                    partial = directory / f".{name}.partial{suffix}"
                    save(figure, partial)
                    partial.replace(directory / f"{name}{suffix}")
                    progress.advance("drawing", 1, name)
        atomic_write(directory / HTML_FILE, html_page(card, directory))
        progress.advance("drawing", 1, HTML_FILE)
        return [
            Written("report", directory / HTML_FILE),
            Written("figures", directory / f"{RANKING_NAME}.svg"),
            Written("", directory / f"{HEAT_MAP_NAME}.svg"),
        ]


def footnotes(card: Scorecard) -> list[str]:
    """What the numbers leave out, or are partly made of."""
    labels = {one.key: one.style.label for one in card.schemes}
    notes = [f"{labels[key]} is unavailable: {why}" for key, why in card.unavailable.items()]
    lost = [mark for mark in card.marks.values() if mark.counted < mark.runs]
    if lost:
        runs = sum(mark.runs - mark.counted for mark in lost)
        where = ", ".join(f"{labels[mark.scheme]} on {mark.path}" for mark in lost[:4])
        notes.append(
            f"{runs} run{'s' if runs != 1 else ''} in which next to nothing arrived, or not for long, scored the least "
            f"there is: {where}{', …' if len(lost) > 4 else ''}"
        )
    if any(mark.limited for mark in card.marks.values()):
        notes.append(
            f"{LIMITED_MARK} emulator-limited: the machine could not hold the path's schedule in some of these runs"
        )
    none = [one.style.label for one in card.schemes if one.trained_on is not None and not any(one.trained_on.values())]
    if none:
        notes.append(f"trained on none of these paths: {', '.join(none)}")
    silent = [one.style.label for one in card.schemes if one.learned and one.trained_on is None]
    if silent:
        notes.append(f"on what they were trained is not known: {', '.join(silent)}")
    missing = {path for group in card.groups for path in group.paths if path not in card.ranked_paths(group)}
    if missing:
        notes.append(f"left out of the rankings, for want of runs: {', '.join(sorted(missing))}")
    return notes


def trained_text(mark: Mark) -> str:
    """``train``, ``held out``, or nothing of schemes that were not learned."""
    return "" if mark.trained is None else ("train" if mark.trained else "held out")


def markdown(card: Scorecard) -> str:
    """The ranking over all paths and the scores of all paths, GitHub-flavoured."""
    parts = [f"# {card.provenance['path']}\n"]
    for group in card.groups:
        places = card.rankings[group.name]
        if places:
            paths = len(card.ranked_paths(group))
            parts += [f"## {group.title} ({paths} paths)\n", _markdown_ranking(places, paths)]
    parts += [f"{EXPLANATION}.\n", "## Score by path\n", _markdown_scores(card)]
    parts += [f"{note}  " for note in footnotes(card)]
    parameters = card.parameters
    parts.append(
        f"{parameters['runs']} runs of {parameters['runtime_s']:g} s per scheme and path, seed {parameters['seed']}, "
        f"backend {parameters['backend']}; `{card.provenance['command']}`"
    )
    return "\n".join(parts) + "\n"


def _markdown_ranking(places: Sequence[Place], paths: int) -> str:
    lines = ["| " + " | ".join(RANKING_HEADINGS) + " |", "|---:|---" + "|---:" * (len(RANKING_HEADINGS) - 2) + "|"]
    lines += ["| " + " | ".join(ranking_texts(place, paths)) + " |" for place in places]
    return "\n".join(lines) + "\n"


def _markdown_scores(card: Scorecard) -> str:
    """Paths down, schemes across; the best in bold, `t` where a policy was trained on the path."""
    heads = ["path", *(one.style.label for one in card.schemes)]
    lines = ["| " + " | ".join(heads) + " |", "|---" + "|---:" * (len(heads) - 1) + "|"]
    for path in card.paths:
        texts = []
        for one in card.schemes:
            mark = card.marks[path.name, one.key]
            text = score_text(mark.score)
            text = f"**{text}**" if mark.best else text
            texts.append(f"{text} t" if mark.trained else text)
        lines.append("| " + " | ".join([path.name, *texts]) + " |")
    lines += ["", "Bold: the best of the path; t: the policy was trained on it."]
    return "\n".join(lines) + "\n"


REPORT: Final = ScorecardReport()
