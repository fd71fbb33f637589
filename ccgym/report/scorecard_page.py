"""``scorecard.html``: rankings, figures and a table per path, in one file that needs nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ccgym.evaluation.backends import PLACES
from ccgym.evaluation.suites.paths import SECTIONS
from ccgym.evaluation.suites.scorecard import CardPath, Mark, Scorecard
from ccgym.report.html_report import PICTURE, STYLE, Picture
from ccgym.report.scorecard_report import (
    EXPLANATION,
    HEAT_MAP_NAME,
    RANKING_HEADINGS,
    RANKING_NAME,
    footnotes,
    number,
    ranking_texts,
    score_text,
    trained_text,
)
from ccgym.report.table import LIMITED_MARK

MARK_HEADINGS: Final = (
    "scheme", "score", "throughput (Mbit/s)", "/ capacity", "p95 delay (ms)", "/ base", "loss (%)", "trained here",
)  # fmt: skip
"""Headings of a path's table."""


@dataclass(frozen=True)
class _Line:
    """A scheme on a path, as the template needs it."""

    cells: list[str]
    kind: str


def html_page(card: Scorecard, directory: Path) -> str:
    """The page, with the figures inside.

    Args:
        card: What was measured.
        directory: Where its figures are.
    """
    from jinja2 import Environment, StrictUndefined

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(PICTURE + _TEMPLATE).render(
        card=card,
        parameters=card.parameters,
        provenance=card.provenance,
        style=STYLE,
        place=PLACES[str(card.parameters["backend"])],
        explanation=EXPLANATION,
        ranking_headings=RANKING_HEADINGS,
        mark_headings=MARK_HEADINGS,
        groups=[
            (group, paths := len(card.ranked_paths(group)), [(one, ranking_texts(one, paths)) for one in places])
            for group in card.groups
            if (places := card.rankings[group.name])
        ],
        sections=[
            (title, [(path, _lines(card, path)) for path in card.paths if path.section == section])
            for section, title in SECTIONS.items()
            if any(path.section == section for path in card.paths)
        ],
        footnotes=footnotes(card),
        ranking=Picture.of(directory / f"{RANKING_NAME}.svg", "Mean scores with intervals, by group of paths"),
        heat_map=Picture.of(directory / f"{HEAT_MAP_NAME}.svg", "Heat map of scores: paths down, schemes across"),
    )


def _lines(card: Scorecard, path: CardPath) -> list[_Line]:
    """The schemes of a path from best to worst."""
    marks = [card.marks[path.name, one.key] for one in card.schemes]
    references = {one.key for one in card.schemes if one.reference}
    labels = {one.key: one.style.label for one in card.schemes}
    marks.sort(key=lambda mark: -(mark.score if mark.score is not None else -1e9))
    return [
        _Line(_cells(mark, labels[mark.scheme]), "reference" if mark.scheme in references else _kind(mark))
        for mark in marks
    ]


def _kind(mark: Mark) -> str:
    if mark.best:
        return "best"
    return "" if mark.undominated else "dominated"


def _cells(mark: Mark, label: str) -> list[str]:
    return [
        f"{label} {LIMITED_MARK}" if mark.limited else label,
        score_text(mark.score),
        number(mark.throughput_mbps),
        number(mark.share, 3),
        number(mark.delay_p95_ms, 1),
        number(mark.delay_ratio),
        number(mark.loss, 2, 100),
        trained_text(mark),
    ]


_TEMPLATE: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Scorecard: {{ parameters.suite }}</title>
<style>{{ style | safe }}
body { max-width: 1240px; }
table.ranking td:nth-child(1), table.ranking th:nth-child(1) { text-align: right; color: var(--muted); width: 1.6rem; }
table.ranking td:nth-child(2), table.ranking th:nth-child(2) { text-align: left; }
tr.reference td { color: var(--muted); font-style: italic; }
tr.best td:nth-child(1), tr.best td:nth-child(2) { font-weight: 700; }
tr.dominated td:nth-child(1) { color: var(--muted); }
td:last-child { color: var(--muted); }
table.ranking tr:not(.reference) td:last-child { color: inherit; }
nav { columns: 3; margin: .6rem 0 1.2rem; font-size: .92rem; } nav a { display: block; color: var(--accent); }
details h4 { margin: .2rem 0; font-weight: 400; color: var(--muted); }
</style>
</head>
<body>
<h1>Scorecard: {{ parameters.suite }}</h1>
<p class="lead">{{ card.schemes | length }} congestion-control schemes on {{ card.paths | length }} paths,
{{ parameters.runs }} run{{ "s" if parameters.runs != 1 }} each of {{ "%g" % parameters.runtime_s }} s with one flow.
{{ place[0] | upper }}{{ place[1:] }}, {{ provenance.started }}.</p>

