"""What an environment is made of: a configuration file's defaults, and keyword arguments over them.

::

    environment:
      paths: {kind: ranges, rate: {uniform: [100, 500], unit: packets/s}, …}    # or  path: 12mbps …
      episode: {steps: 400}                                                    # and/or  duration: 30s
      flows: [cubic, {scheme: bbr, start: 5s}]                                 # in the background
      learners: 3                                                              # flows that learn, with one policy
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Final, TypeAlias, TypedDict

from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, model_validator
from typing_extensions import Unpack

from ccgym.config.agent import AgentConfig, AgentFile
from ccgym.config.configurations import find_config, packaged_config
from ccgym.config.curriculum import Curriculum, PathsField, curriculum_of, read_paths
from ccgym.config.declared import Strict
from ccgym.config.distributions import Fixed
from ccgym.config.path import NetworkPath, PathField, PathLike
from ccgym.config.quantities import PeriodField
from ccgym.config.yaml_loader import Loaded, config_error, load_model
from ccgym.envs.episode import Source
from ccgym.errors import CcgymError, ConfigError, SchemeNotFoundError, did_you_mean, shown
from ccgym.schemes import policies
from ccgym.schemes.flow import FlowSpec, LearnerFlow, read_flows
from ccgym.schemes.policies import LearnedPolicy
from ccgym.units import TimeLike, parse_positive_time

REAL_BACKENDS: Final = ("emulated", "mahimahi")
"""Where packets travel for real, in real time."""
BACKENDS: Final = ("sim", *REAL_BACKENDS)
"""Where environments run."""

DISCRETE_MAPS: Final = ("discrete", "gain_on_estimate", "passive")
"""Action maps that choose among listed operations; a passive one has one, which does nothing."""

MAX_LEARNERS: Final = 64
"""Flows that learn on one path."""

DEFAULT_STEPS: Final = 400
"""Maximum number of decisions per episode, by default."""

PathOrName: TypeAlias = "str | os.PathLike[str]"
"""A configuration: a YAML file, or the name of one that comes with ccgym."""


class EpisodeLimits(Strict):
    """When an episode ends, whichever comes first. Both truncate: a flow never terminates by itself."""

    steps: int | None = Field(default=None, ge=1)
    """Decisions."""
    duration: PeriodField | None = None
    """Time: virtual in the simulator, real on a real path."""

    @model_validator(mode="after")
    def _limited(self) -> EpisodeLimits:
        if self.steps is None and self.duration is None:
            raise ConfigError("key-missing", "neither steps nor duration", expected="steps, duration or both")
        return self


def _read_learners(learners: object) -> object:
    """A number of flows that learn, or their fields."""
    if isinstance(learners, (list, tuple)):
        flows = []
        for place, one in enumerate(learners):
            try:
                flows.append(read_learner(one))
            except ConfigError as error:
                raise error.at(f"learners[{place}]") from None
        return tuple(flows)
    if isinstance(learners, bool) or not isinstance(learners, int) or not 1 <= learners <= MAX_LEARNERS:
        raise ConfigError(
            "wrong-type",
            shown(learners),
            where="learners",
            expected=f"a number of flows from 1 to {MAX_LEARNERS}, or the fields of each: [{{}}, {{start: 2s}}]",
        )
    return learners


class EarlierSelvesConfig(Strict):
    """Flows that the policy in training steers as it was some time ago."""

    flows: tuple[LearnerFlow, ...] = Field(default=(LearnerFlow(),), min_length=1, max_length=MAX_LEARNERS)
    """The flows; by default one from the beginning on. Each draws its policy in every episode."""
    every: int = Field(default=100_000, ge=1)
    """Steps between two policies that are kept; until the first there are no such flows."""
    keep: int = Field(default=1, ge=1, le=1000)
    """How many of the latest policies flows draw from."""


class EnvironmentConfig(Strict):
    """The section ``environment`` of a configuration file."""

    path: PathField | None = None
    """One path: whatever :meth:`NetworkPath.from_any` understands."""
    paths: PathsField | None = None
    """Or a distribution of paths, or a curriculum of them; see :mod:`ccgym.config.distributions`."""
    episode: EpisodeLimits = EpisodeLimits(steps=DEFAULT_STEPS)
    """Its limits."""
    flows: Annotated[tuple[FlowSpec, ...], BeforeValidator(read_flows)] = ()
    """Flows in the background: names of schemes and policies, or mappings like ``{scheme: bbr, start: 5s}``."""
    learner: LearnerFlow = LearnerFlow()
    """The flow that learns."""
    learners: Annotated[int | tuple[LearnerFlow, ...], BeforeValidator(_read_learners)] = 1
    """How many such flows learn on one path, all with the same policy; or one mapping with the fields of each. Those
    after the first may have a ``probability``."""
    earlier_selves: EarlierSelvesConfig | None = None
    """Flows that the policy in training steers as it was some time ago. Held-out episodes, and environments outside of
    trainings, have none."""
    backend: str = "sim"
    """Where it runs."""
    privileged: bool = False
    """Whether ``info`` has the ground truth about the path, for experts and critics."""

    @model_validator(mode="after")
    def _consistent(self) -> EnvironmentConfig:
        if (self.path is None) == (self.paths is None):
            raise ConfigError(
                "exactly-one",
                "path and paths together" if self.path is not None else "neither path nor paths",
                expected="exactly one of path and paths",
            )
        check_backend(self.backend)
        check_flows(self.backend, self.flows)
        check_learners(self.flows_that_learn)
        if not isinstance(self.learners, int) and "learner" in self.model_fields_set:
            raise ConfigError(
                "options-conflict",
                f"learner, and a list of {len(self.learners)} learners",
                where="learners",
                expected="one of them",
                hint="write the fields of learner in each entry of the list, or give learners as a number",
            )
        return self

    @property
    def flows_that_learn(self) -> tuple[LearnerFlow, ...]:
        """The flows that learn, one by one."""
        return (self.learner,) * self.learners if isinstance(self.learners, int) else self.learners

    def curriculum(self) -> Curriculum:
        """What decides where paths come from; a fresh one at each call."""
        if self.path is not None:
            return curriculum_of(Fixed(path=self.path))
        assert self.paths is not None
        return curriculum_of(self.paths)


class _AgentFile(AgentFile):
    """A configuration file of which nothing but the agent is read."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    agent: AgentConfig


