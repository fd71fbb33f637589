"""Tables of declarations in the code: agents, paths, commands, environments, experiments, metrics, results."""

from __future__ import annotations

import ast
import inspect
import itertools
import json
import re
import sys
import textwrap
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from pydantic import BaseModel

from ccgym import _core
from ccgym.cli.command import Command, key_of
from ccgym.cli.main import FORMER, load
from ccgym.config.agent import vocabulary
from ccgym.config.distributions import presets
from ccgym.config.quantities import Limit
from ccgym.config.yaml_loader import parse_yaml
from ccgym.envs.registration import PRESETS
from ccgym.evaluation.ccperf_names import DEFINITIONS
from ccgym.evaluation.curves import FlowCurves, RunCurves
from ccgym.evaluation.results import RUN_COLUMNS
from ccgym.evaluation.results_file import Measurement
from ccgym.evaluation.run_numbers import FLOW_COLUMN, PACKET_COLUMNS, SERIES_COLUMNS, FlowRecord
from ccgym.evaluation.run_record import RunRecord
from ccgym.experiments.catalogue import load_catalogue
from ccgym.experiments.expand import conditions
from ccgym.experiments.load import load_experiment
from ccgym.experiments.metrics import METRICS, Metric
from ccgym.experiments.metrics.base import OverTime
from ccgym.experiments.spec import ExperimentSet
from ccgym.invocation import COMMANDS
from ccgym.report.figures import figures_of
from ccgym.training.algorithms import config as algorithms
from ccgym.training.config import DeploymentConfig, EvaluationConfig, PolicyStyle, TrainingConfig
from ccgym.units import format_rate, format_time
from pages.markdown import ROOT, between, code, sentence, table, uncapitalized

SECTIONS = {
    "training": TrainingConfig,
    "evaluation": EvaluationConfig,
    "deployment": DeploymentConfig,
    "style": PolicyStyle,
    "algorithm: {name: ppo}": algorithms.PpoConfig,
    "algorithm: {name: a2c}": algorithms.A2cConfig,
    "algorithm: {name: dagger}": algorithms.DaggerConfig,
    "algorithm: {name: distill}": algorithms.DistillConfig,
    "algorithm: {name: cross_entropy}": algorithms.CrossEntropyConfig,
    "lstm": algorithms.Lstm,
    "normalize": algorithms.Normalize,
    "perturbation": algorithms.Perturbation,
    "prefix": algorithms.Prefix,
    "soft": algorithms.Soft,
    "imitation": algorithms.Imitation,
}
"""The sections of a training's configuration, and their parts."""

# --- What the native core declares -----------------------------------------------------------------------------------

SCHEMA: dict[str, Any] = json.loads(_core.schema())


def quantity(value: Any, schema: dict[str, Any]) -> str:
    """Return a default value as users write it."""
    form = schema.get("format", "")
    if form == "limit":
        return str(Limit(**value))
    writers = {"time": format_time, "milliseconds": format_time, "rate": format_rate}
    if isinstance(value, int) and form in writers:
        return writers[form](value)
    return "none" if value is None else json.dumps(value).strip('"')


def parameter(name: str, schema: dict[str, Any], required: bool) -> str:
    """Return the description of a parameter: name, default, choices, range and help."""
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
    return f"`{name}`{shown}" + (f": {uncapitalized(help_text)}" if help_text else "")


def words_of(schema: dict[str, Any]) -> list[str]:
    """Return the allowed words of a parameter, if a separate definition contains them."""
    target = SCHEMA.get(str(schema.get("$ref", "")).rpartition("/")[2], {})
    return target.get("enum") or [one["const"] for one in target.get("oneOf", ()) if "const" in one]


def parameters(schema: dict[str, Any]) -> list[str]:
    """Return all parameters of a definition."""
    given = {name: part for name, part in schema.get("properties", {}).items() if "const" not in part}
    return [parameter(name, part, name in schema.get("required", ())) for name, part in given.items()]


def kinds(name: str) -> list[str]:
    """Return the kinds of a union with their parameters."""
    rows = []
    for schema in SCHEMA[name]["oneOf"]:
        kind = next(part["const"] for part in schema["properties"].values() if "const" in part)
        if kind != "link":
            rows.append((code(kind), " ".join(schema["description"].split()), "; ".join(parameters(schema))))
    return table([name, "", "Parameters"], rows)


