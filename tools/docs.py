"""Writes the documentation that follows from a registry; a test fails when it is stale.

Only what stands between ``<!-- begin NAME … -->`` and ``<!-- end NAME -->`` is; the rest of a page is written by hand.
Run by ``make docs``; ``--check`` only says whether anything would change.
"""

from __future__ import annotations

import ast
import csv
import inspect
import itertools
import json
import re
import statistics
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import models
from pydantic import BaseModel

from ccgym import _core
from ccgym.config.agent import vocabulary
from ccgym.config.distributions import presets
from ccgym.config.quantities import Limit
from ccgym.config.yaml_loader import parse_yaml
from ccgym.envs.registration import PRESETS as ENVIRONMENTS
from ccgym.evaluation.curves import FlowCurves, RunCurves
from ccgym.evaluation.results import RUN_COLUMNS
from ccgym.evaluation.run_record import FLOW_COLUMN, PACKET_COLUMNS, SERIES_COLUMNS, FlowRecord, RunRecord
from ccgym.experiments.metrics import METRICS, Metric
from ccgym.report.figures import figures_of
from ccgym.schemes.groups import descriptions
from ccgym.schemes.policies import pretrained
from ccgym.units import format_rate, format_time

ROOT = Path(__file__).resolve().parent.parent

SCHEMA: dict[str, Any] = json.loads(_core.schema())
"""What the native core declares."""


def cell(text: object) -> str:
    """A value inside a Markdown table."""
    return str(text).replace("|", "\\|").replace("\n", " ")


def between(low: float | None, high: float | None) -> str:
    """A range."""
    if low is None:
        return ""
    return f"≥ {low:g}" if high is None else f"{low:g} … {high:g}"


def span(parameter: dict[str, Any]) -> str:
    """What a parameter may be, in words."""
    if parameter.get("choices"):
        return ", ".join(f"`{choice}`" for choice in parameter["choices"])
    if parameter.get("file"):
        return "path of a file"
    return between(parameter.get("min"), parameter.get("max"))


def training_lines(card: dict[str, Any]) -> list[str]:
    """How a policy was trained, in sentences; its card has the rest."""
    training, parity = card["training"], card["parity"]
    shape, profile = card["policy"], card["profile"]
    kind = "Decision tree" if shape["kind"] == "tree" else shape["kind"].upper()
    lines = [f"{kind} with {shape['observation_size']} inputs; over `{profile}` unless a flow asks for"
             " another transport."]  # fmt: skip
    if {"steps", "seed"} <= training.keys():
        lines.append(f"Trained with seed {training['seed']} for {training['steps']:,} decisions.")
    if parity:
        lines.append(
            f"As exported it differs from the trained one by {parity['max_abs_difference']:.1e} at most, in "
            f"{parity['decisions']:,} decisions over {parity['episodes']} held-out episodes."
        )
    return lines


def parameter_table(scheme: Mapping[str, Any]) -> list[str]:
    """What can be set of a scheme; nothing where it has no parameters."""
    rows = [
        (
            code(p["name"]) + (f" ({p['unit']})" if p.get("unit") else ""),
            code(json.dumps(p["default"])),
            span(p),
            p["help"],
        )
        for p in scheme["parameters"]
    ]
    return table(["Parameter", "Default", "Range", ""], rows) if rows else []


def contestants() -> list[dict[str, Any]]:
    """The schemes that have a page of their own: neither tools nor policies."""
    return [scheme for scheme in descriptions() if scheme.get("role", "tool") != "tool"]


def transport_words(scheme: Mapping[str, Any]) -> str:
    """How a scheme is carried, in a few words."""
    carried = scheme["transport"]
    size = carried["mss"] + carried["header"]
    source = carried["source"]["kind"]
    fed = "" if source == "greedy" else f", with the source `{source}`"
    return f"`{carried['profile']}`, packets of {size} bytes, initial window {carried['initial_window']}{fed}"


def scheme_table() -> list[str]:
    """The schemes, a line each."""
    rows = [
        (f"[`{s['name']}`](schemes/{s['name']}.md)", s["label"], s["summary"], "yes" if s["role"] == "default" else "")
        for s in contestants()
    ]
    return table(["Name", "", "", "By default"], rows)


