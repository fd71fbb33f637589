"""The whole of a training run as one YAML file: agent, environment, algorithm, run length, evaluation.

The algorithms are in :mod:`ccgym.training.algorithms`. Every setting has a default, and ``config.yaml`` in a run
directory spells all of them out.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Annotated, Any, Final

import yaml
from pydantic import AfterValidator, Field, PrivateAttr, model_validator

from ccgym.config.agent import AgentConfig, AgentFile, read_agent
from ccgym.config.configurations import find_config
from ccgym.config.declared import Strict
from ccgym.config.distributions import PathDistributionField
from ccgym.config.grown import GrowingPlan
from ccgym.config.quantities import PeriodField
from ccgym.config.sampled_path import PathDistribution
from ccgym.config.yaml_loader import apply_override, load_yaml, parse_yaml, validate
from ccgym.envs.config import DISCRETE_MAPS, REAL_BACKENDS, EnvironmentConfig
from ccgym.errors import CcgymError, ConfigError, shown
from ccgym.schemes.style import check_color, check_label, check_marker, check_text
from ccgym.training.algorithms.config import AlgorithmField, ImitationConfig, PpoConfig

MAX_REAL_PATHS_PER_PROCESSOR: Final = 4
"""Real paths at once; each needs about half a processor."""

NAME_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9_.+-]{0,63}$"


RESUMABLE: Final = (
    "training.steps",
    "training.time_limit",
    "training.keep_checkpoints",
    "training.checkpoint_every",
    "training.simulator_threads",
    "deployment",
    "style",
)
"""Settings and sections that may be changed when a run is resumed: the steps that are taken stay the same."""


class TrainingConfig(Strict):
    """How long, how often, and from which seed."""

    steps: int = Field(default=4_000_000, ge=1)
    """Decisions, over all environments; rounded up to whole updates."""
    time_limit: PeriodField | None = None
    """Wall time after which training ends even if steps are left. Which step that is depends on the machine."""
    seed: int = Field(default=1, ge=0, lt=2**32)
    """Root of every random stream."""
    start_from: str | None = None
    """A run directory whose best policy training starts from, in place of random weights: for fine-tuning elsewhere,
    such as on a real path."""
    eval_every: int = Field(default=400_000, ge=1)
    """Steps between evaluations on the held-out paths."""
    checkpoint_every: int = Field(default=400_000, ge=1)
    """Steps between checkpoints."""
    keep_checkpoints: int = Field(default=2, ge=1, le=1000)
    """Checkpoints that are kept, in addition to the best model."""
    simulator_threads: int = Field(default=0, ge=0, le=1024)
    """Threads that step the simulators; 0: one per processor. Results do not depend on it."""
    torch_threads: int = Field(default=1, ge=1, le=1024)
    """Threads of torch. Sums of floats depend on it, so it is part of what a seed reproduces; small networks are
    fastest with one."""


class EvaluationConfig(Strict):
    """What the policy is measured on while it learns."""

    episodes: int = Field(default=64, ge=1, le=4096)
    """Held-out draws of the environment's paths, the same in every evaluation and for every baseline."""
    seed: int = Field(default=20181129, ge=0, lt=2**32)
    """Root of the draws: the same for every training seed, so that curves of several seeds compare."""
    paths: PathDistributionField | None = None
    """What the held-out paths are drawn from; by default what the environment draws from at the end of training."""
    per_decision: bool = False
    """Whether an episode's reward is the mean over its decisions, in place of the sum. Where episodes last a time, not
    a number of decisions, the sum is mostly that of the paths of short round trips."""
    baselines: tuple[str, ...] = ("oracle", "bbr", "cubic")
    """Schemes measured once on the same draws, with the agent's reward and clock. ``oracle`` knows the link."""
    figure: bool = True
    """Whether TensorBoard gets a figure of one episode."""