class _File(_AgentFile):
    """The sections of a configuration file that concern environments."""

    environment: EnvironmentConfig


def check_backend(backend: object) -> None:
    """Raise :class:`ConfigError` unless environments run there."""
    if backend not in BACKENDS:
        raise ConfigError(
            "unknown-backend",
            shown(backend),
            where="backend",
            expected=f"one of {', '.join(map(repr, BACKENDS))}",
            hint=did_you_mean(str(backend), BACKENDS),
        )


def check_learners(learners: Sequence[LearnerFlow]) -> None:
    """Raise :class:`ConfigError` unless every episode has a flow that learns."""
    if not learners or learners[0].probability < 1:
        raise ConfigError(
            "out-of-range",
            f"probability {learners[0].probability:g}" if learners else "an empty list",
            where="learners[0]" if learners else "learners",
            expected="a first learner that takes part in every episode",
            hint="give a probability to those after it: learners: [{}, {probability: 0.5}]",
        )


def check_flows(backend: str, flows: Sequence[FlowSpec]) -> None:
    """Raise :class:`~ccgym.errors.CcgymError` unless every flow can run there: some need real packets."""
    for place, flow in enumerate(flows):
        where, choice = f"flows[{place}]", flow.choice
        choice.refuse("real environment" if backend in REAL_BACKENDS else "environment", where)
        reason = choice.why_unavailable()
        if reason is not None:
            raise SchemeNotFoundError(
                "scheme-unavailable",
                f"{shown(flow.scheme)} is not available: {reason}",
                where=where,
                expected="a scheme that this machine has",
                hint="`ccgym doctor` lists them",
            )


