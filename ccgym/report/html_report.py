"""``pantheon_report.html``: the whole evaluation in one file that needs nothing else, not even a network.

Figures link to their files in the same directory, for those who want them larger.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, StrictUndefined

from ccgym.evaluation.backends import PLACES, is_real
from ccgym.evaluation.pantheon import statistics_text
from ccgym.evaluation.results import CellResult, ResultSet
from ccgym.report.run_figures import figure_paths
from ccgym.report.table import COLUMNS, PUBLISHED_COLUMNS, TITLES, Row, footnotes, has_published, headings, rows

HTML_FILE: Final = "pantheon_report.html"


@dataclass(frozen=True)
class Picture:
    """A figure on a page: the image inside it, and the file beside it."""

    file: str
    """Name of the file that is linked; empty where there is none."""
    data: str
    """A data address with the image."""
    alt: str
    """What it shows, in words."""

    @classmethod
    def of(cls, path: Path, alt: str) -> Picture:
        """The figure in a file; where that is missing, the page says so."""
        return cls(path.name if path.exists() else "", _image(path), alt)


@dataclass(frozen=True)
class _Run:
    """One run, as the template needs it."""

    number: int
    facts: str
    invalid: str | None
    limited: str | None
    releases: str
    statistics: str
    figures: list[Picture]


@dataclass(frozen=True)
class _Scheme:
    """One scheme, as the template needs it."""

    key: str
    label: str
    row: Row
    runs: list[_Run]


def html_report(results: ResultSet, directory: Path) -> str:
    """The page, with all images inside.

    Args:
        results: The experiment.
        directory: Where its figures are; those that are missing are replaced by the words "Figure is missing".
    """
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    by_label = {row.label: row for row in rows(results)}
    schemes = [
        _Scheme(
            key=summary.style.key,
            label=summary.style.label,
            row=by_label[summary.style.label],
            runs=[_run(cell, summary.style.label, directory) for cell in summary.runs],
        )
        for summary in results.schemes
    ]
    return environment.from_string(PICTURE + _TEMPLATE).render(
        results=results,
        parameters=results.parameters,
        provenance=results.provenance,
        headings=headings(results),
        columns=COLUMNS,
        published=has_published(results),
        published_columns=PUBLISHED_COLUMNS,
        titles=TITLES,
        rows=rows(results),
        footnotes=footnotes(results, unavailable=False),
        place=PLACES[results.backend],
        schemes=schemes,
        mean_figure=Picture.of(
            directory / "pantheon_summary_mean.svg",
            "Mean throughput against mean 95th-percentile one-way delay, one mark per scheme",
        ),
        summary_figure=Picture.of(
            directory / "pantheon_summary.svg", "Throughput against 95th-percentile one-way delay, one mark per run"
        ),
        style=STYLE,
        flows=results.parameters["flows"],
    )


def _run(cell: CellResult, label: str, directory: Path) -> _Run:
    assert cell.record.metrics is not None
    throughput, delay = figure_paths(directory, cell.scheme, cell.run)
    return _Run(
        number=cell.run,
        facts=run_facts(cell),
        invalid=cell.invalid,
        limited=cell.limited,
        releases=release_text(cell.record.path_report),
        statistics=statistics_text(cell.record.metrics).rstrip(),
        figures=[
            Picture.of(throughput, f"{label}, run {cell.run}: throughput over time"),
            Picture.of(delay, f"{label}, run {cell.run}: per-packet delay over time"),
        ],
    )


def run_facts(cell: CellResult) -> str:
    """What tells a run from others: its seed, and where that means anything the hash of its packets."""
    seed = f"seed {cell.record.seed}"
    return seed if is_real(cell.record.backend) else f"{seed} · trajectory {cell.record.trajectory_hash}"


def release_text(report: Mapping[str, Any] | None) -> str:
    """How punctual our own path was in a run; empty where nobody measured that."""
    parts = []
    for name, key in (("data", "uplink_release"), ("acknowledgements", "downlink_release")):
        release = (report or {}).get(key)
        if release and release["count"]:
            median, high, highest = (release[f"{which}_ns"] / 1e6 for which in ("p50", "p99", "max"))
            parts.append(
                f"{name} {median:.3f} ms (median), {high:.3f} ms (99th percentile), {highest:.2f} ms (largest)"
            )
    drops = (report or {}).get("device_drops", 0)
    if drops:
        parts.append(f"{drops} packets dropped by devices")
    return "; ".join(parts)


def _image(path: Path) -> str:
    """A data address with the image inside; empty where there is none."""
    kinds: dict[str, str] = {".png": "image/png", ".svg": "image/svg+xml"}
    if not path.exists():
        return ""
    return f"data:{kinds[path.suffix]};base64,{base64.b64encode(path.read_bytes()).decode()}"


STYLE: Final = """
:root { --ink: #222; --muted: #6b6b6b; --line: #e2e2e2; --wash: #f7f5f2; --accent: #1f5fbf; --warn: #a35200; }
* { box-sizing: border-box; }
body { font: 16px/1.55 system-ui, "Segoe UI", "DejaVu Sans", sans-serif; color: var(--ink); margin: 0 auto;
  max-width: 1080px; padding: 2.2rem 1.5rem 5rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .3rem; }
h2 { font-size: 1.35rem; margin: 2.8rem 0 .8rem; padding-top: .8rem; border-top: 1px solid var(--line); }
h3 { font-size: 1.05rem; margin: 1.6rem 0 .4rem; }
.muted { color: var(--muted); }
p.lead { margin: .2rem 0 1.4rem; color: var(--muted); }
pre, code { font: 13px/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
pre { background: var(--wash); border: 1px solid var(--line); border-radius: 6px; padding: .8rem 1rem; overflow-x: auto;
  margin: .5rem 0 1rem; white-space: pre-wrap; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; font-size: .92rem; }
/* Shadows at the edges say that there is more to the side; they go where it ends. */
.scroll { overflow-x: auto; background: linear-gradient(to right, #fff 30%, #fff0) 0 / 3rem 100% no-repeat local,
  linear-gradient(to left, #fff 30%, #fff0) 100% / 3rem 100% no-repeat local,
  linear-gradient(to right, #0004, #0000) 0 / .9rem 100% no-repeat scroll,
  linear-gradient(to left, #0004, #0000) 100% / .9rem 100% no-repeat scroll; }
th, td { padding: .42rem .6rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
th { font-weight: 600; vertical-align: bottom; white-space: normal; }
th:first-child, td:first-child { text-align: left; }
td.published, th.published { color: var(--muted); background: #b49b7814; }
td a, th a { color: inherit; text-decoration-color: #bbb; }
figure { margin: .6rem 0; } figure img { max-width: 100%; height: auto; display: block; margin: 0 auto; }
figcaption { text-align: right; font-size: .85rem; color: var(--muted); } figcaption a { color: var(--accent); }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .25rem 1.2rem; margin: 0 0 1rem; }
dt { color: var(--muted); } dd { margin: 0; }
.flag { border-left: 4px solid var(--line); padding: .35rem 0 .35rem .9rem; margin: .7rem 0; }
.flag.warning { border-color: #e0922f; } .flag b { font-weight: 600; }
.warning-text { color: var(--warn); }
details { border: 1px solid var(--line); border-radius: 6px; margin: .6rem 0; padding: 0 1rem; }
summary { cursor: pointer; padding: .55rem 0; font-weight: 600; }
summary span { font-weight: 400; color: var(--muted); font-size: .9rem; margin-left: .6rem; }
@media (max-width: 640px) {
  body { padding: 1.2rem .9rem 3rem; }
  figure img { max-width: none; width: 40rem; mix-blend-mode: multiply; }
  table.stack, .stack tbody, .stack tr, .stack td { display: block; width: auto; }
  .stack thead { display: none; } .stack tr { border-bottom: 1px solid var(--ink); padding: .3rem 0; }
  .stack td, .stack td:first-child { border: 0; padding: .12rem 0; white-space: normal; display: flex;
    justify-content: space-between; gap: 1rem; }
  .stack td:first-child { font-weight: 600; } .stack td:first-child::before, .stack td.nothing { display: none; }
  .stack td::before { content: attr(data-label); color: var(--muted); font-weight: 400; text-align: left; }
}
@media print { details { border: 0; } h2 { break-before: page; } }
"""

PICTURE: Final = """\
{% macro picture(figure) %}
{% if figure.file %}
<figure><div class="scroll"><img loading="lazy" src="{{ figure.data }}" alt="{{ figure.alt }}"></div>
<figcaption><a href="{{ figure.file }}">full size</a></figcaption></figure>
{% else %}
<p class="muted">Figure is missing</p>
{% endif %}
{% endmacro %}
"""
"""What a template begins with: the macro that shows a :class:`Picture`."""

_TEMPLATE: Final = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Pantheon report: {{ parameters.path_name }}</title>
<style>{{ style | safe }}</style>
</head>
<body>
<h1>Pantheon report: {{ parameters.path_name }}</h1>
<p class="lead">{{ schemes | length }} congestion-control scheme{{ "s" if schemes | length != 1 }},
{{ parameters.runs }} run{{ "s" if parameters.runs != 1 }} each of {{ "%g" % parameters.runtime_s }} s with
{{ flows }} flow{{ "s" if flows != 1 }}{% if flows > 1 and parameters.interval_s %},
{{ "%g" % parameters.interval_s }} s apart{% endif %}. {{ place[0] | upper }}{{ place[1:] }},
{{ provenance.started }}.</p>

<pre>{{ provenance.path }}</pre>

{{ picture(mean_figure) }}

<div class="scroll">
<table class="stack">
<thead><tr>
{% for name in headings %}
<th{% if name.startswith("published ") %} class="published"{% endif %}>{{ name }}</th>
{% endfor %}
</tr></thead>
<tbody>
{% for row in rows %}
<tr><td>{{ row.marked }}</td><td data-label="runs">{{ row.runs }}</td>
{% if row.unavailable %}<td class="muted" style="text-align: left; white-space: normal"
colspan="{{ columns | length }}">{{ row.unavailable }}</td>
{% else %}{% for name in columns %}<td data-label="{{ titles[name] }}">{{ row.cells[name] }}</td>{% endfor %}{% endif %}
{% if published %}
{% for name in published_columns %}
<td class="published{% if not row.published[name] %} nothing{% endif %}"
data-label="published {{ titles[name] }}">{{ row.published[name] or "–" }}</td>
{% endfor %}
{% endif %}
</tr>
{% endfor %}
</tbody>
</table>
</div>
<p class="muted">Mean ± one standard deviation over the runs that count. Delay is one-way, per packet, propagation
included; loss is by bytes, and what is in flight at the end counts as lost.
{% if published and results.published_source %}Published: {{ results.published_source }}.{% endif %}</p>
{% for line in footnotes %}
<p class="warning-text">{{ line }}</p>
{% endfor %}

{% if results.flags or results.failures %}
<h2>Look at this first</h2>
{% for failure in results.failures %}
<div class="flag warning"><b>{{ failure.scheme }}, run {{ failure.run }} failed.</b> {{ failure.error }}
<br><span class="muted">Seed {{ failure.seed }}.</span></div>
{% endfor %}
{% for flag in results.flags %}
<div class="flag {{ flag.level }}"><b>{{ flag.subject }}:</b> {{ flag.message }}.
<br>Likely cause: {{ flag.cause }}.
<br><span class="muted">To see it:</span> <code>{{ flag.command }}</code></div>
{% endfor %}
{% endif %}

<h2>All runs</h2>
{{ picture(summary_figure) }}

{% for scheme in schemes %}
<h2 id="{{ scheme.key }}">{{ scheme.label }}</h2>
{% if scheme.row.unavailable %}
<p class="muted">{{ scheme.row.unavailable }}.</p>
{% else %}
<p>{{ scheme.row.cells.throughput_mbps }} Mbit/s, 95th-percentile delay {{ scheme.row.cells.delay_p95_ms }} ms,
loss {{ scheme.row.cells.loss }} %.</p>
{% endif %}
{% for run in scheme.runs %}
<details{% if loop.first %} open{% endif %}>
<summary>Run {{ run.number }}<span>{{ run.facts }}</span></summary>
{% if run.invalid %}<p class="warning-text">This run does not count: {{ run.invalid }}.</p>{% endif %}
{% if run.limited %}<p class="warning-text">Emulator-limited: {{ run.limited }}.</p>{% endif %}
<pre>{{ run.statistics }}</pre>
{% if run.releases %}<p class="muted">Late releases: {{ run.releases }}.</p>{% endif %}
{% for figure in run.figures %}{{ picture(figure) }}{% endfor %}
</details>
{% endfor %}
{% endfor %}

<h2>How this was made</h2>
<dl>
{% if provenance.command %}<dt>Command</dt><dd><code>{{ provenance.command }}</code></dd>{% endif %}
<dt>Root seed</dt><dd>{{ parameters.seed }}</dd>
{% if results.real %}
<dt>Repeatable</dt><dd>no: real packets in real time <span class="muted">the seed decides what the path draws at
random, not when packets come</span></dd>
{% else %}
<dt>Trajectory</dt><dd><code>{{ results.trajectory_hash }}</code> <span class="muted">the same seed and version give the
same hash, and the same packets</span></dd>
{% endif %}
<dt>Versions</dt><dd>
{% for name, version in provenance.versions.items() %}{{ name }} {{ version }}{{ ", " if not loop.last }}{% endfor %}
</dd>
<dt>System</dt><dd>{{ provenance.system }}</dd>
<dt>Took</dt><dd>{{ "%.1f" % results.wall_s }} s for {{ results.cells | length }} runs</dd>
</dl>
<pre>{{ provenance.git }}</pre>
</body>
</html>
"""