def keys(name: str) -> list[str]:
    """Return the keys of a mapping."""
    return table(["Key"], [(text,) for text in parameters(SCHEMA[name])])


def words(section: str, head: str) -> list[str]:
    """Return a section of the vocabulary with names and formulas."""
    return table([head, "Formula"], [(code(row["name"]), row["formula"]) for row in vocabulary()[section]])


def signals() -> list[str]:
    """Return the signals for observations of agents."""
    rows = [
        (code(r["name"]), "" if r["unit"] == "1" else r["unit"], between(r["low"], r["high"]), r["formula"])
        for r in vocabulary()["signals"]
    ]
    return table(["Signal", "Unit", "Range", "Formula"], rows)


def source(row: dict[str, Any]) -> str:
    """Return the source of an entry."""
    text: str = row["source"]
    return "" if text == "none" else text.removeprefix("none: ")


def maps() -> list[str]:
    """Return the action maps of agents."""
    rows = vocabulary()["maps"]
    return table(["Map", "What it does", "After"], [(code(r["name"]), r["formula"], source(r)) for r in rows])


def terms() -> list[str]:
    """Return the reward terms of agents."""
    rows = []
    for row in vocabulary()["terms"]:
        name = code(row["name"]) + (" (truth)" if row["needs_truth"] else "")
        given = "; ".join(parameter(key, part, "default" not in part) for key, part in row["parameters"].items())
        rows.append((name, row["formula"], given, source(row)))
    return table(["Term", "Value", "Parameters", "After"], rows)


def columns(names: list[str]) -> list[str]:
    """Return names of columns, in order."""
    return [", ".join(map(code, names))]


# --- What comes with ccgym ------------------------------------------------------------------------------------------


def configurations() -> list[str]:
    """Return the configurations that come with ccgym, with the first sentence of each file's head."""
    files = sorted((ROOT / "configs").glob("*.yaml"))
    heads = [re.split(r"(?m)^[^#]", file.read_text(), maxsplit=1)[0].replace("#", "") for file in files]
    links = [f"[`{file.stem}`](/configs/{file.name})" for file in files]
    return table(["Configuration", ""], zip(links, map(sentence, heads), strict=True))


def environments() -> list[str]:
    """Return the environments' ids."""
    rows = PRESETS.items()
    return table(["Id", "Defaults"], [(code(name), f"[`{c}.yaml`](/configs/{c}.yaml)") for name, c in rows])


def distributions() -> list[str]:
    """Return the named path distributions."""
    return table(["Name", "What it is, and where from"], [(code(n), one["source"]) for n, one in presets().items()])


def experiments() -> list[str]:
    """Return the experiments that come with ccgym."""
    files = sorted((ROOT / "configs/experiments").glob("*.yaml"))
    return table(["Name", ""], [(code(f.stem), parse_yaml(f.read_text(), f.name).data["title"]) for f in files])


def stress_tests() -> list[str]:
    """Return the description of each stress test, in the order of the page."""
    folder = ROOT / "configs/experiments"
    names = parse_yaml((folder / "stress_tests.yaml").read_text(), "stress_tests.yaml").data["include"]
    tests = [parse_yaml((folder / name).read_text(), name).data for name in names]
    rows = [[test[key] for key in ("title", "setting", "threshold", "source")] for test in tests]
    return table(["Test", "Setting", "Passes", "After"], rows)


def experiment_set(name: str) -> ExperimentSet:
    """Return a set of experiments by its name."""
    found = load_experiment(name)
    assert isinstance(found, ExperimentSet)
    return found


def rfc9743() -> list[str]:
    """Return requirements, their tests, and missing tests, in the order of the RFC."""
    found = experiment_set("rfc9743")
    known = {one.name: one for one in found.experiments}
    lines = []
    for row in found.rows:
        passes = "; ".join(f"{known[name].title}: {known[name].brief}" for name in row.names)
        missing = f"not tested yet: needs {row.missing}" if row.missing else ""
        author = f"for the author: {row.author}" if row.author else ""
        lines.append((row.section, row.title, row.level, passes, ". ".join(filter(None, (missing, author)))))
    return table(["Section", "Requirement", "Level", "Passes", "Open"], lines)


