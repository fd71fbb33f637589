"""``ccgym describe``: show observation, action, reward and paths of an agent, with units and ranges."""

from __future__ import annotations

import argparse
import copy
import importlib
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ccgym.cli.command import Command
from ccgym.cli.common import print_table, say, say_json
from ccgym.cli.options import AS_JSON, CONFIG, SET
from ccgym.errors import ConfigError, NotFoundError, did_you_mean, shown
from ccgym.units import format_time

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue

    from ccgym.config.agent import AgentConfig
    from ccgym.envs.config import EnvironmentConfig

_EXAMPLES: Final = """\
  ccgym describe configs/aurora.yaml
  ccgym describe aurora --full                           each number of the history on its own line
  ccgym describe aurora --set agent.observation.history=5
  ccgym describe aurora --json
  ccgym describe --signals                               all signals, maps and terms for agents
  ccgym describe --schema                                the kinds of YAML files
  ccgym describe --schema config > config.schema.json
  # yaml-language-server: $schema=config.schema.json     as first line of a YAML file, for most editors
"""

_FIRST: Final = ("name", "unit", "low", "high", "formula")
"""First columns of the vocabulary's tables."""
_SECTIONS: Final = ("algorithm", "training", "evaluation", "deployment")
"""Sections that are shown as in the file."""


def _describe(arguments: argparse.Namespace) -> int:
    if arguments.schema is not None:
        if arguments.schema:
            say_json(json_schema(arguments.schema))
        else:
            for kind, (_, meaning) in KINDS.items():
                say(f"{kind:<{max(map(len, KINDS))}}  {meaning}")
        return 0
    if arguments.signals:
        from ccgym.config.agent import vocabulary

        (say_json if arguments.json else _print_vocabulary)(vocabulary())
        return 0
    if arguments.config is None:
        raise ConfigError(
            "argument-missing",
            "no configuration",
            expected="a YAML file, a name like aurora, --signals or --schema",
            where="CONFIG",
        )
    description = describe(arguments.config, arguments.overrides)
    if arguments.json:
        say_json(description)
    else:
        _print(description, arguments.full)
    return 0


# --- JSON Schema of YAML files, so that editors complete and check them ---

KINDS: Final = {
    "config": ("ccgym.training.config:TrainConfig", "configs/*.yaml: an agent, its environment and its training"),
    "ablation": ("ccgym.training.config:TrainConfig", "configs/ablations/*.yaml: an extension of a configuration"),
    "experiment": (
        "ccgym.experiments.spec:ExperimentSpec",
        "configs/experiments/*.yaml: paths, contenders, metrics, criteria",
    ),
    "agent": ("ccgym.config.agent:AgentConfig", "the section `agent` of a configuration"),
    "path": ("ccgym.config.path:NetworkPath", "one path between sender and receiver"),
    "program": (
        "ccgym.schemes.programs.declaration:Declaration",
        "schemes/programs/*.yaml: sender and receiver of an external program",
    ),
    "paths": ("ccgym.config.catalog_file:CatalogFile", "traces/paths.yaml: named traces and paths"),
}
"""Kinds of YAML files: ``module:model`` and a description. To add a kind, add a line."""

EXTENDABLE: Final = ("config", "ablation")
"""Kinds whose files may extend another file."""


def json_schema(kind: str) -> JsonSchemaValue:
    """Return the JSON Schema of a kind of YAML file.

    A file that extends another one may leave out any entry, and may change a list by the names of its items.

    Raises:
        NotFoundError: There is no such kind.
    """
    from pydantic import TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema

    class Lenient(GenerateJsonSchema):
        """Allow any value where only Python code can check it."""

        def emit_warning(self, kind: Any, detail: str) -> None:
            """Leave out defaults that JSON cannot represent."""

        def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:
            return {}

    if kind not in KINDS:
        raise NotFoundError(
            "unknown-kind",
            f"unknown kind {shown(kind)}",
            expected=f"one of {', '.join(KINDS)}",
            hint=did_you_mean(kind, KINDS),
        )
    module, _, name = KINDS[kind][0].partition(":")
    model = getattr(importlib.import_module(module), name)
    whole = TypeAdapter(model).json_schema(schema_generator=Lenient)
    if kind not in EXTENDABLE:
        return whole
    definitions = whole.pop("$defs", {})
    partial = relaxed(whole)
    partial["properties"] = {"extends": {"type": "string", "description": "The file that this file changes."},
                             **partial["properties"]}  # fmt: skip
    changed = {f"{key}.changed": relaxed(part) for key, part in definitions.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "if": {"required": ["extends"]},
        "then": partial,
        "else": whole,
        "$defs": {**definitions, **changed},
    }


