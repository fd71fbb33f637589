"""A training run as one YAML file: agent, environment, algorithm, run length, evaluation.

The algorithms are in :mod:`ccgym.training.algorithms`. Every setting has a default, and ``config.yaml`` in a run
directory contains all settings.
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
"""Max real paths at the same time, per processor; each needs about half a processor."""

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
"""Settings and sections that may change when a run is resumed: they do not affect the steps."""


class TrainingConfig(Strict):
    """Length of the training, intervals and seed."""

    steps: int = Field(default=4_000_000, ge=1)
    """Number of decisions over all environments; rounded up to whole updates."""
    time_limit: PeriodField | None = None
    """Wall time after which training ends, even if steps are left. The last step then depends on the machine."""
    seed: int = Field(default=1, ge=0, lt=2**32)
    """Root of every random stream."""
    start_from: str | None = None
    """A run directory: training starts from its best policy instead of random weights, for fine-tuning in another
    environment, such as on a real path."""
    eval_every: int = Field(default=400_000, ge=1)
    """Steps between evaluations on the held-out paths."""
    checkpoint_every: int = Field(default=400_000, ge=1)
    """Steps between checkpoints."""
    keep_checkpoints: int = Field(default=2, ge=1, le=1000)
    """Number of checkpoints to keep, in addition to the best model."""
    simulator_threads: int = Field(default=0, ge=0, le=1024)
    """Threads that step the simulators; 0: one per processor. Results do not depend on this number."""
    torch_threads: int = Field(default=1, ge=1, le=1024)
    """Threads of torch. Sums of floats depend on this number: a seed gives equal results only with the same number.
    Small networks are fastest with one thread."""


class EvaluationConfig(Strict):
    """Evaluation of the policy during training."""

    episodes: int = Field(default=64, ge=1, le=4096)
    """Number of held-out draws of the environment's paths, the same in every evaluation and for every baseline."""
    seed: int = Field(default=20181129, ge=0, lt=2**32)
    """Root of the draws: the same for every training seed, so that curves of several seeds are comparable."""
    paths: PathDistributionField | None = None
    """Distribution of the held-out paths; by default the environment's distribution at the end of training."""
    per_decision: bool = False
    """Whether an episode's reward is the mean over its decisions, not the sum. If the length of episodes is a time, not
    a number of decisions, paths with short round trips dominate the sum."""
    baselines: tuple[str, ...] = ("oracle", "bbr", "cubic")
    """Schemes, measured once on the same draws, with the agent's reward and clock. ``oracle`` knows the link."""
    figure: bool = True
    """Whether TensorBoard gets a figure of one episode."""


class DeploymentConfig(Strict):
    """Differences between the exported policy's agent and the agent in training; observations are the same."""

    limits: dict[str, Any] | None = None
    """Replacement of ``agent.action.limits``: a policy of ratios also works at rates outside its training range."""
    startup: str | dict[str, Any] | None = None
    """Replacement of ``agent.startup``: in training, paths may set the initial rate of a flow."""

    def applied_to(self, agent: AgentConfig) -> AgentConfig:
        """Return the deployed agent: without an expert, which only training needs.

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
    """Names and plot style of an exported policy, part of its card. All fields are optional."""

    label: Annotated[str, AfterValidator(check_label)] = ""
    """Name in tables and legends; by default the policy's name with a capital."""
    color: Annotated[str, AfterValidator(check_color)] = "chocolate"
    """Color: a CSS name, or ``#rrggbb``."""
    marker: Annotated[str, AfterValidator(check_marker)] = "*"
    """Marker: a one-letter code of matplotlib."""
    summary: Annotated[str, AfterValidator(check_text)] = ""
    """Summary in one sentence; by default the length of the training."""
    reference: Annotated[str, AfterValidator(check_text)] = ""
    """The paper or another source of the policy."""


