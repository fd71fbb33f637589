"""``weaknesses.html``: verdicts, figures, criteria and conditions in one file that needs nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, StrictUndefined

from ccgym.evaluation.weaknesses.base import Weakness
from ccgym.evaluation.weaknesses.results import WeaknessResults
from ccgym.report.html_report import PICTURE, STYLE, Picture
from ccgym.report.weakness_tables import WORDS, condition_cells, condition_heads, criterion_row, quantity


def weakness_page(results: WeaknessResults, directory: Path) -> str:
    """The page, with all figures inside.

    Args:
        results: What was measured.
        directory: Where its figures are; those that are missing are replaced by the words "Figure is missing".
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    return environment.from_string(PICTURE + _TEMPLATE).render(
        results=results,
        provenance=results.provenance,
        style=STYLE,
        words=WORDS,
        overview=Picture.of(
            directory / "weakness_overview.svg",
            "Matrix of schemes and tests: passed or failed, with the number that decided",
        ),
        tests=[_test(results, test, directory) for test in results.tests],
    )


def _test(results: WeaknessResults, test: Weakness, directory: Path) -> dict[str, Any]:
    """A test, as the template needs it."""
    return {
        "test": test,
        "quantity": quantity(results, test),
        "figure": Picture.of(
            directory / f"weakness_{test.name}.svg", f"{test.title}: the measure over the test's conditions"
        ),
        "schemes": [
            {
                "style": style,
                "outcome": outcome,
                "criteria": [criterion_row(test, one) for one in outcome.criteria],
                "heads": condition_heads(test, outcome),
                "rows": [condition_cells(test, outcome, row) for row in outcome.conditions],
            }
            for style, outcome in results.of_test(test)
        ],
    }


_TEMPLATE: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Weakness tests</title>
<style>{{ style | safe }}
body { max-width: 1240px; }
td.pass { color: #2a7a45; font-weight: 600; } td.fail { color: #b3261e; font-weight: 600; }
td.incomplete { color: var(--muted); }
table.criteria td:nth-child(2), table.criteria th:nth-child(2) { text-align: left; }
tr.first td { border-top: 1px solid #bbb; }
</style>
</head>
<body>
<h1>Weakness tests</h1>
<p class="lead">{{ results.styles | length }} scheme{{ "s" if results.styles | length != 1 }},
{{ results.tests | length }} tests, {{ results.extent }}; root seed {{ results.parameters.seed }}, simulated in virtual
time, {{ provenance.started }}.</p>

{{ picture(overview) }}
<div class="scroll">
<table class="stack">
<thead><tr><th>scheme</th>
{% for entry in tests %}<th><a href="#{{ entry.test.name }}">{{ entry.test.title }}</a><br>
<span class="muted">{{ entry.quantity }}</span></th>{% endfor %}
<th>passed</th></tr></thead>
<tbody>
{% for style in results.styles %}
<tr><td>{{ style.label }}</td>
{% for entry in tests %}
{% set outcome = results.outcome(entry.test, style.key) %}
<td class="{{ outcome.verdict }}" data-label="{{ entry.test.title }} ({{ entry.quantity }})">
{{ outcome.headline or "–" }} {{ words[outcome.verdict] }}</td>
{% endfor %}
<td data-label="passed">{{ results.passed(style.key) }} of {{ tests | length }}</td></tr>
{% endfor %}
</tbody>
</table>
</div>
<p class="muted">Each cell shows the mean that decided: of several criteria the one that came off worst. Every path is a
dumbbell with a plain FIFO bottleneck, and every scheme meets the same paths and seeds.</p>
{% for style in results.styles if style.key in results.trained_on %}
<p class="muted">{{ style.label }} was trained on {{ results.trained_on[style.key] }}.</p>
{% endfor %}
{% if results.failures %}
<h2>Runs that ended in an error</h2>
{% for failure in results.failures %}<div class="flag warning">{{ failure }}</div>{% endfor %}
{% endif %}

{% for entry in tests %}
<h2 id="{{ entry.test.name }}">{{ entry.test.title }}</h2>
<p>{{ entry.test.question }}</p>
<dl>
<dt>Setting</dt><dd>{{ entry.test.setting }}</dd>
<dt>Passes</dt><dd>{{ entry.test.pass_mark }}</dd>
<dt>Source</dt><dd>{{ entry.test.source }}</dd>
</dl>
{{ picture(entry.figure) }}
<div class="scroll">
<table class="criteria">
<thead><tr><th>scheme</th><th>criterion</th><th>found</th><th>passes</th><th>verdict</th></tr></thead>
<tbody>
{% for scheme in entry.schemes %}
{% for row in scheme.criteria %}
<tr{% if loop.first %} class="first"{% endif %}><td>{{ scheme.style.label if loop.first }}</td><td>{{ row.what }}</td>
<td>{{ row.found }}</td><td>{{ row.mark }}</td><td class="{{ row.verdict }}">{{ words[row.verdict] }}</td></tr>
{% endfor %}
{% endfor %}
</tbody>
</table>
</div>
{% for scheme in entry.schemes %}
<details>
<summary>{{ scheme.style.label }}<span>{{ scheme.rows | length }} conditions, {{ scheme.outcome.runs | length }} runs
</span></summary>
<div class="scroll">
<table>
<thead><tr>{% for head in scheme.heads %}<th>{{ head }}</th>{% endfor %}</tr></thead>
<tbody>
{% for row in scheme.rows %}<tr>{% for cell in row %}<td>{{ cell }}</td>{% endfor %}</tr>
{% endfor %}
</tbody>
</table>
</div>
<p class="muted">Means over the runs of a condition, and from the least to the greatest.</p>
</details>
{% endfor %}
{% endfor %}

<h2>How this was made</h2>
<dl>
{% if provenance.command %}<dt>Command</dt><dd><code>{{ provenance.command }}</code></dd>{% endif %}
<dt>Rig</dt><dd>{{ provenance.path }}</dd>
<dt>Versions</dt><dd>
{% for name, version in provenance.versions.items() %}{{ name }} {{ version }}{{ ", " if not loop.last }}{% endfor %}
</dd>
<dt>System</dt><dd>{{ provenance.system }}</dd>
<dt>Simulated</dt><dd>{{ provenance.simulated_s }} s of one processor, runs of earlier calls included</dd>
</dl>
</body>
</html>
"""