def relaxed(schema: Any) -> Any:
    """Return a schema for changes: nothing is required, and a mapping of names may replace a list."""
    schema = copy.deepcopy(schema)
    if isinstance(schema, list):
        return [relaxed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if not isinstance(schema.get("required"), dict):
        schema.pop("required", None)
    schema = {key: relaxed(part) for key, part in schema.items()}
    if isinstance(schema.get("$ref"), str):
        schema["$ref"] += ".changed"
    if isinstance(schema.get("discriminator"), dict):
        del schema["discriminator"]
    if schema.get("type") == "array":
        return {"anyOf": [schema, {"type": "object"}]}
    return schema


# --- A configuration as data ---


def describe(config: str, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Return the description of a configuration file as data; only its section ``agent`` is required.

    Args:
        config: A YAML file, or a name from ``configs/``.
        overrides: Settings ``"a.b=c"``, as in :func:`ccgym.config.yaml_loader.load_model`.

    Returns:
        ``name``, ``source``, ``agent`` (:meth:`AgentConfig.describe`, and ``reward_scale``, ``native``),
        ``environment`` (``paths``, ``episode``, ``learner``, ``flows``), and the other sections as in the file.

    Raises:
        ConfigError: The file is wrong; the error contains file and line.
    """
    from pydantic import BaseModel, ConfigDict

    from ccgym.config import agent as agents
    from ccgym.config.configurations import find_config
    from ccgym.config.yaml_loader import load_model
    from ccgym.envs import config as environments

    class File(BaseModel):
        model_config = ConfigDict(frozen=True, extra="allow")

        name: str = ""
        agent: agents.AgentConfig
        environment: environments.EnvironmentConfig | None = None

    path = find_config(config)
    loaded = load_model(path, File, overrides)
    others = loaded.model_extra or {}
    return {
        "name": loaded.name or loaded.agent.name,
        "source": str(path),
        "agent": _agent(loaded.agent),
        "environment": None if loaded.environment is None else _environment(loaded.environment),
        **{section: others[section] for section in _SECTIONS if section in others},
    }


def _agent(agent: AgentConfig) -> dict[str, Any]:
    described = agent.describe()
    for row, (slot, age) in zip(described["observation"], columns(agent, len(described["observation"])), strict=True):
        row.update(slot=slot, age=age)
    return {**described, "reward_scale": agent.reward.scale, "native": agent.native()}


def columns(agent: AgentConfig, size: int) -> list[tuple[int, int]]:
    """Return the layout of an observation: per number, the index in its interval's row, and the interval's age.

    The oldest interval is first. Each interval has the features with a long enough history, then the previous action.
    """
    histories = [feature.history or agent.observation.history for feature in agent.observation.features]
    actions = (size - sum(histories)) // agent.observation.history
    found = []
    for age in reversed(range(agent.observation.history)):
        found += [(place, age) for place, history in enumerate(histories) if history > age]
        found += [(len(histories) + place, age) for place in range(actions)]
    return found


def _environment(environment: EnvironmentConfig) -> dict[str, Any]:
    paths = environment.paths
    if environment.path is not None:
        from ccgym.config.distributions import Fixed

        paths = Fixed(path=environment.path)
    assert paths is not None
    episode, duration = environment.episode, environment.episode.duration
    return {
        "paths": paths.describe(),
        "episode": {"steps": episode.steps, "duration": None if duration is None else format_time(duration)},
        "learner": environment.learner.model_dump(mode="json", exclude_defaults=True),
        "flows": [flow.model_dump(mode="json", exclude_defaults=True) for flow in environment.flows],
    }


# --- As text ---------------------------------------------------------------------------------------------------


def _print(description: Mapping[str, Any], full: bool) -> None:
    agent = description["agent"]
    say(f"{description['name']}: {description['source']}")
    facts = {"decides": agent["clock"], "starts": agent["startup"], "guard": agent["guard"], "expert": agent["expert"]}
    if agent["native"].get("ecn"):
        facts["ecn"] = "its packets are sent ECN-capable: ECT(0)"
    for name, fact in facts.items():
        if fact is not None:
            say(f"  {name:<9} {fact}")
    numbers = ("index", "name", "unit", "low", "high", "formula")
    rows = agent["observation"]
    intervals = 1 + max(row["age"] for row in rows)
    seen = f" of {intervals} intervals, oldest first" if intervals > 1 else ""
    if not full:
        same = {row["slot"]: _places([one["index"] for one in rows if one["slot"] == row["slot"]]) for row in rows}
        rows = [{**row, "index": same[row["slot"]]} for row in rows if row["age"] == 0]
    _print_rows(f"observation: {len(agent['observation'])} numbers{seen}", numbers, rows)
    _print_rows(_action_title(agent), numbers, agent["action"])
    _print_reward(agent)
    if description["environment"] is not None:
        _print_environment(description["environment"])
    for section in _SECTIONS:
        if section in description:
            say(f"\n{section}")
            print_table(("setting", "value"), list(_flat(description[section])))


def _print_rows(title: str, header: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """Print a table with a title and the columns of the header."""
    say(f"\n{title}")
    if rows:
        plain = [{**row, "unit": ""} if row.get("unit") == "1" else row for row in rows]
        print_table(header, [tuple(_text(row.get(key)) for key in header) for row in plain])


def _places(indices: Sequence[int]) -> str:
    """Return the indices of a number as text: ``2, 5, … 29 (×10)``."""
    if len(indices) < 4:
        return ", ".join(map(str, indices))
    return f"{indices[0]}, {indices[1]}, … {indices[-1]} (×{len(indices)})"


def _action_title(agent: Mapping[str, Any]) -> str:
    from ccgym.envs.config import DISCRETE_MAPS

    count = len(agent["action"])
    if agent["native"]["action"]["map"]["kind"] in DISCRETE_MAPS:
        return f"action: one of {count}; low and high bound the controlled value"
    return f"action: {count} number{'' if count == 1 else 's'}"


def _print_reward(agent: Mapping[str, Any]) -> None:
    scale = agent["reward_scale"]
    weights = [term["weight"] for term in agent["native"]["reward"]["terms"]]  # weights of the rows include the scale
    rows = []
    for row, weight in zip(agent["reward"], weights, strict=True):
        phases = f"; in {', '.join(row['phases'])}" if row["phases"] else ""
        truth = "; needs the ground truth" if row["needs_truth"] else ""
        rows.append({**row, "weight": float(weight), "formula": f"{row['formula']}{phases}{truth}"})
    whole = f"{'' if scale == 1 else f'{scale:g} × '}sum of weight × term, per decision" if rows else "none"
    _print_rows(f"reward: {whole}", ("name", "weight", "unit", "formula"), rows)


def _print_environment(environment: Mapping[str, Any]) -> None:
    paths, episode = environment["paths"], environment["episode"]
    stages = [f"\n  until {one['until']:g} of the training: {one['summary']}" for one in paths.get("stages", ())]
    rows = [{**row, "number": row["name"]} for row in paths["numbers"]]
    _print_rows(f"paths: {paths['summary']}{''.join(stages)}", ("number", "unit", "low", "high", "distribution"), rows)
    limits = [f"{episode['steps']} decisions"] if episode["steps"] is not None else []
    limits += [f"{episode['duration']} of virtual time"] if episode["duration"] is not None else []
    say(f"\nepisode: {' or '.join(limits)}")
    for name, flow in (("its flow", environment["learner"]), *(("other flow", one) for one in environment["flows"])):
        if flow:
            say(f"  {name}: {', '.join(f'{key} {_text(value)}' for key, value in flow.items())}")


def _print_vocabulary(words: Mapping[str, Any]) -> None:
    for section, rows in words.items():
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            say(f"\n{section}\n  {rows if isinstance(rows, str) else json.dumps(rows, ensure_ascii=False)}")
            continue
        keys = dict.fromkeys(key for row in rows for key in row)
        _print_rows(
            section, (*(key for key in _FIRST if key in keys), *(key for key in keys if key not in _FIRST)), rows
        )


def _text(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _flat(section: object, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield the settings of a section with dotted names."""
    if isinstance(section, dict):
        for key, value in section.items():
            yield from _flat(value, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, _text(section)


COMMAND: Final = Command(
    "describe",
    run=_describe,
    description="Describe a configuration: every observation and action with name, unit, range and formula, the\n"
    "reward's terms with weights and units, the decision times, and the distribution of paths.",
    examples=_EXAMPLES,
    options={
        "[CONFIG]": CONFIG,
        **SET,
        "--full": "print a line for each number of the observation",
        "| --signals": "list all signals, maps and terms instead",
        "| --schema [KIND]": "print the JSON Schema of a kind of YAML file instead, or list the kinds",
        **AS_JSON,
    },
)
