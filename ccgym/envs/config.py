"""The section ``environment`` of a configuration file.

::

    environment:
      paths: {kind: ranges, rate: {uniform: [100, 500], unit: packets/s}, …}    # or  path: 12mbps …
      episode: {steps: 400}                                                    # and/or  duration: 30s
      flows: [cubic, {scheme: bbr, start: 5s}]                                 # in the background
      learners: 3                                                              # flows that learn, with one policy
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from pydantic import BeforeValidator, Field, model_validator

from ccgym.config.curriculum import Curriculum, PathsField, curriculum_of
from ccgym.config.declared import Strict
from ccgym.config.distributions import Fixed
from ccgym.config.path import PathField
from ccgym.config.quantities import PeriodField
from ccgym.config.yaml_loader import Loaded, validate
from ccgym.errors import ConfigError, SchemeNotFoundError, did_you_mean, located, shown
from ccgym.schemes.flow import FlowSpec, LearnerFlow, read_flows

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


class EpisodeLimits(Strict):
    """When an episode ends, the first of both. Both truncate: a flow never terminates by itself."""

    steps: int | None = Field(default=None, ge=1)
    """Decisions."""
    duration: PeriodField | None = None
    """Time: virtual in the simulator, real on a real path."""

    @model_validator(mode="after")
    def _limited(self) -> EpisodeLimits:
        if self.steps is None and self.duration is None:
            raise ConfigError("key-missing", "neither steps nor duration", expected="steps, duration or both")
        return self


def read_learner(learner: object, where: str = "learner") -> LearnerFlow:
    """A flow that learns: a :class:`LearnerFlow` or a mapping of its fields."""
    if not isinstance(learner, (Mapping, LearnerFlow)):
        raise ConfigError(
            "wrong-type", f"{shown(learner)} is not a flow", where=where, expected="a mapping like {'start': '1s'}"
        )
    with located(where):
        return validate(Loaded(learner), LearnerFlow)


def read_learners(
    learners: object, where: str = "learners", most: int | None = MAX_LEARNERS
) -> int | tuple[LearnerFlow, ...]:
    """A number of flows that learn, at most ``most``, any where it is None; or the fields of each."""
    if isinstance(learners, (list, tuple)) and learners:
        return tuple(read_learner(one, f"{where}[{place}]") for place, one in enumerate(learners))
    if isinstance(learners, bool) or not isinstance(learners, int) or not 1 <= learners <= (most or learners):
        raise ConfigError(
            "wrong-type",
            shown(learners),
            where=where,
            expected=f"a number of flows from 1 {f'to {most}' if most else 'on'}, or the fields of each: "
            "[{}, {start: 2s}]",
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
    learners: Annotated[int | tuple[LearnerFlow, ...], BeforeValidator(read_learners)] = 1
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
    if learners[0].probability < 1:
        raise ConfigError(
            "out-of-range",
            f"probability {learners[0].probability:g}",
            where="learners[0]",
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
