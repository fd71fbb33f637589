"""The settings of an environment: defaults from a configuration file, which keyword arguments replace."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias, TypedDict

from pydantic import ConfigDict, Field
from typing_extensions import Unpack

from ccgym.config import agent as agents
from ccgym.config.agent import AgentConfig, AgentFile
from ccgym.config.configurations import find_config, packaged_config
from ccgym.config.curriculum import Curriculum, curriculum_of, read_paths
from ccgym.config.declared import Strict
from ccgym.config.distributions import Fixed
from ccgym.config.path import NetworkPath, PathLike
from ccgym.config.quantities import PeriodField
from ccgym.config.yaml_loader import Loaded, load_model, validate
from ccgym.envs.config import (
    DISCRETE_MAPS,
    REAL_BACKENDS,
    EnvironmentConfig,
    check_backend,
    check_flows,
    check_learners,
    read_learner,
)
from ccgym.envs.episode import Source
from ccgym.errors import CcgymError, ConfigError, did_you_mean, located, shown
from ccgym.schemes import policies
from ccgym.schemes.flow import FlowSpec, LearnerFlow, read_flows
from ccgym.schemes.policies import LearnedPolicy
from ccgym.units import TimeLike

PathOrName: TypeAlias = "str | os.PathLike[str]"
"""A configuration: a YAML file, or the name of a configuration that is included in ccgym."""


class _AgentFile(AgentFile):
    """A configuration file of which only the agent is read."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    agent: AgentConfig


class _File(_AgentFile):
    """The sections of a configuration file for environments."""

    environment: EnvironmentConfig


class _Limits(Strict):
    """Arguments that limit an episode. Each argument replaces both limits of the configuration."""

    episode_steps: int | None = Field(default=None, ge=1, strict=True)
    duration: PeriodField | None = None


class Arguments(TypedDict, total=False):
    """Keyword arguments of all environments. The configuration sets arguments that are missing or ``None``."""

    set: Mapping[str, Any] | None
    """Single keys of the configuration's sections ``agent`` and ``environment``, in the form of ``--set`` of
    ``train.py``: ``{"agent.action.map.delta": 0.05, "environment.episode.steps": 100}``."""
    path: PathLike | None
    """One path, in any form that :meth:`NetworkPath.from_any` accepts."""
    paths: object
    """A distribution of paths, by name or with all fields; see :mod:`ccgym.config.distributions`."""
    agent: object
    """Clock, observation, actions and reward: a YAML file, a mapping or an ``AgentConfig``."""
    backend: str | None
    """``"sim"``: simulator. ``"emulated"`` or ``"mahimahi"``: real packets, over shells of ccgym or mahimahi."""
    episode_steps: int | None
    """Maximum number of decisions per episode."""
    duration: TimeLike | None
    """Maximum duration of an episode, seconds or ``"30s"``. Each limit replaces both limits of the configuration."""
    flows: Sequence[object] | None
    """Background flows on the path: ``["cubic", "eagle", {"scheme": "bbr", "start": "5s"}]``."""
    learner: Mapping[str, Any] | LearnerFlow | None
    """Fields of :class:`~ccgym.schemes.flow.LearnerFlow` for the learning flow, such as ``{"start": "1s"}``."""
    privileged: bool | None
    """Whether ``info["privileged"]`` contains the ground truth about the path."""
    strict: bool
    """Whether an action that is not finite is an error (default). If not, the flow keeps its last action, like the flow
    of a deployed policy."""


ARGUMENTS: Final = ("config", "render_mode", *Arguments.__annotations__)
"""Names of the keyword arguments of the environments."""

SECTIONS: Final = ("agent", "environment")
"""Sections of a configuration file that environments read and ``set`` can change."""


