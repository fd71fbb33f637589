"""``ccgym describe``: what an agent sees, does and is rewarded for, and on which paths, with units and ranges."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from ccgym.cli.command import Command
from ccgym.cli.common import print_table, say, say_json
from ccgym.cli.options import AS_JSON, CONFIG, SET
from ccgym.errors import ConfigError
from ccgym.units import format_time

if TYPE_CHECKING:
    from ccgym.config.agent import AgentConfig
    from ccgym.envs.settings import EnvironmentConfig

_EXAMPLES: Final = """\
  ccgym describe configs/aurora.yaml
  ccgym describe aurora --full                           each number of the history by itself
  ccgym describe aurora --set agent.observation.history=5
  ccgym describe aurora --json
  ccgym describe --signals                               everything that an agent can be made of
  ccgym describe --schema                                the kinds of YAML files
  ccgym describe --schema config > config.schema.json
  # yaml-language-server: $schema=config.schema.json     as first line of a YAML file, for most editors
"""

_FIRST: Final = ("name", "unit", "low", "high", "formula")
"""Columns of the vocabulary that come first."""
_SECTIONS: Final = ("algorithm", "training", "evaluation", "deployment")
"""Sections that are shown as they are written."""


def _describe(arguments: argparse.Namespace) -> int:
    if arguments.schema is not None:
        from ccgym.cli.schema import KINDS, json_schema

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


def describe(config: str, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Describe a configuration file as data; nothing but its section ``agent`` must be there.

    Args:
        config: A YAML file, or a name of ``configs/``.
        overrides: Settings ``"a.b=c"``, as in :func:`ccgym.config.yaml_loader.load_model`.

    Returns:
        ``name``, ``source``, ``agent`` (:meth:`AgentConfig.describe`, and ``reward_scale``, ``native``),
        ``environment`` (``paths``, ``episode``, ``learner``, ``flows``), and the other sections as they are written.

    Raises:
        ConfigError: The file is wrong; with file and line.
    """
    from pydantic import BaseModel, ConfigDict

    from ccgym.config import agent as agents
    from ccgym.config.configurations import find_config
    from ccgym.config.yaml_loader import load_model
    from ccgym.envs import settings

    class File(BaseModel):
        model_config = ConfigDict(frozen=True, extra="allow")

        name: str = ""
        agent: agents.AgentConfig
        environment: settings.EnvironmentConfig | None = None

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
    """What stands where in an observation: pairs of the place in an interval's row, and the interval's age.

    Intervals stand oldest first; each has the features that reach back so far, then the previous action.
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


# --- For people ---------------------------------------------------------------------------------------------------


def _print(description: Mapping[str, Any], full: bool) -> None:
    agent = description["agent"]
    say(f"{description['name']}: {description['source']}")
    say(f"  decides   {agent['clock']}")
    say(f"  starts    {agent['startup']}")
    say(f"  guard     {agent['guard']}")
    if agent["native"].get("ecn"):
        say("  ecn       its packets are sent ECN-capable: ECT(0)")
    if agent["expert"] is not None:
        say(f"  expert    {agent['expert']}")
    _print_observation(agent["observation"], full)
    _print_action(agent)
    _print_reward(agent)
    if description["environment"] is not None:
        _print_environment(description["environment"])
    for section in _SECTIONS:
        if section in description:
            say()
            say(section)
            print_table(("setting", "value"), list(_flat(description[section])))


def _print_observation(rows: Sequence[Mapping[str, Any]], full: bool) -> None:
    say()
    intervals = 1 + max(row["age"] for row in rows)
    seen = f" of {intervals} intervals, oldest first" if intervals > 1 else ""
    say(f"observation: {len(rows)} numbers{seen}")
    header = ("index", "name", "unit", "low", "high", "formula")
    if full:
        print_table(header, [(str(row["index"]), *_cells(row)) for row in rows])
        return
    newest = [row for row in rows if row["age"] == 0]
    lines = []
    for row in newest:
        same = [one["index"] for one in rows if one["slot"] == row["slot"]]
        lines.append((_places(same), *_cells(row)))
    print_table(header, lines)


def _places(indices: Sequence[int]) -> str:
    """Where a number stands: ``2, 5, … 29 (×10)``."""
    if len(indices) < 4:
        return ", ".join(map(str, indices))
    return f"{indices[0]}, {indices[1]}, … {indices[-1]} (×{len(indices)})"


def _print_action(agent: Mapping[str, Any]) -> None:
    from ccgym.envs.settings import DISCRETE_MAPS

    say()
    rows = agent["action"]
    if agent["native"]["action"]["map"]["kind"] in DISCRETE_MAPS:
        say(f"action: one of {len(rows)}; low and high bound what is steered")
    else:
        say(f"action: {len(rows)} number{'' if len(rows) == 1 else 's'}")
    if rows:
        print_table(
            ("index", "name", "unit", "low", "high", "formula"), [(str(row["index"]), *_cells(row)) for row in rows]
        )


def _print_reward(agent: Mapping[str, Any]) -> None:
    say()
    rows = agent["reward"]
    if not rows:
        say("reward: none")
        return
    scale = agent["reward_scale"]
    say(f"reward: {'' if scale == 1 else f'{scale:g} × '}sum of weight × term, per decision")
    lines = []
    weights = [term["weight"] for term in agent["native"]["reward"]["terms"]]  # those of the rows hold the scale
    for row, weight in zip(rows, weights, strict=True):
        phases = f"; in {', '.join(row['phases'])}" if row["phases"] else ""
        truth = "; needs the ground truth" if row["needs_truth"] else ""
        lines.append((row["name"], _number(weight), _unit(row["unit"]), f"{row['formula']}{phases}{truth}"))
    print_table(("name", "weight", "unit", "formula"), lines)


def _print_environment(environment: Mapping[str, Any]) -> None:
    say()
    paths = environment["paths"]
    say(f"paths: {paths['summary']}")
    for stage in paths.get("stages", ()):
        say(f"  until {stage['until']:g} of the training: {stage['summary']}")
    print_table(
        ("number", "unit", "low", "high", "distribution"),
        [
            (row["name"], row["unit"], _number(row["low"]), _number(row["high"]), row["distribution"])
            for row in paths["numbers"]
        ],
    )
    say()
    episode = environment["episode"]
    limits = [f"{episode['steps']} decisions"] if episode["steps"] is not None else []
    limits += [f"{episode['duration']} of virtual time"] if episode["duration"] is not None else []
    say(f"episode: {' or '.join(limits)}")
    for name, flow in (("its flow", environment["learner"]), *(("other flow", one) for one in environment["flows"])):
        if flow:
            say(f"  {name}: {', '.join(f'{key} {_text(value)}' for key, value in flow.items())}")


def _print_vocabulary(words: Mapping[str, Any]) -> None:
    for place, (section, rows) in enumerate(words.items()):
        if place:
            say()
        say(section)
        if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
            say(f"  {rows if isinstance(rows, str) else json.dumps(rows, ensure_ascii=False)}")
            continue
        keys = dict.fromkeys(key for row in rows for key in row)
        header = (*(key for key in _FIRST if key in keys), *(key for key in keys if key not in _FIRST))
        print_table(header, [tuple(_text(row.get(key)) for key in header) for row in rows])


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    return row["name"], _unit(row["unit"]), _number(row.get("low")), _number(row.get("high")), row["formula"]


def _unit(unit: str) -> str:
    return "" if unit == "1" else unit


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}"


def _text(value: object) -> str:
    if isinstance(value, float):
        return _number(value)
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False)


def _flat(section: object, prefix: str = "") -> Iterator[tuple[str, str]]:
    """Settings of a section, one by one, with dotted names."""
    if isinstance(section, dict):
        for key, value in section.items():
            yield from _flat(value, f"{prefix}.{key}" if prefix else str(key))
    else:
        yield prefix, _text(section)


COMMAND: Final = Command(
    "describe",
    run=_describe,
    description="Describe a configuration: every observation and action with name, unit, range and formula, the\n"
    "reward's terms with weights and units, when the agent decides, and the paths that are drawn.",
    examples=_EXAMPLES,
    options={
        "[CONFIG]": CONFIG,
        **SET,
        "--full": "a line for each number of the observation",
        "| --signals": "list all signals, maps and terms instead",
        "| --schema [KIND]": "print JSON Schema of a kind of YAML file instead, or list the kinds",
        **AS_JSON,
    },
)