class Arguments(TypedDict, total=False):
    """Keyword arguments of all environments. What is not given, or is ``None``, comes from the configuration."""

    set: Mapping[str, Any] | None
    """Single keys of the configuration's sections ``agent`` and ``environment``, as ``--set`` of ``train.py`` takes
    them: ``{"agent.action.map.delta": 0.05, "environment.episode.steps": 100}``."""
    path: PathLike | None
    """One path: anything that :meth:`NetworkPath.from_any` understands."""
    paths: object
    """Or a distribution of paths, by name or in full: see :mod:`ccgym.config.distributions`."""
    agent: object
    """Clock, observation, actions and reward: a YAML file, a mapping or an ``AgentConfig``."""
    backend: str | None
    """Where it runs: ``"sim"``; or for real, ``"emulated"`` by this machine or ``"mahimahi"``."""
    episode_steps: int | None
    """Maximum number of decisions per episode."""
    duration: TimeLike | None
    """Maximum length of an episode, seconds or ``"30s"``. Either limit replaces those of the configuration."""
    flows: Sequence[object] | None
    """Other flows on the path: ``["cubic", "eagle", {"scheme": "bbr", "start": "5s"}]``."""
    learner: Mapping[str, Any] | LearnerFlow | None
    """Fields of :class:`~ccgym.schemes.flow.LearnerFlow` for the flow that learns, such as ``{"start": "1s"}``."""
    privileged: bool | None
    """Whether ``info["privileged"]`` is there."""
    strict: bool
    """Whether an action that is not finite is an error (the default). If not, the flow holds its last decision, as a
    deployed policy's does."""


ARGUMENTS: Final = ("config", "render_mode", *Arguments.__annotations__)
"""Names of the keyword arguments of the environments."""

SECTIONS: Final = ("agent", "environment")
"""Sections of a configuration file that environments read; what ``set`` may change."""