class DeploymentConfig(Strict):
    """How the exported policy's agent differs from the one in training; what it observes is the same."""

    limits: dict[str, Any] | None = None
    """Replaces ``agent.action.limits``: a policy of ratios works beyond the rates that it was trained at."""
    startup: str | dict[str, Any] | None = None
    """Replaces ``agent.startup``: in training, paths may say where a flow starts."""

    def applied_to(self, agent: AgentConfig) -> AgentConfig:
        """The agent as it is deployed: without an expert, which only training needs.

        Raises:
            ConfigError: The result is not a valid agent.
        """
        content: dict[str, Any] = agent.model_dump(mode="json", exclude_unset=True)
        content.pop("expert", None)
        if self.limits is not None:
            content["action"] = {**content["action"], "limits": self.limits}
        if self.startup is not None:
            content["startup"] = self.startup
        try:
            return read_agent(content)
        except CcgymError as error:
            raise error.at("deployment") from None


class PolicyStyle(Strict):
    """How an exported policy is named and drawn, part of its card. All of it may be left out."""

    label: Annotated[str, AfterValidator(check_label)] = ""
    """Name in tables and legends; by default the policy's name with a capital."""
    color: Annotated[str, AfterValidator(check_color)] = "chocolate"
    """Color by its name in CSS, or ``#rrggbb``."""
    marker: Annotated[str, AfterValidator(check_marker)] = "*"
    """Marker by matplotlib's one-letter code."""
    summary: Annotated[str, AfterValidator(check_text)] = ""
    """One sentence; by default how long it was trained."""
    reference: Annotated[str, AfterValidator(check_text)] = ""
    """The paper, or what else it follows."""