@dataclass(frozen=True)
class Settings:
    """All settings of the episodes of an environment."""

    agent: AgentConfig
    source: Source
    steps: int | None
    """Maximum number of decisions per episode."""
    duration_ns: int | None
    """Maximum duration of an episode, nanoseconds."""
    learners: tuple[LearnerFlow, ...]
    background: tuple[FlowSpec, ...]
    privileged: bool
    """Whether ``info`` has the ground truth about the path."""
    earlier_selves: tuple[LearnerFlow, ...] = ()
    """Flows that use an earlier policy of the training; they are absent if there is no such policy."""
    strict: bool = True
    curriculum: Curriculum | None = None
    """Changes ``source`` during training; ``None``: ``source`` never changes."""
    backend: str = "sim"

    @property
    def is_real(self) -> bool:
        """Whether the backend uses real packets in real time."""
        return self.backend in REAL_BACKENDS

    @property
    def discrete(self) -> bool:
        """Whether an action is the index of an operation."""
        return self.agent.native()["action"]["map"]["kind"] in DISCRETE_MAPS

    @property
    def teacher(self) -> LearnedPolicy | None:
        """The policy whose decisions are labels, if the agent's expert is a policy.

        Raises:
            ConfigError: The policy cannot be used.
        """
        expert = self.agent.expert
        if expert is None or expert.kind != "policy":
            return None
        policy = policies.find(expert.policy, "agent.expert.policy")
        if policy is None:
            raise ConfigError(
                "unknown-policy",
                shown(expert.policy),
                where="agent.expert.policy",
                expected=f"a pretrained policy ({', '.join(policies.pretrained())}), a run directory or a .onnx file",
                hint=did_you_mean(expert.policy, policies.pretrained()),
            )
        return policy

    @property
    def agent_json(self) -> str:
        """The agent as JSON for the native core. An expert that is a policy is given by its key."""
        native = self.agent.native()
        teacher = self.teacher
        if teacher is not None:
            native["expert"] = {**native["expert"], "policy": teacher.key}
        return json.dumps(native)

    def with_paths(self, paths: object) -> Settings:
        """Return a copy with another source of paths, in any form that :func:`read_source` accepts."""
        curriculum, source = read_source(paths)
        return replace(self, source=source, curriculum=curriculum)

    def at(self, progress: float) -> Settings:
        """Return a copy with the paths of a later stage; ``progress``: completed fraction of the training, 0 to 1."""
        if self.curriculum is None:
            return self
        return replace(self, source=self.curriculum.distribution(progress))

    @classmethod
    def of(cls, config: EnvironmentConfig, agent: AgentConfig) -> Settings:
        """Return the settings of the sections ``environment`` and ``agent`` of a configuration."""
        curriculum = config.curriculum()
        return cls(
            agent=agent,
            source=curriculum.distribution(0.0),
            curriculum=curriculum,
            steps=config.episode.steps,
            duration_ns=config.episode.duration,
            learners=config.flows_that_learn,
            background=config.flows,
            earlier_selves=() if config.earlier_selves is None else config.earlier_selves.flows,
            privileged=config.privileged,
            backend=config.backend,
        )

    @classmethod
    def read(cls, config: PathOrName | Settings = "link", **arguments: Unpack[Arguments]) -> Settings:
        """Return the settings of a configuration (or other settings) and keyword arguments.

        Raises:
            ConfigError: The configuration or an argument is wrong.
        """
        for name in arguments:
            if name not in Arguments.__annotations__:
                raise ConfigError(
                    "unknown-argument",
                    f"unknown argument {shown(name)}",
                    expected=", ".join(ARGUMENTS),
                    hint=did_you_mean(name, ARGUMENTS),
                )
        given: dict[str, Any] = {name: value for name, value in arguments.items() if value is not None}
        if "path" in given and "paths" in given:
            raise ConfigError("options-conflict", "path and paths together", expected="one of them", where="paths")
        if "backend" in given:
            check_backend(given["backend"])
        keys = given.get("set", {})
        _check_set(keys, [name for name in ("agent", "path", "paths", "flows", "learner") if name in given])
        if isinstance(config, Settings):
            if keys:
                raise ConfigError(
                    "option-needed", "set with settings", expected="set with a configuration file or name"
                )
            settings = config
        else:
            defaults = load_model(_config_file(config), _File, keys)
            settings = cls.of(defaults.environment, defaults.agent)
        changes: dict[str, Any] = {name: given[name] for name in ("strict", "privileged", "backend") if name in given}
        if "episode_steps" in given or "duration" in given:
            limits = validate(Loaded({name: given.get(name) for name in _Limits.model_fields}), _Limits)
            changes |= {"steps": limits.episode_steps, "duration_ns": limits.duration}
        if "agent" in given:
            changes["agent"] = read_agent(given["agent"])
        if "path" in given or "paths" in given:
            paths = read_path(given["path"]) if "path" in given else given["paths"]
            changes["curriculum"], changes["source"] = read_source(paths)
        if "flows" in given:
            changes["background"] = read_flows(given["flows"])
        if "learner" in given:
            changes["learners"] = (read_learner(given["learner"]),)
        settings = replace(settings, **changes)
        check_flows(settings.backend, settings.background)
        check_learners(settings.learners)
        return settings


