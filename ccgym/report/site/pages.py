"""The pages of the site: overview, experiments, schemes; and their scripts."""

from __future__ import annotations

import base64
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import numpy as np

from ccgym.evaluation.backends import PLACES
from ccgym.evaluation.ccperf_names import DEFINITIONS
from ccgym.evaluation.observer import Observer
from ccgym.evaluation.provenance import provenance
from ccgym.evaluation.results_file import damaged
from ccgym.experiments.detail import FLOW_SERIES
from ccgym.experiments.operating_points import operating_points
from ccgym.files import atomic_write
from ccgym.report.experiment_report import TONES, WORDS
from ccgym.report.explore import chart_library, without
from ccgym.report.page import TEMPLATES, write_page
from ccgym.report.site.database import write_database
from ccgym.report.site.results import Stored, StoredExperiments, StoredReport
from ccgym.report.style import page_colors
from ccgym.report.table import NOTHING, Cell, Column, Row, Table
from ccgym.schemes.style import FLOW_COLORS

INDEX: Final = "index.html"
REPORTS: Final = "reports"
"""Folder of results with their own report."""

_FILES: Final = {
    "ccgym.sqlite": "SQLite: experiments, conditions, schemes, outcomes, runs, and the tables below with their columns",
    "values.parquet": "a row per run and metric of its experiment",
    "ccperf.parquet": "a row per first run, scope (flow, bottleneck, network) and ccperf metric",
    "series.parquet": "a row per first run, flow and interval: throughput, sRTT, packets in flight, queue",
}


def write_site(
    results: Sequence[Stored],
    directory: Path,
    title: str,
    command: Sequence[str],
    started: float,
    observer: Observer,
) -> Path:
    """Write the site, and return its first page.

    Args:
        results: The results on the site.
        directory: Target directory; created if it does not exist. Pages of experiments not in ``results`` stay.
        title: Title of the site.
        command: The words of the command that makes it.
        started: Start of the command, seconds since the epoch.
        observer: Gets the progress.
    """
    found = [one for one in results if isinstance(one, StoredExperiments)]
    reports = [one for one in results if isinstance(one, StoredReport)]
    steps = sum(len(one.tests) for one in found) + len(reports)
    observer.begin("pages", steps + 2)
    for folder in ("assets", "data", "schemes", *(one.name for one in found)):
        (directory / folder).mkdir(parents=True, exist_ok=True)
    _write_assets(directory / "assets")
    common = {"site_title": title, "sections": ()}
    for one in found:
        for test in one.tests:
            values = {**common, "up": "../", **_test_values(one, test, directory)}
            write_page(directory / _page(one, test), "site/test", values)
            observer.advance("pages", note=str(test["title"]))
    for report in reports:
        for file in report.files:
            atomic_write(directory / REPORTS / report.name / file.name, file.read_bytes(), parents=True)
        observer.advance("pages", note=report.title)
    made = provenance(title, command, started, 0.0, str((found or reports)[0].provenance["backend"]))
    for scheme in _schemes(found):
        values = {**common, "up": "../", "provenance": made, **_scheme_values(found, scheme)}
        write_page(directory / "schemes" / f"{scheme['key']}.html", "site/scheme", values)
    observer.advance("pages", note="schemes")
    files = [file.name for file in write_database(found, directory)]
    observer.advance("pages", note="database")
    values = {**common, "up": "", "provenance": made, "files": [(file, _FILES[file]) for file in files]}
    values |= _index_values(found, reports)
    write_page(directory / INDEX, "site/index", values)
    return directory / INDEX


def _write_assets(directory: Path) -> None:
    parts = (TEMPLATES / "charts.js", TEMPLATES / "site" / "site.js")
    script = "\n".join(file.read_text(encoding="utf-8") for file in parts)
    atomic_write(directory / "site.js", f'"use strict";\n(() => {{\n{script}}})();\n')
    for suffix, text in zip(("js", "css"), chart_library(), strict=True):
        atomic_write(directory / f"uplot.{suffix}", text)


def _page(one: StoredExperiments, test: Mapping[str, Any]) -> str:
    return f"{one.name}/{test['name']}.html"


def _schemes(found: Sequence[StoredExperiments]) -> list[Mapping[str, Any]]:
    """Return every scheme once."""
    return list({scheme["key"]: scheme for one in reversed(found) for scheme in one.schemes}.values())


# --- Overview --------------------------------------------------------------------------------------------------------