class TrainConfig(AgentFile, Strict):
    """A training run."""

    name: str = Field(pattern=NAME_PATTERN)
    """Of the run, and of the policy that is exported."""
    agent: AgentConfig
    """What is learned: clock, features, actions, reward."""
    environment: EnvironmentConfig
    """Where: paths and episodes."""
    algorithm: AlgorithmField = PpoConfig()
    """How."""
    training: TrainingConfig = TrainingConfig()
    """How long."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """Measured on what."""
    deployment: DeploymentConfig = DeploymentConfig()
    """What the exported policy does differently."""
    style: PolicyStyle = PolicyStyle()
    """How the exported policy is named and drawn next to other schemes."""

    _written: dict[str, Any] = PrivateAttr(default_factory=dict)
    _inherited: str = PrivateAttr(default="")

    @property
    def inherited(self) -> str:
        """What it takes over from the file that it extends, and what it does not; empty where it extends none."""
        return self._inherited

    @model_validator(mode="after")
    def _suited_to_real_paths(self) -> TrainConfig:
        environment, limit = self.environment, MAX_REAL_PATHS_PER_PROCESSOR * (os.cpu_count() or 1)
        if environment.backend not in REAL_BACKENDS:
            return self
        if self.algorithm.n_envs > limit:
            raise ConfigError(
                "out-of-range",
                f"{self.algorithm.n_envs} real paths at once (algorithm.n_envs)",
                where="environment.backend",
                expected=f"{limit} or fewer on this machine, preferably one",
                hint="--set algorithm.n_envs=1 algorithm.n_steps=800 algorithm.batch_size=200, for example",
            )
        growing = isinstance(environment.paths, GrowingPlan)
        if growing or environment.earlier_selves is not None:
            raise ConfigError(
                "backend-unsuitable",
                f"{'paths that grow' if growing else 'earlier selves'} with backend {environment.backend}",
                where=f"environment.{'paths' if growing else 'earlier_selves'}",
                expected="the simulator",
                hint="a run on real paths may begin with a policy that was trained so: training.start_from",
            )
        return self

    @model_validator(mode="after")
    def _several_learners(self) -> TrainConfig:
        environment, algorithm = self.environment, self.algorithm
        learners = environment.flows_that_learn
        if len(learners) == 1:
            return self
        wrong = {
            f"backend {environment.backend}": environment.backend in REAL_BACKENDS,
            f"algorithm {algorithm.name}": algorithm.name != "ppo",
            "algorithm.normalize.observation": algorithm.normalization.observation,
            "actions to choose from": self.agent.native()["action"]["map"]["kind"] in DISCRETE_MAPS,
        }
        for found in (name for name, present in wrong.items() if present):
            raise ConfigError(
                "several-learners",
                f"{len(learners)} flows that learn, with {found}",
                where="environment.learners",
                expected="ppo with actions that are real numbers, in the simulator, whose rollouts in the native core "
                "take the decisions of each flow by its own clock",
                hint="one learner and flows of earlier selves (environment.earlier_selves) work with every algorithm",
            )
        for place in (place for place, flow in enumerate(learners) if flow.stop is not None):
            raise ConfigError(
                "several-learners",
                "a flow that stops",
                where=f"environment.learners[{place}].stop",
                expected="learners that stay to the end: what is decided after it teaches nothing",
                hint="flows that leave may be in environment.flows or environment.earlier_selves",
            )
        return self

    @model_validator(mode="after")
    def _taught(self) -> TrainConfig:
        if isinstance(self.algorithm, ImitationConfig) and self.agent.expert is None:
            raise ConfigError(
                "no-expert",
                f"{self.algorithm.name} without an expert",
                where="agent.expert",
                expected="an expert, which labels states with what should have been done",
                hint="agent.expert: best_window, for example",
            )
        return self

    @model_validator(mode="after")
    def _deployable(self) -> TrainConfig:
        self.deployment.applied_to(self.agent)
        return self

    def held_out_paths(self) -> PathDistribution:
        """What the held-out paths are drawn from."""
        return self.evaluation.paths or self.environment.curriculum().distribution(1.0)

    @classmethod
    def load(cls, path: str | os.PathLike[str], overrides: Iterable[str] = ()) -> TrainConfig:
        """Read a configuration.

        Args:
            path: A file or a name, as :func:`~ccgym.config.configurations.find_config` finds it.
            overrides: Settings ``key=value`` that replace what the file says.

        Raises:
            NotFoundError: There is no such file.
            ConfigError: Where it is wrong: file, line, what was found and expected.
        """
        loaded = load_yaml(find_config(path))
        if not isinstance(loaded.data, dict):
            raise ConfigError("not-a-mapping", shown(loaded.data), expected="keys and values", where=loaded.source)
        for override in overrides:
            apply_override(loaded, override, cls)
        config = validate(loaded, cls)
        config._written.update(loaded.data)
        if loaded.extends:
            config._inherited = f"from {loaded.extends}: {', '.join(loaded.inherited()) or 'nothing'}"
            config._inherited += f"; not taken over: {', '.join(loaded.dropped)}" if loaded.dropped else ""
        return config

    def as_yaml(self) -> str:
        """The configuration with every default of the algorithm and the run spelled out; :meth:`load` reads it."""
        resolved: dict[str, Any] = {**self._written, "name": self.name}
        for section in ("algorithm", "training", "evaluation"):
            resolved[section] = getattr(self, section).model_dump(mode="json")
        for section in ("agent", "environment"):
            resolved.setdefault(section, getattr(self, section).model_dump(mode="json", exclude_unset=True))
        # A copy in which nothing is the same object: our loader refuses aliases.
        copied = json.loads(json.dumps(resolved))
        written: str = yaml.safe_dump(copied, sort_keys=False, allow_unicode=True, width=120)
        return written

    def fixed(self) -> dict[str, Any]:
        """What a resumed run must have in common with the one that it continues: all but :data:`RESUMABLE`."""
        content: dict[str, Any] = parse_yaml(self.as_yaml(), "config.yaml").data
        for key in RESUMABLE:
            section, _, setting = key.partition(".")
            (content[section] if setting else content).pop(setting or section, None)
        return content