def policy_table() -> list[str]:
    """The policies that come with ccgym, a line each."""
    cards = [scheme for scheme in descriptions() if "card" in scheme]
    rows = [(code(s["name"]), s["label"], s["summary"], s["reference"]) for s in cards]
    details = [line for s in cards for line in ("", f"**{s['label']}.** " + " ".join(training_lines(s["card"])))]
    settings = ["", "Each takes:", "", *parameter_table(cards[0])] if cards else []
    return [*table(["Name", "", "", "After"], rows), *details, *settings]


def tool_sections() -> list[str]:
    """The schemes that measure something else, with their parameters."""
    lines = []
    for scheme in descriptions():
        if scheme.get("role") == "tool":
            lines += [f"### `{scheme['name']}`", "", scheme["summary"], f"After: {scheme['reference']}.", ""]
            lines += [*parameter_table(scheme), ""]
    return lines[:-1]


def scheme_head(name: str) -> list[str]:
    """What a scheme's entry in the registry says, and its figure."""
    (scheme,) = [one for one in contestants() if one["name"] == name]
    status = {"native": "from its specification or source", "reconstructed": "reconstructed from what is known of it"}
    facts = [
        f"- `{name}`: {scheme['summary']}",
        f"- After: {scheme['reference']}",
        *([f"- Checked against: {scheme['implementation']}"] if scheme["implementation"] else []),
        f"- Rules: {status[scheme['status']]}",
        f"- Carried by {transport_words(scheme)}, unless a flow says otherwise",
        f"- In the default comparison: {'yes' if scheme['role'] == 'default' else 'no; name it, or a group of it'}",
    ]
    figure = f"![{scheme['label']} on three calibrated paths](../img/schemes/{name}.png)"
    return [
        *facts,
        "",
        *parameter_table(scheme),
        "",
        figure,
        "",
        "`make figures` drew it: `ccgym portrait " + name + "`.",
    ]


# --- Tables inside pages that are written by hand ------------------------------------------------------------------


def table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    """A Markdown table."""
    lines = [f"| {' | '.join(head)} |".replace("  ", " "), "|---" * len(head) + "|"]
    return lines + [f"| {' | '.join(map(cell, row))} |" for row in rows]


def code(name: str) -> str:
    """A name as it is typed."""
    return f"`{name}`"


def source(row: dict[str, Any]) -> str:
    """Who published it."""
    text: str = row["source"]
    return "" if text == "none" else text.removeprefix("none: ")


def signals() -> list[str]:
    """What an agent can see."""
    rows = vocabulary()["signals"]
    return table(
        ["Signal", "Unit", "Range", "Formula"],
        [
            (code(r["name"]), "" if r["unit"] == "1" else r["unit"], between(r["low"], r["high"]), r["formula"])
            for r in rows
        ],
    )


def words(section: str, head: str) -> list[str]:
    """A section of the vocabulary that has names and formulas."""
    return table([head, "Formula"], [(code(row["name"]), row["formula"]) for row in vocabulary()[section]])


def maps() -> list[str]:
    """What an agent can do."""
    rows = vocabulary()["maps"]
    return table(["Map", "What it does", "After"], [(code(r["name"]), r["formula"], source(r)) for r in rows])


def quantity(value: Any, schema: dict[str, Any]) -> str:
    """A default or a bound as a user writes it."""
    form = schema.get("format", "")
    if form == "limit":
        return str(Limit(**value))
    writers = {"time": format_time, "milliseconds": format_time, "rate": format_rate}
    if isinstance(value, int) and form in writers:
        return writers[form](value)
    return "none" if value is None else json.dumps(value).strip('"')


def parameter(name: str, schema: dict[str, Any], required: bool) -> str:
    """A parameter in a few words: name, default, choices, range and help."""
    choices = schema.get("enum") or words_of(schema)
    notes = [" | ".join(choices)] if choices else []
    low, high = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
    if schema.get("type") == "number" and low is not None and high is not None:
        notes.append(f"{low:g} … {high:g}")
    if required:
        notes.append("required")
    elif schema.get("default") is not None and not isinstance(schema["default"], dict):
        notes.append(f"default {quantity(schema['default'], schema)}")
    shown = f" ({'; '.join(notes)})" if notes else ""
    help_text = " ".join(schema.get("description", "").split()).rstrip(".")
    return f"`{name}`{shown}" + (f": {help_text[:1].lower()}{help_text[1:]}" if help_text else "")


