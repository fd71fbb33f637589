"""The report on a league: rankings, winning rates next to published ones, ranks by weight, figures, ``NAME.html``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ccgym.evaluation.backends import PLACES
from ccgym.evaluation.engine import Observer
from ccgym.experiments.league import WEIGHTS, League, Section
from ccgym.experiments.request import Written
from ccgym.files import atomic_write
from ccgym.report.scorecard_report import interval_text, score_text
from ccgym.report.table import Column, Row, Table, counted, number

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ccgym.report.figures import RegisteredFigure

RATING: Final = (
    "rating = log₂(throughput / capacity) − log₂(mean round trip / base), where two flows meet −|log₂(throughput /",
    "fair share)|; 0 is all that a path allows, −1 half; interquartile mean over paths, interval by the bootstrap",
)

_percent: Final = number(1, 100)

_RANKING: Final = (
    Column("rank", ""),
    Column("scheme", "scheme", align="left"),
    Column("rating", "rating", format=score_text, better="max"),
    Column("interval", "95 %\ninterval", format=interval_text),
    Column("first", "first", format=lambda value: f"{100 * value:.0f} %"),
)
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
    """The ranking over all sections, with the rating in each."""
    ratings = {(name, p.scheme): p.score.mean for name, places in league.rankings.items() for p in places}
    name = next(iter(league.rankings))
    sections = [one for one in league.sections if one.name != name]
    columns = [Column(one.name, one.test.title, format=score_text, better="max", max_width=12) for one in sections]
    rows = [
        Row(
            {
                "rank": "" if place.rank is None else place.rank,
                "scheme": place.label,
                "rating": place.score.mean,
                "interval": place.score,
                "first": None if place.reference else place.first,
                **{one.name: ratings.get((one.name, place.scheme)) for one in sections},
            },
            "reference" if place.reference else "",
        )
        for place in league.rankings[name]
    ]
    return Table([*_RANKING, *columns], rows)


def section_table(league: League, section: Section) -> Table:
    """The ranking of a section, with winning rates, worst case, and what the rating is made of."""
    rates = [section.winning_rates(rounded=rounded) for rounded in (True, False)]
    rows = [
        Row(
            {
                "rank": "" if place.rank is None else place.rank,
                "scheme": place.label,
                "rating": place.score.mean,
                "interval": place.score,
                "first": None if place.reference else place.first,
                "winning_rate": rates[0].get(place.scheme),
                "winning_rate_exact": rates[1].get(place.scheme),
                **section.means[place.scheme],
            },
            "reference" if place.reference else "",
        )
        for place in league.rankings[section.name]
    ]
    return Table([*_RANKING, *_OF_SECTION, *(_POWER if section.games.rule == "power" else _FAIR)], rows)


def published_table(league: League, section: Section) -> Table:
    """Published winning rates next to ours, among those who took part as far as ccgym has them."""
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
    """The rank of each scheme for several weights of the throughput."""
    labels = {one.key: one.style.label for one in league.members}
    columns = [Column(f"{weight:g}", f"weight {weight:g}") for weight in WEIGHTS]
    rows = [
        Row({"scheme": labels[key], **{f"{weight:g}": rank for weight, rank in ranks.items()}})
        for key, ranks in sorted(league.weighted.items(), key=lambda item: item[1][1.0])
    ]
    return Table([Column("scheme", "scheme", align="left"), *columns], rows)


def _published_sections(league: League) -> list[Section]:
    return [one for one in league.sections if one.games.published is not None]


def terminal(result: League) -> Sequence[RenderableType]:
    """The ranking over all sections, and winning rates next to the published ones."""
    if not result.rankings or not any(result.rankings.values()):
        return ["no scheme has a number in any section\n", *result.notes]
    lines: list[RenderableType] = ["", overall_table(result), *RATING, ""]
    for section in _published_sections(result):
        published = section.games.published
        assert published is not None
        lines += [f"{section.test.title}: games won, as {published.source} has them and here", ""]
        lines += [published_table(result, section), ""]
    return [*lines, *footnotes(result), extent(result), ""]


def extent(league: League) -> str:
    """How much was run, in words."""
    games = sum(one.game_count for one in league.sections)
    paths = sum(len(one.places) for one in league.sections)
    quick = "; a quick look: fewer paths" if league.parameters["quick"] else ""
    return f"{counted(len(league.members), 'scheme')}, {paths} paths, {games:,} games each{quick}"


def footnotes(league: League) -> list[str]:
    """What the numbers leave out."""
    notes = list(league.notes)
    for section in league.sections:
        if section.missing:
            notes.append(f"{section.test.title}: {counted(section.missing, 'path')} left out, since runs are missing")
        absent = [one.style.label for one in league.members if one not in section.members]
        if absent:
            notes.append(f"{section.test.title}: no numbers of {', '.join(absent)}")
    return notes


def write(result: League, directory: Path, progress: Observer, *, figures: bool) -> Sequence[Written]:
    """Write the tables as Markdown; with ``figures`` the figures and the page."""
    table = directory / f"{result.name}.md"
    atomic_write(table, markdown(result))
    files = [
        Written("table", table),
        Written("results", directory / f"{result.name}.json"),
        Written("", directory / f"{result.name}.csv"),
        Written("games", directory / f"{result.name}_games.csv"),
    ]
    if not figures or not any(result.rankings.values()):
        return files
    from ccgym.report.page import write_page
    from ccgym.report.style import write_figure

    drawing = _figures(result)
    progress.begin("figures", len(drawing) + 1)
    for one in drawing:
        write_figure(one.draw, directory / one.name, result)
        progress.advance("figures", 1, one.name)
    page = directory / f"{result.name}.html"
    write_page(page, "league", page_values(result, directory))
    progress.advance("figures", 1, "page")
    drawn = [Written("" if place else "figures", directory / f"{one.name}.svg") for place, one in enumerate(drawing)]
    return [Written("report", page), *drawn, *files]


def _figures(league: League) -> list[RegisteredFigure]:
    """The figures of the page. Weights mean nothing where only fair shares count."""
    from ccgym.report.figures import figures_of

    return [one for one in figures_of("league") if league.weighted or one.name != "league_weights"]


def markdown(league: League) -> str:
    """All tables, GitHub-flavored."""
    parts = [f"# {league.source.title}\n"]
    if any(league.rankings.values()):
        parts += [overall_table(league).markdown(), f"{' '.join(RATING)}.\n"]
    for section in league.sections:
        parts += [f"## {section.test.title}\n", section_table(league, section).markdown()]
        if section.games.published is not None:
            parts += [f"Games won, next to {section.games.published.source}:\n"]
            parts += [published_table(league, section).markdown()]
    if league.weighted:
        parts += ["## Ranks by the weight of the throughput\n", weights_table(league).markdown()]
    parts += [f"{note}  " for note in footnotes(league)]
    parts.append(f"{extent(league)}, seed {league.parameters['seed']}; `{league.provenance['command']}`")
    return "\n".join(parts) + "\n"


def page_values(league: League, directory: Path) -> Mapping[str, Any]:
    """What the template ``league`` needs.

    Args:
        league: What was measured.
        directory: Where its figures are; the page says of missing ones that they are.
    """
    from ccgym.report.page import Picture

    return {
        "league": league,
        "provenance": league.provenance,
        "place": PLACES[league.provenance["backend"]],
        "extent": extent(league),
        "rating": " ".join(RATING),
        "sections": [
            ("figures", "Figures"),
            *((one.name, one.test.title) for one in league.sections),
            *([("weights", "Weights")] if league.weighted else []),
        ],
        "figures": [Picture.of(directory / f"{one.name}.svg", one.title) for one in _figures(league)],
        "overall": overall_table(league),
        "parts": [
            (
                one,
                section_table(league, one),
                published_table(league, one) if one.games.published is not None else None,
            )
            for one in league.sections
        ],
        "weights": weights_table(league),
        "notes": footnotes(league),
    }
