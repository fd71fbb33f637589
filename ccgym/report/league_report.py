"""The report on a league: rankings, winning rates next to published ones, ranks by weight, figures, ``NAME.html``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ccgym.evaluation.observer import Observer
from ccgym.experiments.request import Written
from ccgym.experiments.views.league import League
from ccgym.experiments.views.league_section import WEIGHTS, LeagueSection
from ccgym.report.page import Block, Facts, Heading, Page, Text, drawn, experiments_page, flags, warnings, write_report
from ccgym.report.ranking_table import ranked_row, ranking_columns, score_text
from ccgym.report.table import Column, Row, Table, counted, number

if TYPE_CHECKING:
    from rich.console import RenderableType

RATING: Final = (
    "rating = log₂(throughput / capacity) − log₂(mean round trip / base); with two flows −|log₂(throughput /",
    "fair share)|; 0 is the best that a path allows, −1 is half; interquartile mean over paths, bootstrap interval",
)

WINNING_EXPLAINED: Final = (
    "Winning rate: fraction of games in which a scheme is within 10 % of the best, with throughput in whole Mbit/s and "
    "delay in whole ms as in ccBench; exact: without rounding. Worst tenth: mean rating on the tenth of the paths with "
    "the lowest ratings of the scheme."
)
WEIGHTS_EXPLAINED: Final = (
    "Ranks of the interquartile mean of w · log₂(throughput / capacity) − log₂(round trip / base) over the sections "
    "with a single flow."
)

_percent: Final = number(1, 100)

_RANKING: Final = ranking_columns("rating")
_OF_SECTION: Final = (
    Column("winning_rate", "winning\nrate", "%", _percent, better="max"),
    Column("winning_rate_exact", "exact", "%", _percent, better="max"),
    Column("mean", "mean", format=score_text, better="max"),
    Column("worst", "worst\ntenth", format=score_text, better="max"),
)
_POWER: Final = (
    Column("share", "throughput /\ncapacity", format=number(3), better="max"),
    Column("delay_ratio", "round trip /\nbase", format=number(2), better="min"),
)
_FAIR: Final = (Column("share", "throughput /\nfair share", format=number(2)),)


def overall_table(league: League) -> Table:
    """Return the ranking over all sections, with the rating in each section."""
    ratings = {(name, p.scheme): p.score.mean for name, places in league.rankings.items() for p in places}
    name = next(iter(league.rankings))
    sections = [one for one in league.sections if one.name != name]
    columns = [Column(one.name, one.test.title, format=score_text, better="max", max_width=12) for one in sections]
    rows = [
        ranked_row(place, {one.name: ratings.get((one.name, place.scheme)) for one in sections})
        for place in league.rankings[name]
    ]
    return Table([*_RANKING, *columns], rows)


def section_table(league: League, section: LeagueSection) -> Table:
    """Return the ranking of a section, with winning rates, worst case, and the quantities in the rating."""
    rates = [section.winning_rates(rounded=rounded) for rounded in (True, False)]
    rows = [
        ranked_row(
            place,
            {
                "winning_rate": rates[0].get(place.scheme),
                "winning_rate_exact": rates[1].get(place.scheme),
                **section.means[place.scheme],
            },
        )
        for place in league.rankings[section.name]
    ]
    return Table([*_RANKING, *_OF_SECTION, *(_POWER if section.games.rule == "power" else _FAIR)], rows)


def published_table(league: League, section: LeagueSection) -> Table:
    """Return published winning rates next to ccgym's, among the published schemes that ccgym has."""
    columns = [
        Column("scheme", "scheme", align="left"),
        Column("published", "published", "%", _percent, group="published"),
        Column("as_published", "ours", "%", _percent, better="max"),
        Column("exact", "exact", "%", _percent, better="max"),
    ]
    rows = [
        Row(
            {
                "scheme": f"{row.label} for {row.instead}" if row.instead else row.label,
                "published": row.published,
                "as_published": row.as_published,
                "exact": row.exact,
            }
        )
        for row in league.published(section)
    ]
    return Table(columns, rows)