def _config_file(config: str | os.PathLike[str]) -> Path:
    """Return the file of a configuration. A name that is included in ccgym has priority in every directory."""
    return packaged_config(config) or find_config(config)


def _check_set(set: object, replaced: Sequence[str]) -> None:
    """Raise :class:`ConfigError` for keys of ``set`` in another section, or replaced by an argument."""
    if not isinstance(set, Mapping):
        raise ConfigError(
            "wrong-type", shown(set), where="set", expected="a mapping like {'agent.action.map.delta': 0.05}"
        )
    for key in set:
        section, _, rest = str(key).partition(".")
        if section not in SECTIONS or not rest:
            hint = "" if section in SECTIONS else did_you_mean(section, SECTIONS)
            if section in AgentConfig.model_fields:
                hint = f"did you mean 'agent.{key}'?"
            raise ConfigError(
                "unknown-key",
                shown(key),
                where="set",
                expected="a key of the configuration's section agent or environment, like 'agent.action.map.delta'",
                hint=hint,
            )
        argument = section if section == "agent" else rest.partition(".")[0]
        if argument in replaced:
            raise ConfigError(
                "options-conflict",
                f"{shown(key)} together with the argument {argument}",
                where="set",
                expected="one of the two: the argument replaces this part of the configuration",
                hint="give another configuration as config=…, and change its single keys with set=…",
            )


def read_agent(agent: object) -> AgentConfig:
    """Read an agent: an :class:`AgentConfig`, a mapping of its fields, a YAML file, or the name of a configuration.

    Raises:
        ConfigError: The agent is none of these, or is invalid.
    """
    if isinstance(agent, (str, os.PathLike)):
        return load_model(_config_file(agent), _AgentFile).agent
    if not isinstance(agent, (Mapping, AgentConfig)):
        raise ConfigError(
            "wrong-type",
            f"{shown(agent)} is not an agent",
            where="agent",
            expected="a YAML file, a mapping or an AgentConfig",
        )
    with located("agent"):
        return agents.read_agent(agent)


def read_path(path: object, where: str = "path") -> Fixed:
    """Read one path in any form, and return it as a distribution."""
    with located(where):
        return Fixed(path=NetworkPath.from_any(path))


def read_source(paths: object) -> tuple[Curriculum | None, Source]:
    """Read a source of paths: the name of a distribution, a path, a mapping, a distribution, a curriculum, or the
    user's own object with their method ``sample`` or ``distribution``.

    Raises:
        ConfigError: The source is none of these.
    """
    if isinstance(paths, Curriculum):
        return paths, paths.distribution(0.0)
    if callable(getattr(paths, "sample", None)):
        source: Source = paths  # type: ignore[assignment]
        return None, source
    if isinstance(paths, (list, tuple)):
        paths = {"kind": "named", "names": list(paths)}
    try:
        curriculum = curriculum_of(read_paths(paths))
    except CcgymError as error:
        raise error.at("paths" if not error.where.startswith("paths") else "") from None
    return curriculum, curriculum.distribution(0.0)