def words_of(schema: dict[str, Any]) -> list[str]:
    """The words that a parameter may be, where they have a definition of their own."""
    target = SCHEMA.get(str(schema.get("$ref", "")).rpartition("/")[2], {})
    return target.get("enum") or [one["const"] for one in target.get("oneOf", ()) if "const" in one]


def parameters(schema: dict[str, Any]) -> str:
    """All parameters of a definition."""
    required = schema.get("required", ())
    given = {name: part for name, part in schema.get("properties", {}).items() if "const" not in part}
    return "; ".join(parameter(name, part, name in required) for name, part in given.items())


def kinds(name: str) -> list[str]:
    """The kinds of a union with their parameters."""
    rows = []
    for schema in SCHEMA[name]["oneOf"]:
        kind = next(part["const"] for part in schema["properties"].values() if "const" in part)
        if kind != "link":
            rows.append((code(kind), " ".join(schema["description"].split()), parameters(schema)))
    return table([name, "", "Parameters"], rows)


def keys(name: str) -> list[str]:
    """The keys of a mapping."""
    required = SCHEMA[name].get("required", ())
    return table(
        ["Key"], [(parameter(key, part, key in required),) for key, part in SCHEMA[name]["properties"].items()]
    )


def terms() -> list[str]:
    """What an agent can be rewarded for."""
    rows = []
    for row in vocabulary()["terms"]:
        name = code(row["name"]) + (" (truth)" if row["needs_truth"] else "")
        given = "; ".join(parameter(key, part, "default" not in part) for key, part in row["parameters"].items())
        rows.append((name, row["formula"], given, source(row)))
    return table(["Term", "Value", "Parameters", "After"], rows)


def environments() -> list[str]:
    """The environments' ids."""
    rows = ENVIRONMENTS.items()
    return table(["Id", "Defaults"], [(code(name), f"[`{c}.yaml`](../configs/{c}.yaml)") for name, c in rows])


def distributions() -> list[str]:
    """Path distributions with a name."""
    return table(["Name", "What it is, and where from"], [(code(n), one["source"]) for n, one in presets().items()])


def columns(names: Sequence[str]) -> list[str]:
    """Names of columns, in order."""
    return [", ".join(map(code, names))]


def results(policy: str) -> list[str]:
    """What `ccgym record POLICY` found: a row per seed, the baselines below."""
    file = ROOT / f"agents/{policy}/seeds.json"
    recorded: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    held_out, fresh = recorded["held_out"], recorded["confirmation"]
    goal = f"{100 * recorded['share']:.0f} %"
    rows: list[Sequence[object]] = []
    for one in recorded["seeds"]:
        name = f"seed {one['seed']}" + (", the pretrained one" if one["seed"] == recorded["exported"]["seed"] else "")
        reached = one["reached_step"]
        when = ("never", "") if reached is None else (f"{one['reached_wall_s']:.0f} s", f"{reached:,}")
        shares = percent(one["best_fraction"]), percent(one["confirmed_fraction"])
        rows.append((name, *when, f"{one['wall_s']:.0f} s", *shares))
    for scheme in [name for name in held_out["fraction_of_oracle"] if name != "oracle"]:
        label = {"bbr": "BBR", "cubic": "Cubic"}.get(scheme, scheme)
        shares = percent(held_out["fraction_of_oracle"][scheme]), percent(fresh["fraction_of_oracle"][scheme])
        rows.append((label, "", "", "", *shares))
    last = f"best of its evaluations ({held_out['episodes']} held-out draws)"
    head = ["", f"{goal} after", "decisions by then", "whole training", last, f"on {fresh['episodes']} fresh draws"]
    machines = (one["machine"] for one in recorded["machines"])
    where = sorted({f"{machine['processor']}, {machine['cores']} cores" for machine in machines})
    lines = ["Percentages are shares of the oracle's mean reward on the same draws.", "", *table(head, rows)]
    return [*lines, "", f"`{recorded['command']}`, on {'; '.join(where)}."]