def _index_values(found: Sequence[StoredExperiments], reports: Sequence[StoredReport]) -> dict[str, Any]:
    sets = [{"name": one.name, "title": one.title, "tests": [_entry(one, test) for test in one.tests]} for one in found]
    leagues = [one for one in reports if one.ratings]
    rows = [_score(found, scheme) for scheme in _schemes(found)]
    for row in rows:
        row["ratings"] = [one.ratings.get(row["key"]) for one in leagues]
    runs = sum(len(outcome["runs"]) for one in found for outcome in one.document["outcomes"])
    return {
        "sets": sets,
        "leagues": [_report_entry(one) for one in leagues],
        "reports": [_report_entry(one) for one in reports],
        "tests": [test for one in sets for test in one["tests"]],
        "schemes": rows,
        "runs": runs,
        "scoreboard": sorted(rows, key=lambda row: (-row["passed"], row["label"].lower())),
    }


def _report_entry(one: StoredReport) -> dict[str, str]:
    labels = (
        scheme.get("label", "") if isinstance(scheme, dict) else scheme for scheme in one.document.get("schemes", ())
    )
    words = [one.title, one.name, one.kind, *map(str, labels)]
    page = f"{REPORTS}/{one.name}/{one.page}" if one.page else ""
    return {"page": page, "title": one.title, "kind": one.kind, "text": " ".join(words).lower()}


def _entry(one: StoredExperiments, test: Mapping[str, Any]) -> dict[str, Any]:
    outcomes = one.outcomes(test["name"])
    conditions = _conditions(outcomes)
    words = [one.title, *(test[word] for word in ("title", "question", "setting", "threshold", "source", "name"))]
    words += [metric["label"] for metric in test["metrics"]] + [scheme["label"] for scheme in one.schemes]
    words += [condition["key"] for condition in conditions[:500]]
    judged = [outcome["verdict"] for outcome in outcomes.values() if outcome["verdict"] != "none"]
    return {
        "page": _page(one, test),
        "title": test["title"],
        "question": test["question"],
        "conditions": len(conditions),
        "verdicts": f"passed by {judged.count('pass')} of {len(judged)} schemes" if judged else "",
        "text": " ".join(words).lower(),
    }


def _score(found: Sequence[StoredExperiments], scheme: Mapping[str, Any]) -> dict[str, Any]:
    """Return how many experiments with criteria a scheme passed: in total, and in each set."""
    cells = []
    for one in found:
        verdicts = [outcome["verdict"] for outcome in one.document["outcomes"] if outcome["scheme"] == scheme["key"]]
        cells.append((verdicts.count("pass"), len(verdicts) - verdicts.count("none")))
    whole = sum(passed for passed, _ in cells), sum(judged for _, judged in cells)
    return {
        "key": scheme["key"],
        "label": scheme["label"],
        "passed": whole[0],
        "text": _of(*whole),
        "cells": [{"passed": passed, "text": _of(passed, judged)} for passed, judged in cells],
    }


def _of(passed: int, judged: int) -> str:
    return f"{passed} of {judged}" if judged else NOTHING


# --- Schemes ---------------------------------------------------------------------------------------------------------


def _scheme_values(found: Sequence[StoredExperiments], scheme: Mapping[str, Any]) -> dict[str, Any]:
    sets = []
    for one in found:
        tests = []
        for test in one.tests:
            outcome = one.outcomes(test["name"]).get(scheme["key"])
            if outcome is not None:
                verdict = outcome["verdict"]
                shown = {"headline": outcome["headline"], "verdict": WORDS[verdict], "tone": TONES[verdict]}
                tests.append({"page": _page(one, test), "title": test["title"], **shown})
        if tests:
            sets.append({"title": one.title, "tests": tests})
    score = _score(found, scheme)
    passed = (
        f"passed {score['text']} experiments with criteria" if score["text"] != NOTHING else "no experiment judges it"
    )
    return {"scheme": scheme, "sets": sets, "passed": passed}


# --- Experiments -----------------------------------------------------------------------------------------------------