@dataclass(frozen=True)
class Settings:
    """Everything that decides what an environment's episodes are."""

    agent: AgentConfig
    source: Source
    steps: int | None
    """Maximum number of decisions per episode."""
    duration_ns: int | None
    """Maximum length of an episode, nanoseconds."""
    learners: tuple[LearnerFlow, ...]
    background: tuple[FlowSpec, ...]
    privileged: bool
    """Whether ``info`` has the ground truth about the path."""
    earlier_selves: tuple[LearnerFlow, ...] = ()
    """Flows that an earlier policy of the training steers; absent where there is none."""
    strict: bool = True
    curriculum: Curriculum | None = None
    """What chooses ``source`` as training proceeds; ``None`` leaves it alone."""
    backend: str = "sim"

    @property
    def is_real(self) -> bool:
        """Whether packets travel for real, in real time."""
        return self.backend in REAL_BACKENDS

    @property
    def discrete(self) -> bool:
        """Whether an action is the index of an operation."""
        return self.agent.native()["action"]["map"]["kind"] in DISCRETE_MAPS

    @property
    def teacher(self) -> LearnedPolicy | None:
        """The policy whose decisions are labels, if the agent's expert is one.

        Raises:
            ConfigError: It cannot be used.
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
        """The agent as the native core takes it; an expert that is a policy goes by its key."""
        native = self.agent.native()
        teacher = self.teacher
        if teacher is not None:
            native["expert"] = {**native["expert"], "policy": teacher.key}
        return json.dumps(native)

    def with_paths(self, paths: object) -> Settings:
        """The same with paths from somewhere else; anything that :func:`read_source` understands."""
        curriculum, source = read_source(paths)
        return replace(self, source=source, curriculum=curriculum)

    def at(self, progress: float) -> Settings:
        """The same with the paths of a later stage; ``progress``: fraction of the training that is done, 0 to 1."""
        if self.curriculum is None:
            return self
        return replace(self, source=self.curriculum.distribution(progress))

    @classmethod
    def of(cls, config: EnvironmentConfig, agent: AgentConfig) -> Settings:
        """The settings that a configuration's two sections mean."""
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
        """The settings that a configuration, or other settings, and keyword arguments mean.

        Raises:
            ConfigError: One of them is wrong.
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
                    "option-needed", "set with settings", expected="set with a configuration, whose keys it changes"
                )
            settings = config
        else:
            defaults = load_model(_config_file(config), _File, keys)
            settings = cls.of(defaults.environment, defaults.agent)
        changes: dict[str, Any] = {name: given[name] for name in ("strict", "privileged", "backend") if name in given}
        if "episode_steps" in given or "duration" in given:
            # A limit that is given replaces both limits of the configuration.
            changes |= {"steps": _steps(given.get("episode_steps")), "duration_ns": _duration(given.get("duration"))}
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
    """The file of a configuration; a name that comes with ccgym means the same in every directory."""
    return packaged_config(config) or find_config(config)


def _check_set(set: object, replaced: Sequence[str]) -> None:
    """Raise :class:`ConfigError` for what ``set`` cannot change: another section, or what an argument replaces."""
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
                expected="one of the two: the argument replaces what the configuration says",
                hint="another configuration is config=…, whose single keys set=… changes",
            )


def read_agent(agent: object) -> AgentConfig:
    """An agent: an :class:`AgentConfig`, a mapping of its fields, or a YAML file, or a configuration's name.

    Raises:
        ConfigError: It is none of these, or wrong.
    """
    if isinstance(agent, AgentConfig):
        return agent
    if isinstance(agent, Mapping):
        try:
            return AgentConfig.model_validate(dict(agent))
        except ValidationError as error:
            raise config_error(error, AgentConfig, Loaded(dict(agent))).at("agent") from None
        except CcgymError as error:
            raise error.at("agent") from None
    if isinstance(agent, (str, os.PathLike)):
        return load_model(_config_file(agent), _AgentFile).agent
    raise ConfigError(
        "wrong-type",
        f"{shown(agent)} is not an agent",
        where="agent",
        expected="a YAML file, a mapping or an AgentConfig",
    )


def read_path(path: object, where: str = "path") -> Fixed:
    """One path, however it is given, as a distribution."""
    try:
        return Fixed(path=NetworkPath.from_any(path))
    except CcgymError as error:
        raise error.at(where) from None


def read_source(paths: object) -> tuple[Curriculum | None, Source]:
    """Where paths come from: a distribution's name, a path, a mapping, a distribution, a curriculum, or an object of
    your own with their method ``sample`` or ``distribution``.

    Raises:
        ConfigError: It is none of these.
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


def read_learner(learner: object) -> LearnerFlow:
    """A flow that learns: a :class:`LearnerFlow` or a mapping of its fields."""
    if isinstance(learner, LearnerFlow):
        return learner
    if not isinstance(learner, Mapping):
        raise ConfigError(
            "wrong-type", f"{shown(learner)} is not a flow", where="learner", expected="a mapping like {'start': '1s'}"
        )
    try:
        return LearnerFlow.model_validate(dict(learner))
    except ValidationError as error:
        raise config_error(error, LearnerFlow).at("learner") from None


def _steps(value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise ConfigError(
            "out-of-range", shown(value), where="episode_steps", expected="a whole number of decisions, 1 or more"
        )
    return value


def _duration(value: TimeLike | None) -> int | None:
    """Nanoseconds of a duration."""
    if value is None:
        return None
    try:
        return parse_positive_time(value)
    except ConfigError as error:
        raise error.at("duration") from None