def comparison(file: str) -> list[str]:
    """What `ccgym compare … --csv FILE` found."""
    with (ROOT / file).open(encoding="utf-8", newline="") as text:
        found = list(csv.DictReader(text))

    def interval(row: dict[str, str], name: str) -> str:
        if not row[name]:
            return ""
        middle, low, high = (decimals(row[key], 1) for key in (name, f"{name}_low", f"{name}_high"))
        return f"{middle} ({low} … {high})"

    shares = any(row["closed"] for row in found)
    rows = [
        (
            code(row["name"]),
            row["seeds"].replace("-", "−"),
            interval(row, "mean"),
            interval(row, "gain"),
            *([decimals(row["closed"], 0, 100) + " %" if row["closed"] else ""] if shares else []),
        )
        for row in found
    ]
    (over,) = (code(row["name"]) for row in found if not row["gain"])
    headings = ["", "each seed", "mean reward (95 %)", f"over {over} (95 %)"]
    return table([*headings, *(["of the gap to the oracle"] if shares else [])], rows)


def percent(fraction: float) -> str:
    """A share."""
    return f"{100 * fraction:.1f} %".replace("-", "−")


def field_meanings(kind: type[Any]) -> dict[str, str]:
    """The fields of a class with the texts that stand below them in its source."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef)
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in itertools.pairwise(body.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }  # fmt: skip


def options(model: type[BaseModel], *without: str) -> str:
    """The fields of a model, as YAML names them, with their texts; inherited ones last."""
    bases = [kind for kind in model.__mro__ if issubclass(kind, BaseModel) and kind is not BaseModel]
    meanings = {name: text for kind in reversed(bases) for name, text in field_meanings(kind).items()}
    own = [name for kind in bases for name in field_meanings(kind)]
    fields = {name: model.model_fields[name] for name in dict.fromkeys(own) if name in model.model_fields}
    return ". ".join(
        f"`{field.alias or name}`: {meanings[name][:1].lower()}{meanings[name][1:]}".rstrip(".").replace("``", "`")
        for name, field in fields.items()
        if name not in without
    )


def sentence(text: str) -> str:
    """The first sentence of a text."""
    return re.split(r"(?<=\.)\s", " ".join(text.split()), maxsplit=1)[0].replace("``", "`")


def metrics() -> list[str]:
    """What experiments measure."""
    rows = [
        (code(name), sentence(inspect.getdoc(sys.modules[kind.__module__]) or ""), options(kind, *Metric.model_fields))
        for name, kind in METRICS.items()
    ]
    return table(["Metric", "What it is", "Options"], rows)


def test_figures() -> list[str]:
    """What a test can show."""
    rows = [(code(one.name), one.title, options(one.options)) for one in figures_of("test") if one.options]
    return table(["Figure", "What it shows", "Options"], rows)


def experiments() -> list[str]:
    """The experiments that come with ccgym."""
    files = sorted((ROOT / "configs/experiments").glob("*.yaml"))
    titles = [parse_yaml(file.read_text(), file.name).data["title"] for file in files]
    return table(["Name", ""], [(code(file.stem), title) for file, title in zip(files, titles, strict=True)])


def stress_tests() -> list[str]:
    """What each stress test is, in the order of the page."""
    folder = ROOT / "configs/experiments"
    names = parse_yaml((folder / "weaknesses.yaml").read_text(), "weaknesses.yaml").data["include"]
    tests = [parse_yaml((folder / name).read_text(), name).data for name in names]
    rows = [(test["title"], test["setting"], test["threshold"], test["source"]) for test in tests]
    return table(["Test", "Setting", "Passes", "After"], rows)


def agents(file: str) -> dict[str, dict[str, Any]]:
    """A file of every agent that comes along, by the agent's name."""
    return {path.parent.name: json.loads(path.read_text()) for path in sorted((ROOT / "agents").glob(f"*/{file}"))}