def catalogue() -> list[str]:
    """Return the parts of the catalogue with their numbers of experiments and runs."""
    lines = []
    for name, what in load_catalogue().parts.items():
        found = [(one, len(conditions(one))) for one in experiment_set(name).experiments]
        runs = sum(count * one.runs * one.draws for one, count in found)
        lines.append((code(name), what, len(found), sum(count for _, count in found), runs))
    return table(["Part", "", "Experiments", "Conditions", "Runs of a scheme"], lines)


def commands() -> list[str]:
    """Return every command with its options, from the tables of parsers and completion."""

    def of(command: Command, name: str, help: str) -> Iterator[str]:
        yield from (f"## `{name}`", "", f"{help[0].upper()}{help[1:]}.", "")
        rows = [(code(said["form"]), text, said["default"] or "") for key, text in command.options.items()
                if (said := key_of(key))["mark"] != "# "]  # fmt: skip
        if rows:
            yield from (*table(("option", "meaning", "default"), rows), "")
        for below in command.commands:
            yield from of(below, f"{name} {below.name}", below.help)

    return [line for name, (_, help) in COMMANDS.items() for line in of(load(name), f"ccgym {name}", help)]


def formers() -> list[str]:
    """Return the current names of the last release's commands."""
    return table(("former", "now"), [(code(f"ccgym {old}"), code(f"ccgym {new}")) for old, new in FORMER.items()])


def example() -> list[str]:
    """Return the content of examples/aimd.py."""
    return ["```python", *(ROOT / "examples" / "aimd.py").read_text(encoding="utf-8").splitlines(), "```"]


# --- What Python classes say of their fields -------------------------------------------------------------------------


def field_meanings(kind: type[Any]) -> dict[str, str]:
    """Return the fields of a class with the texts below them in its source."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef)
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in itertools.pairwise(body.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }  # fmt: skip


def options(model: type[BaseModel], *without: str) -> str:
    """Return the fields of a model, by their names in YAML, with their texts; inherited fields last."""
    bases = [kind for kind in model.__mro__ if issubclass(kind, BaseModel) and kind is not BaseModel]
    meanings = {name: text for kind in reversed(bases) for name, text in field_meanings(kind).items()}
    own = dict.fromkeys(name for kind in bases for name in field_meanings(kind))
    fields = {name: model.model_fields[name] for name in own if name in model.model_fields and name not in without}
    return ". ".join(
        f"`{field.alias or name}`: {uncapitalized(meanings[name])}".rstrip(".").replace("``", "`")
        for name, field in fields.items()
    )


def settings(model: type[BaseModel]) -> list[str]:
    """Return the keys of a section of a YAML file, with default and meaning; inherited keys last."""
    bases = [kind for kind in model.__mro__ if issubclass(kind, BaseModel) and kind is not BaseModel]
    meanings = {name: text for kind in reversed(bases) for name, text in field_meanings(kind).items()}
    own = dict.fromkeys(name for kind in bases for name in field_meanings(kind) if name in model.model_fields)
    rows = []
    for name in own:
        field = model.model_fields[name]
        value = field.get_default(call_default_factory=True)
        shown = "required" if field.is_required() else written(value) if not isinstance(value, BaseModel) else ""
        text = re.sub(r":\w+:`~?\.?([^`]*)`", r"`\1`", " ".join(meanings[name].split())).replace("``", "`")
        rows.append((code(field.alias or name), shown, text))
    return table(["Key", "Default", "Meaning"], rows)


def sections() -> list[str]:
    """Return every section of a training's configuration, and every algorithm."""
    lines: list[str] = []
    for title, model in SECTIONS.items():
        lines += [f"## {code(title)}", "", *settings(model), ""]
    return lines[:-1]


def written(value: Any) -> str:
    """Return a default value in YAML."""
    return "none" if value is None else code(json.dumps(value, default=str)) if value != "" else ""


def module_says(kind: type[Any]) -> str:
    """Return the first sentence of a class's module, without the name before a colon."""
    return re.sub(r"^[^:.]+: ", "", sentence(inspect.getdoc(sys.modules[kind.__module__]) or "")).rstrip(".")