def _conditions(outcomes: Mapping[str, Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return all conditions of an experiment, each once."""
    return list({one["key"]: one for outcome in outcomes.values() for one in outcome["conditions"]}.values())


def _test_values(one: StoredExperiments, test: Mapping[str, Any], directory: Path) -> dict[str, Any]:
    outcomes = one.outcomes(test["name"])
    conditions = _conditions(outcomes)
    schemes = [scheme for scheme in one.schemes if scheme["key"] in outcomes]
    made = one.document["provenance"]
    said = (("Setting", test["setting"]), ("Passes", test["threshold"] or test["brief"]), ("Source", test["source"]))
    stem = f"{one.name}_{test['name']}"
    shown = []
    for place, condition in enumerate(conditions):
        file = f"{stem}_{place}.js"
        atomic_write(directory / "data" / file, _condition_script(one, outcomes, place, condition["key"]))
        seeds = {
            run["seed"]
            for outcome in outcomes.values()
            for run in outcome["runs"]
            if run["condition"] == condition["key"] and run["run"] == 1
        }
        shown.append(
            {
                "key": condition["key"],
                "at": dict(condition["at"]) or {"condition": "the only one"},
                "file": f"../data/{file}",
                "seed": ", ".join(map(str, sorted(seeds))),
            }
        )
    return {
        "test": test,
        "set_title": one.title,
        "schemes": schemes,
        "conditions": shown,
        "provenance": made,
        "place": PLACES[made["backend"]],
        "words": [(name, text) for name, text in said if text],
        "verdicts": _verdicts(schemes, outcomes),
        "data": {
            "metrics": test["metrics"],
            "schemes": [{"key": s["key"], "label": s["label"], "colors": page_colors(s["color"])} for s in schemes],
            "conditions": shown,
            "coordinates": list(dict.fromkeys(name for one in shown for name in one["at"])),
            "values": {key: _values(test, outcome, conditions) for key, outcome in outcomes.items()},
            "commands": _commands(one, schemes),
            "better": {one.name: one.better for one in DEFINITIONS.values()},
            "series": list(FLOW_SERIES),
            "flowColors": [page_colors(color) for color in FLOW_COLORS],
        },
    }


def _verdicts(schemes: Sequence[Mapping[str, Any]], outcomes: Mapping[str, Mapping[str, Any]]) -> Table:
    """Return each scheme's verdict and, among its unmet criteria, the criterion with the smallest margin."""
    rows = []
    for scheme in schemes:
        outcome = outcomes[scheme["key"]]
        missed = [one for one in outcome["criteria"] if one["passed"] is False]
        where = ", ".join(dict.fromkeys(one["group"] for one in missed if one["group"]))
        values = {"scheme": scheme["label"], "numbers": outcome["headline"], "missed": where}
        verdict = outcome["verdict"]
        rows.append(Row({**values, "verdict": Cell(WORDS[verdict] or None, TONES[verdict])}))
    columns = [Column("scheme", "scheme", align="left"), Column("numbers", "numbers"), Column("verdict", "verdict")]
    if any(row.values["missed"] for row in rows):
        columns.append(Column("missed", "not met", align="left"))
    return Table(columns, rows, kind="stack")


def _values(
    test: Mapping[str, Any], outcome: Mapping[str, Any], conditions: Sequence[Mapping[str, Any]]
) -> list[list[list[float] | None]]:
    """Return mean, standard deviation and runs by condition and metric; None if unknown. Identical runs count once."""
    known = {one["key"]: one for one in outcome["conditions"]}

    def of(key: str, metric: str) -> list[float] | None:
        one = known.get(key, {"metrics": {}})
        spread = one["metrics"].get(metric)
        return spread and [spread["mean"], spread["std"], 1 if one.get("identical") else spread["count"]]

    return [[of(one["key"], metric["key"]) for metric in test["metrics"]] for one in conditions]


def _commands(one: StoredExperiments, schemes: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the command that repeats the runs of each scheme."""
    words = without(shlex.split(one.provenance.get("command") or ""), ["--schemes"], ())
    texts = dict(zip((s["key"] for s in one.schemes), one.document["parameters"]["schemes"], strict=True))
    return {s["key"]: shlex.join([*words, "--schemes", texts[s["key"]]]) if words else "" for s in schemes}


def _condition_script(
    one: StoredExperiments, outcomes: Mapping[str, Mapping[str, Any]], place: int, condition: str
) -> str:
    """Return a script that gives the first runs of a condition to the page."""
    runs = {}
    for key, outcome in outcomes.items():
        if (kept := one.kept(outcome, condition)) is not None:
            arrays = {"ends": kept.arrays["ends_s"], "values": kept.arrays["values"]}
            try:
                points = asdict(operating_points(kept.numbers))
            except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
                raise damaged(one.directory, f"the kept run of {key} at {condition!r}: {error!r}") from None
            runs[key] = {
                "numbers": kept.numbers,
                "points": points,
                **{name: _floats(values) for name, values in arrays.items()},
            }
    return f"ccgym.condition({place}, {json.dumps(runs, ensure_ascii=False)});\n"


def _floats(values: Any) -> str:
    return base64.b64encode(np.asarray(values, dtype="<f4").tobytes()).decode()