def training_seeds() -> list[str]:
    """The spread of every agent's score over the seeds of its training."""
    rows = []
    for name, recorded in agents("seeds.json").items():
        scores = [one["confirmed_fraction"] for one in recorded["seeds"]]
        low, middle, high = min(scores), statistics.median(scores), max(scores)
        fresh = recorded["confirmation"]
        best = max((value, scheme) for scheme, value in fresh["fraction_of_oracle"].items() if scheme != "oracle")
        chosen = "chosen" if recorded["exported"].get("asked_for") else "median"
        exported = next(one for one in recorded["seeds"] if one["seed"] == recorded["exported"]["seed"])
        rows.append(
            (code(name), len(scores), *map(percent, (low, middle, high)), f"{100 * statistics.stdev(scores):.1f}",
             f"{percent(exported['confirmed_fraction'])}, {chosen}",
             f"{percent(best[0])} ({best[1]})", fresh["episodes"])
        )  # fmt: skip
    head = ["", "Seeds", "Minimum", "Median", "Maximum", "Deviation, points", "The one that comes along"]
    return table([*head, "Best baseline", "Fresh draws"], rows)


def certificates() -> list[str]:
    """What is proven of every agent that comes along."""
    rows = []
    for name, card in agents("card.json").items():
        for place, (kind, one) in enumerate(card.get("certificate", {}).get("properties", {}).items()):
            parts = (one["held"], one["proven"], one["refuted"], abs(1 - one["proven"] - one["refuted"]))
            covers = card["certificate"]["sound_for"]
            shown = (code(name), covers) if place == 0 else ("", "")
            rows.append((shown[0], kind, one["boxes"], *(f"{100 * part:.1f} %" for part in parts), shown[1]))
    return table(["", "After a round trip that was", "Boxes", "Holds in the middle", "Proven", "Refuted", "Open",
                  "A proof covers every"], rows)  # fmt: skip


def configurations() -> list[str]:
    """The agents whose configurations come with ccgym: the first sentence of each file's head."""
    files = sorted((ROOT / "configs").glob("*.yaml"))
    heads = [re.split(r"(?m)^[^#]", file.read_text(), maxsplit=1)[0].replace("#", "") for file in files]
    links = [f"[`{file.stem}`](../configs/{file.name})" for file in files]
    return table(["Configuration", ""], zip(links, map(sentence, heads), strict=True))


def frame_columns(meanings: Mapping[str, str]) -> list[str]:
    """The columns of a table of results."""
    return table(
        ["Column", ""], [(code(name), text[0].upper() + text[1:].rstrip(".")) for name, text in meanings.items()]
    )


def raw_arrays() -> list[str]:
    """What a run holds as arrays."""
    run = field_meanings(RunRecord)
    meanings = {f"run.{name}": run[name] for name in ("series", "packets")}
    meanings |= {f"run.curves().{name}": text for name, text in field_meanings(RunCurves).items()}
    meanings |= {f"run.curves().flows[i].{name}": text for name, text in field_meanings(FlowCurves).items()}
    return table(["Attribute", ""], [(code(name), text.replace("``", "`")) for name, text in meanings.items()])