def experiment_metrics() -> list[str]:
    """Return the metrics of experiments; the page explains the options that most metrics share."""
    shared = {kind: OverTime if issubclass(kind, OverTime) else Metric for kind in METRICS.values()}
    rows = [
        (code(name), module_says(kind), ". ".join(filter(None, (options(kind, *shared[kind].model_fields),
         "`flows`, `from`, `to`" if shared[kind] is OverTime else "")))) for name, kind in METRICS.items()
    ]  # fmt: skip
    return table(["Metric", "What it is", "Options"], rows)


def test_figures() -> list[str]:
    """Return the figures of tests."""
    rows = [(code(one.name), one.title, options(one.options)) for one in figures_of("test") if one.options]
    return table(["Figure", "What it shows", "Options"], rows)


def metrics() -> list[str]:
    """Return every metric that an experiment can name."""
    of = {"flow": "flow", "link": "link", "net": "all flows"}
    better = {"higher": "high", "lower": "low", "one": "near 1", "neither": ""}
    rows = [
        (
            code(one.name), of[one.scope], one.layer, "" if one.unit == "1" else one.unit, better[one.better],
            one.formula + (" (ours)" if one.ours else ""),
        )
        for one in DEFINITIONS.values()
    ]  # fmt: skip
    for name, kind in METRICS.items():
        unit = kind.model_fields["unit"].default
        rows.append((code(name), "run", kind.LAYER, unit, better[kind.BETTER], module_says(kind)))
    return table(["Metric", "of", "layer", "unit", "better", "What it is"], rows)


def frame_columns(meanings: Mapping[str, str]) -> list[str]:
    """Return the columns of a table of results."""
    return table(["Column", ""], [(code(n), text[0].upper() + text[1:].rstrip(".")) for n, text in meanings.items()])


def raw_arrays() -> list[str]:
    """Return the arrays of a run."""
    meanings = {
        "run.series": field_meanings(RunRecord)["series"],
        "run.packets": " ".join(str(RunRecord.packets.__doc__).split()),
    }
    for place, kind in (("run.curves()", RunCurves), ("run.curves().flows[i]", FlowCurves)):
        meanings |= {f"{place}.{name}": text for name, text in field_meanings(kind).items()}
    rows = [(code(name), text.replace("``", "`")) for name, text in meanings.items()]
    return table(["Attribute", ""], rows)


BLOCKS = {
    "docs/reference/agent-yaml.md": {
        "signals": signals,
        "functions": partial(words, "functions", "Function"),
        "transforms": partial(words, "transforms", "Key"),
        "maps": maps,
        "terms": terms,
        **{f"{name.lower()}s": partial(kinds, name) for name in ("Clock", "Start", "Guard", "Expert")},
        **{name.lower(): partial(keys, name) for name in ("Observation", "Action")},
        "configurations": configurations,
    },
    "docs/reference/training-yaml.md": {
        "sections": sections,
    },
    "docs/reference/commands.md": {"commands": commands, "former": formers},
    "docs/guides/environments.md": {
        "environments": environments,
        "interval": lambda: columns(_core.AgentBatch.columns()),
        "truth": lambda: columns(_core.AgentBatch.truth_columns()),
    },
    "docs/guides/path-distributions.md": {"distributions": distributions},
    "docs/guides/experiments.md": {"experiments": experiments},
    "docs/reference/experiment-yaml.md": {"metrics": experiment_metrics, "figures": test_figures},
    "docs/reference/metrics.md": {"metrics": metrics},
    "docs/guides/write-a-cca.md": {"example": example},
    "docs/reference/results.md": {
        "flow-columns": partial(frame_columns, {**FLOW_COLUMN, **field_meanings(FlowRecord)}),
        "series-columns": partial(frame_columns, SERIES_COLUMNS),
        "packet-columns": partial(frame_columns, PACKET_COLUMNS),
        "result-columns": partial(frame_columns, RUN_COLUMNS),
        "measurement-columns": partial(frame_columns, field_meanings(Measurement)),
        "raw-arrays": raw_arrays,
    },
    "docs/studies/rfc9743.md": {"rows": rfc9743, "catalogue": catalogue},
    "docs/reference/path-yaml.md": {"elements": partial(kinds, "Element"), "queues": partial(kinds, "Queue")},
    "docs/studies/stress-tests.md": {"stress-tests": stress_tests},
}