class TrainConfig(AgentFile, Strict):
    """A training run."""

    name: str = Field(pattern=NAME_PATTERN)
    """Name of the run and of the exported policy."""
    agent: AgentConfig
    """The agent: clock, features, actions, reward."""
    environment: EnvironmentConfig
    """The environment: paths and episodes."""
    algorithm: AlgorithmField = PpoConfig()
    """The algorithm and its settings."""
    training: TrainingConfig = TrainingConfig()
    """Length, intervals and seed of the training."""
    evaluation: EvaluationConfig = EvaluationConfig()
    """Evaluation during training."""
    deployment: DeploymentConfig = DeploymentConfig()
    """Differences of the exported policy."""
    style: PolicyStyle = PolicyStyle()
    """Name and plot style of the exported policy next to other schemes."""

    _written: dict[str, Any] = PrivateAttr(default_factory=dict)
    _inherited: str = PrivateAttr(default="")

    @property
    def inherited(self) -> str:
        """Sections that the file takes from the file that it extends, and sections that it drops; empty without one."""
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
                expected=f"at most {limit} on this machine, preferably one",
                hint="use for example --set algorithm.n_envs=1 algorithm.n_steps=800 algorithm.batch_size=200",
            )
        growing = isinstance(environment.paths, GrowingPlan)
        if growing or environment.earlier_selves is not None:
            raise ConfigError(
                "backend-unsuitable",
                f"{'paths that grow' if growing else 'earlier selves'} with backend {environment.backend}",
                where=f"environment.{'paths' if growing else 'earlier_selves'}",
                expected="the simulator",
                hint="start a run on real paths from a policy that was trained so: training.start_from",
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
                expected="ppo with actions that are real numbers, in the simulator: its rollouts in the native core "
                "let each flow decide by its own clock",
                hint="use one learner and flows of earlier selves (environment.earlier_selves), with any algorithm",
            )
        for place in (place for place, flow in enumerate(learners) if flow.stop is not None):
            raise ConfigError(
                "several-learners",
                "a flow that stops",
                where=f"environment.learners[{place}].stop",
                expected="learners that stay until the end: decisions after a flow's end teach nothing",
                hint="put flows that stop into environment.flows or environment.earlier_selves",
            )
        return self

    @model_validator(mode="after")
    def _taught(self) -> TrainConfig:
        if isinstance(self.algorithm, ImitationConfig) and self.agent.expert is None:
            raise ConfigError(
                "no-expert",
                f"{self.algorithm.name} without an expert",
                where="agent.expert",
                expected="an expert, which labels states with the right action",
                hint="use for example agent.expert: best_window",
            )
        return self

    @model_validator(mode="after")
    def _deployable(self) -> TrainConfig:
        self.deployment.applied_to(self.agent)
        return self

    def held_out_paths(self) -> PathDistribution:
        """Return the distribution of the held-out paths."""
        return self.evaluation.paths or self.environment.curriculum().distribution(1.0)

    @classmethod
    def load(cls, path: str | os.PathLike[str], overrides: Iterable[str] = ()) -> TrainConfig:
        """Read a configuration.

        Args:
            path: A file or a name, see :func:`~ccgym.config.configurations.find_config`.
            overrides: Settings ``key=value`` that replace settings of the file.

        Raises:
            NotFoundError: There is no such file.
            ConfigError: The file has a mistake; with file, line, found and expected value.
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
        """Return the configuration with all defaults of the algorithm and the run; :meth:`load` reads it."""
        resolved: dict[str, Any] = {**self._written, "name": self.name}
        for section in ("algorithm", "training", "evaluation"):
            resolved[section] = getattr(self, section).model_dump(mode="json")
        for section in ("agent", "environment"):
            resolved.setdefault(section, getattr(self, section).model_dump(mode="json", exclude_unset=True))
        # A copy without shared objects: ccgym's loader refuses aliases.
        copied = json.loads(json.dumps(resolved))
        written: str = yaml.safe_dump(copied, sort_keys=False, allow_unicode=True, width=120)
        return written

    def fixed(self) -> dict[str, Any]:
        """Return the settings that must be equal in a resumed run: all except :data:`RESUMABLE`."""
        content: dict[str, Any] = parse_yaml(self.as_yaml(), "config.yaml").data
        for key in RESUMABLE:
            section, _, setting = key.partition(".")
            (content[section] if setting else content).pop(setting or section, None)
        return content