{% for group, paths, places in groups %}
{% if loop.first %}
<div class="scroll"><table class="ranking">
<thead><tr>{% for name in ranking_headings %}<th>{{ name }}</th>{% endfor %}</tr></thead>
<tbody>
{% for one, texts in places %}
<tr{% if one.reference %} class="reference"{% endif %}>{% for text in texts %}<td>{{ text }}</td>{% endfor %}</tr>
{% endfor %}
</tbody></table></div>
{% endif %}
{% endfor %}
<p class="muted">{{ explanation }}. First: share of the resamples in which the scheme leads. Wins: paths on which it has
the best score. Undominated: no other scheme is better in throughput, delay or loss there and worse in none. Schemes in
italics know the path; they have no rank, and nobody is measured against them. Throughput and loss are means, delay is a
geometric mean; loss is no part of the score.</p>
{% for line in footnotes %}
<p class="warning-text">{{ line }}</p>
{% endfor %}
{% for failure in card.failures %}
<div class="flag warning"><b>Failed:</b> {{ failure }}</div>
{% endfor %}

<h2>Heat map</h2>
{{ picture(heat_map) }}

<h2>Rankings</h2>
{{ picture(ranking) }}
{% for group, paths, places in groups %}
{% if not loop.first %}
<details><summary>{{ group.title }}<span>{{ paths }} paths</span></summary>
<div class="scroll"><table class="ranking">
<thead><tr>{% for name in ranking_headings %}<th>{{ name }}</th>{% endfor %}</tr></thead>
<tbody>
{% for one, texts in places %}
<tr{% if one.reference %} class="reference"{% endif %}>{% for text in texts %}<td>{{ text }}</td>{% endfor %}</tr>
{% endfor %}
</tbody></table></div>
<p class="muted">{{ group.paths | join(", ") }}</p>
</details>
{% endif %}
{% endfor %}

<h2>Each path</h2>
<p class="muted">From best to worst; bold is the best score of the schemes that do not know the path, gray names are
dominated by another scheme. More about a path, its runs and Pantheon's files are in the folder
<code>paths/</code> beside this page.</p>
{% for title, members in sections %}
<h3>{{ title }}</h3>
{% for path, lines in members %}
<details{% if loop.first and loop.length == members | length and title == sections[0][0] %} open{% endif %}>
<summary>{{ path.name }}<span>{{ path.facts }} · {{ path.title }}</span></summary>
<div class="scroll"><table>
<thead><tr>{% for name in mark_headings %}<th>{{ name }}</th>{% endfor %}</tr></thead>
<tbody>
{% for line in lines %}
<tr class="{{ line.kind }}">
{% for text in line.cells %}<td>{{ text }}</td>{% endfor %}</tr>
{% endfor %}
</tbody></table></div>
</details>
{% endfor %}
{% endfor %}

<h2>How this was made</h2>
<dl>
{% if provenance.command %}<dt>Command</dt><dd><code>{{ provenance.command }}</code></dd>{% endif %}
<dt>Root seed</dt><dd>{{ parameters.seed }}</dd>
{% if parameters.policies %}<dt>Policies</dt><dd>
{% for key, digest in parameters.policies.items() %}{{ key }} <code>{{ digest[:16] }}</code>{{ ", " if not loop.last }}
{% endfor %}</dd>{% endif %}
<dt>Versions</dt><dd>
{% for name, version in provenance.versions.items() %}{{ name }} {{ version }}{{ ", " if not loop.last }}{% endfor %}
</dd>
<dt>System</dt><dd>{{ provenance.system }}</dd>
<dt>Took</dt><dd>{{ "%.1f" % provenance.run_s }} s of runs</dd>
</dl>
<pre>{{ provenance.git }}</pre>
</body>
</html>
"""