def weights_table(league: League) -> Table:
    """Return the rank of each scheme for several weights of the throughput."""
    labels = {one.key: one.style.label for one in league.members}
    columns = [Column(f"{weight:g}", f"weight {weight:g}") for weight in WEIGHTS]
    rows = [
        Row({"scheme": labels[key], **{f"{weight:g}": rank for weight, rank in ranks.items()}})
        for key, ranks in sorted(league.weighted.items(), key=lambda item: item[1][1.0])
    ]
    return Table([Column("scheme", "scheme", align="left"), *columns], rows)


def _published_sections(league: League) -> list[LeagueSection]:
    return [one for one in league.sections if one.games.published is not None]


def terminal(result: League) -> Sequence[RenderableType]:
    """Return the ranking over all sections, and winning rates next to the published winning rates."""
    if not result.rankings or not any(result.rankings.values()):
        return ["no scheme has a number in any section\n", *result.notes]
    lines: list[RenderableType] = ["", overall_table(result), *RATING, ""]
    for section in _published_sections(result):
        published = section.games.published
        assert published is not None
        lines += [f"{section.test.title}: games won according to {published.source}, and here", ""]
        lines += [published_table(result, section), ""]
    return [*lines, *footnotes(result), extent(result), ""]


def extent(league: League) -> str:
    """Return the number of schemes, paths and games as text."""
    games = sum(one.game_count for one in league.sections)
    paths = sum(len(one.places) for one in league.sections)
    quick = "; a quick look: fewer paths" if league.parameters["quick"] else ""
    return f"{counted(len(league.members), 'scheme')}, {paths} paths, {games:,} games each{quick}"


def footnotes(league: League) -> list[str]:
    """Return notes on missing runs and schemes."""
    notes = list(league.notes)
    for section in league.sections:
        if section.missing:
            notes.append(f"{section.test.title}: {counted(section.missing, 'path')} left out, since runs are missing")
        absent = [one.style.label for one in league.members if one not in section.members]
        if absent:
            notes.append(f"{section.test.title}: no numbers of {', '.join(absent)}")
    return notes


def write(result: League, directory: Path, progress: Observer, *, figures: bool) -> Sequence[Written]:
    """Write the tables as Markdown; with ``figures``, also the figures and the page."""
    return write_report(
        page(result), directory, result.name, progress, figures=figures and any(result.rankings.values())
    )


def page(league: League) -> Page:
    """Return the report."""
    from ccgym.report.figures import figures_of

    # Weights have no meaning if only fair shares count.
    figures = [one for one in figures_of("league") if league.weighted or one.name != "league_weights"]
    blocks: list[Block] = [
        *([overall_table(league)] if any(league.rankings.values()) else []),
        Text(
            f"{' '.join(RATING)}. Every section has the same weight. First: fraction of the resamples in which the "
            "scheme leads. Schemes in italics know the path: they have no rank, and are not in the games.",
            "muted",
        ),
        *warnings(footnotes(league)),
        *flags(league.failures),
        *drawn(figures, league),
    ]
    for section in league.sections:
        spec = section.test.spec
        places = counted(len(section.places), "path")
        blocks += [
            Heading(section.test.title, section.name),
            Text(spec.question),
            Facts(
                [
                    ("Setting", f"{spec.setting}; {places}, {counted(section.game_count, 'game')}"),
                    ("Source", spec.source),
                ]
            ),
            section_table(league, section),
            Text(WINNING_EXPLAINED, "muted"),
        ]
        if section.games.published is not None:
            blocks += [
                Heading(f"Next to {section.games.published.source}", level=3),
                published_table(league, section),
                Text("Games among these schemes only: a winning rate depends on the schemes that take part.", "muted"),
            ]
    if league.weighted:
        blocks += [Heading("Weights", "weights"), weights_table(league), Text(WEIGHTS_EXPLAINED, "muted")]
    return experiments_page(league, league.source.title, extent(league), blocks)