def recorded(experiment: str) -> dict[str, dict[str, dict[str, float]]]:
    """What an experiment left in docs/data, by scheme, condition and metric: means over the runs."""
    means: dict[str, dict[str, dict[str, float]]] = {}
    with (ROOT / f"docs/data/{experiment}.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            if row["mean"]:
                means.setdefault(row["scheme"], {}).setdefault(row["condition"], {})[row["metric"]] = float(row["mean"])
    return means


def met(metric: str, scheme: str, **at: str) -> float:
    """The mean of a metric of all against all over the conditions with these coordinates."""
    found = [
        float(row[metric])
        for row in meetings()
        if row["scheme"] == scheme and row[metric] and at.items() <= row.items()
    ]
    return sum(found) / len(found)


def meetings() -> list[dict[str, str]]:
    """What all against all left in docs/data: a row for every scheme and condition."""
    return kept_rows("coexistence")


def met_schemes() -> list[str]:
    """The schemes of all against all."""
    return list(dict.fromkeys(row["scheme"] for row in meetings()))


def pairs() -> list[str]:
    """How two flows of one scheme share a link."""
    head = [""]
    for rtt in ("20 ms", "80 ms"):
        head += [f"{rtt}: first flow", "second flow", "Jain's index", "queueing delay"]
    rows = []
    for name in met_schemes():
        cells = []
        for rtt in ("20ms", "80ms"):
            own = {"opponent": "itself", "buffer": "1bdp", "rtt": rtt}
            first, second = (
                (met("other_share", name, **own, first=one) + met("share", name, **own, first=other)) / 2
                for one, other in (("opponent", "scheme"), ("scheme", "opponent"))
            )
            delay = met("queueing_delay", name, **own)
            cells += [percent(first), percent(second), f"{met('jain', name, **own):.2f}", f"{delay:.1f} ms"]
        rows.append((code(name), *cells))
    return table(head, rows)


def coexistence() -> list[str]:
    """Shares and harm of every scheme, by opponent and buffer."""
    buffers = ("0.5bdp", "1bdp", "4bdp")

    def by_buffer(metric: str, name: str, opponent: str) -> str:
        return " / ".join(f"{100 * met(metric, name, opponent=opponent, buffer=size):.0f}" for size in buffers)

    def harm(name: str, opponent: str) -> str:
        kinds = ("throughput_harm", "delay_harm", "loss_harm")
        return " / ".join(f"{100 * met(kind, name, opponent=opponent):.0f}" for kind in kinds)

    head = ["", "Share with Cubic", "Share with BBR", "Share with Reno", "Harm to Cubic", "Harm to Reno"]
    rows = [
        (code(name), *(by_buffer("share", name, one) for one in ("cubic", "bbr", "reno")),
         *(harm(name, one) for one in ("cubic", "reno")))
        for name in met_schemes()
    ]  # fmt: skip
    return table(head, rows)


LINKS = {
    "verizon-lte": "Verizon LTE",
    "tmobile-lte": "T-Mobile LTE",
    "tmobile-lte-driving": "T-Mobile LTE, driving",
}
"""The links of the experiment ``cellular``, and what the page calls them."""


def published_cellular() -> list[dict[str, str]]:
    """Pantheon's published means over a cellular link, with the scheme of ours and a note."""
    with (ROOT / "docs/data/pantheon-cellular.csv").open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


def measured_cellular(row: Mapping[str, str], file: str, link: str) -> dict[str, float] | None:
    """Our means of a published scheme over a link; None where it was not run."""
    if not (ROOT / f"docs/data/{file}.csv").exists():
        return None
    key = row["scheme"].replace(":", "_").replace("=", "_")
    return recorded(file).get(key, {}).get(f"link={link}")


def cellular_columns() -> dict[str, tuple[str, str]]:
    """The columns of ours that there are numbers for: heading, then file and link."""
    files = {"cellular": "", "cellular-emulated": ", emulated"}
    return {
        f"{name}{suffix}": (file, link)
        for link, name in LINKS.items()
        for file, suffix in files.items()
        if (ROOT / f"docs/data/{file}.csv").exists()
    }


def cellular() -> list[str]:
    """Pantheon's published means over a cellular link, and ours over recorded ones."""

    def numbers(throughput: object, delay: object, loss: object) -> str:
        return f"{float(str(throughput)):.2f} / {float(str(delay)):.0f} / {float(str(loss)):.2f}"

    columns = cellular_columns()
    rows: list[Sequence[str]] = []
    for row in published_cellular():
        given = (row["throughput_mbps"], row["delay_p95_ms"], row["loss_percent"])
        found = [measured_cellular(row, *column) for column in columns.values()]
        cells = ["–" if m is None else numbers(m["throughput"], m["delay_p95"], 100 * m["loss"]) for m in found]
        rows.append((row["label"], numbers(*given) if all(given) else "no run succeeded", *cells, row["note"]))
    return table(["", "Published", *columns, "Why they differ"], rows)


def cellular_places() -> list[str]:
    """The places of the schemes by throughput and by delay, among those that both have."""
    columns = cellular_columns()
    both = [
        row for row in published_cellular() if row["delay_p95_ms"] and measured_cellular(row, "cellular", "verizon-lte")
    ]

    def places(values: Sequence[tuple[float, float] | None]) -> list[str]:
        known = [one for one in values if one is not None]
        return [
            "–" if one is None else f"{1 + sum(x[0] > one[0] for x in known)} / {1 + sum(x[1] < one[1] for x in known)}"
            for one in values
        ]

    shown = [places([(float(row["throughput_mbps"]), float(row["delay_p95_ms"])) for row in both])]
    for column in columns.values():
        found = [measured_cellular(row, *column) for row in both]
        shown.append(places([None if m is None else (m["throughput"], m["delay_p95"]) for m in found]))
    rows = [(row["label"], *own) for row, own in zip(both, zip(*shown, strict=True), strict=True)]
    return table(["", "Published", *columns], rows)


@cache
def kept_rows(name: str) -> list[dict[str, str]]:
    """The rows of a table in docs/data."""
    with (ROOT / f"docs/data/{name}.csv").open(encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


LEAGUE_SECTIONS = {
    "ccbench_single": "One flow",
    "ccbench_cubic": "With Cubic",
    "cellular": "Cellular",
    "genet_rl3": "RL3",
    "prudentia": "Prudentia",
}
"""The sections of the league, and what its page calls them."""


def league_of(section: str, table: str = "league") -> dict[str, dict[str, str]]:
    """The ranking of a section of the league, by scheme, from best to worst."""
    return {row["scheme"]: row for row in kept_rows(table) if row["section"] == section}


def decimals(text: str, digits: int = 2, scale: float = 1.0) -> str:
    """A number of a table in docs/data; a dash where there is none."""
    return f"{scale * float(text):.{digits}f}".replace("-", "−") if text else "–"


def league(kept: str = "league") -> list[str]:
    """The league's ranking over all sections, with the rating in each."""
    parts = {name: league_of(name, kept) for name in LEAGUE_SECTIONS}
    rows = [
        (row["rank"], code(scheme), decimals(row["rating"]),
         f"[{decimals(row['rating_low'])}, {decimals(row['rating_high'])}]",
         *(decimals(part.get(scheme, {}).get("rating", "")) for part in parts.values()),
         decimals(parts["ccbench_single"].get(scheme, {}).get("worst", "")))
        for scheme, row in league_of("all", kept).items()
    ]  # fmt: skip
    return table(["", "", "Rating", "95 %", *LEAGUE_SECTIONS.values(), "Worst tenth, one flow"], rows)


def league_games() -> list[str]:
    """Winning rates among all schemes, in percent: with ccBench's rounding / without."""
    both = [league_of(name) for name in ("ccbench_single", "ccbench_cubic")]
    order = sorted(both[0], key=lambda one: -float(both[0][one]["winning_rate"] or -1))
    keys = ("winning_rate", "winning_rate_exact")
    rows = [
        (code(scheme), *(decimals(part[scheme][key], 1, 100) for part in both for key in keys))
        for scheme in order
        if both[0][scheme]["winning_rate"] and scheme in both[1]
    ]  # fmt: skip
    return table(["", "One flow", "exact", "With Cubic", "exact"], rows)


def league_published(section: str) -> list[str]:
    """Published winning rates next to ours among the same schemes, in percent."""
    rows = [
        (row["label"] + (f" for {row['instead']}" if row["instead"] else ""),
         *(decimals(row[key], 1, 100) for key in ("published", "as_published", "exact")))
        for row in kept_rows("league-published")
        if row["section"] == section
    ]  # fmt: skip
    return table(["", "Published", "Ours, as published", "Ours, exact"], rows)


def league_weights() -> list[str]:
    """The rank of each scheme by the weight of the throughput."""
    known = {scheme: row for scheme, row in league_of("all").items() if row["weight_1"]}
    weights = [name for name in kept_rows("league")[0] if name.startswith("weight_")]
    order = sorted(known, key=lambda one: int(known[one]["weight_1"]))
    rows = [(code(scheme), *(known[scheme][weight] for weight in weights)) for scheme in order]
    return table(["", *(name.replace("weight_", "w = ") for name in weights)], rows)


def shells() -> list[str]:
    """What mahimahi's shell and ours did with the same packets, as recorded."""
    sys.path.insert(0, str(ROOT / "tests" / "differential" / "record"))
    import record_shell

    return str(record_shell.table(json.loads(record_shell.SUMMARY.read_text())["cases"])).splitlines()


BLOCKS: dict[str, dict[str, Callable[[], list[str]]]] = {
    "docs/aurora.md": {"aurora-results": partial(results, "aurora")},
    "docs/genet.md": {
        "genet-results": partial(results, "genet"),
        "genet-comparison": partial(comparison, "docs/data/genet.csv"),
    },
    "docs/indigo.md": {"indigo-results": partial(results, "indigo")},
    "docs/muses.md": {f"{name}-results": partial(results, name) for name in pretrained() if name.startswith("muses")},
    "docs/orca.md": {"orca-results": partial(results, "orca")},
    "docs/eagle.md": {f"{name}-results": partial(results, name) for name in ("eagle", "eagle_v1", "eagle_v2")},
    "docs/agents.md": {
        "signals": signals,
        "functions": partial(words, "functions", "Function"),
        "transforms": partial(words, "transforms", "Key"),
        "maps": maps,
        "terms": terms,
        "clocks": partial(kinds, "Clock"),
        "starts": partial(kinds, "Start"),
        "guards": partial(kinds, "Guard"),
        "experts": partial(kinds, "Expert"),
        "observation": partial(keys, "Observation"),
        "configurations": configurations,
        "action": partial(keys, "Action"),
    },
    "docs/coexistence.md": {"coexistence": coexistence},
    "docs/league.md": {
        "league": league,
        "league-games": league_games,
        "league-quick": partial(league, "league-quick"),
        "league-single": partial(league_published, "ccbench_single"),
        "league-cubic": partial(league_published, "ccbench_cubic"),
        "league-weights": league_weights,
    },
    "docs/cellular.md": {"cellular": cellular, "cellular-places": cellular_places},
    "docs/schemes.md": {"schemes": scheme_table, "pairs": pairs, "policies": policy_table, "tools": tool_sections},
    "docs/experiments.md": {"experiments": experiments, "metrics": metrics, "figures": test_figures},
    "docs/weaknesses.md": {"stress-tests": stress_tests, "training-seeds": training_seeds},
    "docs/deployment.md": {"certificates": certificates},
    "docs/traces.md": {"elements": partial(kinds, "Element"), "queues": partial(kinds, "Queue")},
    "docs/results.md": {
        "flow-columns": partial(frame_columns, {**FLOW_COLUMN, **field_meanings(FlowRecord)}),
        "series-columns": partial(frame_columns, SERIES_COLUMNS),
        "packet-columns": partial(frame_columns, PACKET_COLUMNS),
        "result-columns": partial(frame_columns, RUN_COLUMNS),
        "raw-arrays": raw_arrays,
    },
    "docs/validation.md": {"shells": shells},
    "docs/environments.md": {
        "environments": environments,
        "distributions": distributions,
        "interval": lambda: columns(_core.AgentBatch.columns()),
        "truth": lambda: columns(_core.AgentBatch.truth_columns()),
    },
    **{f"docs/schemes/{s['name']}.md": {"scheme": partial(scheme_head, s["name"])} for s in contestants()},
}
"""Pages that are written by hand, and what is written into them."""


def filled(page: str) -> str:
    """A page with its blocks as they should be."""
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, block in BLOCKS[page].items():
        begin, end = f"<!-- begin {name}: written by `make docs` -->\n", f"<!-- end {name} -->"
        pattern = re.compile(re.escape(begin) + ".*?" + re.escape(end), re.DOTALL)
        if len(pattern.findall(text)) != 1:
            raise SystemExit(f"{page}: expected one block that begins with {begin.strip()} and ends with {end}")
        whole = "\n".join([begin, *block(), "", end])
        text = pattern.sub(lambda _, whole=whole: whole, text)
    return text


PAGES = {
    "ccgym/config/models.py": models.module,
    **{name: partial(filled, name) for name in BLOCKS},
}


def stale() -> dict[str, str]:
    """The pages whose text is not what it should be, with what it should be."""
    fresh = {name: page() for name, page in PAGES.items()}
    return {
        name: text
        for name, text in fresh.items()
        if not (ROOT / name).exists() or (ROOT / name).read_text(encoding="utf-8") != text
    }


def main() -> int:
    """Entry point."""
    changed = stale()
    if "--check" in sys.argv[1:]:
        print("\n".join(f"{name} is stale: run `make docs`" for name in changed))
        return int(bool(changed))
    for name, text in changed.items():
        (ROOT / name).write_text(text, encoding="utf-8")
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
