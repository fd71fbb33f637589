"""The section ``environment`` of a configuration file.

::

    environment:
      paths: {kind: ranges, rate: {uniform: [100, 500], unit: packets/s}, …}    # or  path: 12mbps …
      episode: {steps: 400}                                                    # and/or  duration: 30s
      flows: [cubic, {scheme: bbr, start: 5s}]                                 # background flows
      learners: 3                                                              # learning flows, with one policy
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
"""Backends with real packets in real time."""
BACKENDS: Final = ("sim", *REAL_BACKENDS)
"""All backends of environments."""

DISCRETE_MAPS: Final = ("discrete", "gain_on_estimate", "passive")
"""Action maps with a list of operations. The passive map has one operation, which does nothing."""

MAX_LEARNERS: Final = 64
"""Max number of learning flows on one path."""

DEFAULT_STEPS: Final = 400
"""Maximum number of decisions per episode, by default."""


class EpisodeLimits(Strict):
    """Limits of an episode. The first limit that is reached truncates the episode; a flow never terminates."""

    steps: int | None = Field(default=None, ge=1)
    """Max number of decisions."""
    duration: PeriodField | None = None
    """Max duration: virtual time in the simulator, real time on a real path."""

    @model_validator(mode="after")
    def _limited(self) -> EpisodeLimits:
        if self.steps is None and self.duration is None:
            raise ConfigError("key-missing", "neither steps nor duration", expected="steps, duration or both")
        return self


def read_learner(learner: object, where: str = "learner") -> LearnerFlow:
    """Read a learning flow: a :class:`LearnerFlow` or a mapping of its fields."""
    if not isinstance(learner, (Mapping, LearnerFlow)):
        raise ConfigError(
            "wrong-type", f"{shown(learner)} is not a flow", where=where, expected="a mapping like {'start': '1s'}"
        )
    with located(where):
        return validate(Loaded(learner), LearnerFlow)


def read_learners(
    learners: object, where: str = "learners", most: int | None = MAX_LEARNERS
) -> int | tuple[LearnerFlow, ...]:
    """Read the learning flows: their number (max ``most``; ``None``: no limit), or the fields of each flow."""
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
    """Flows that use earlier versions of the policy in training."""

    flows: tuple[LearnerFlow, ...] = Field(default=(LearnerFlow(),), min_length=1, max_length=MAX_LEARNERS)
    """The flows; by default one flow from the start. Each flow draws its policy in every episode."""
    every: int = Field(default=100_000, ge=1)
    """Steps between two versions that are kept. Before the first version there are no such flows."""
    keep: int = Field(default=1, ge=1, le=1000)
    """Number of latest versions from which flows draw."""


class EnvironmentConfig(Strict):
    """The section ``environment`` of a configuration file."""

    path: PathField | None = None
    """One path, in any form that :meth:`NetworkPath.from_any` accepts."""
    paths: PathsField | None = None
    """A distribution of paths or a curriculum of distributions; see :mod:`ccgym.config.distributions`."""
    episode: EpisodeLimits = EpisodeLimits(steps=DEFAULT_STEPS)
    """Limits of an episode."""
    flows: Annotated[tuple[FlowSpec, ...], BeforeValidator(read_flows)] = ()
    """Background flows: names of schemes and policies, or mappings like ``{scheme: bbr, start: 5s}``."""
    learner: LearnerFlow = LearnerFlow()
    """The learning flow."""
    learners: Annotated[int | tuple[LearnerFlow, ...], BeforeValidator(read_learners)] = 1
    """Number of such flows on one path, all with the same policy; or one mapping with the fields of each flow. The
    flows after the first may have a ``probability``."""
    earlier_selves: EarlierSelvesConfig | None = None
    """Flows that use earlier versions of the policy in training. Held-out episodes, and environments outside of
    trainings, have no such flows."""
    backend: str = "sim"
    """Backend: ``sim``, or ``emulated`` or ``mahimahi`` for real packets."""
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
        """All learning flows."""
        return (self.learner,) * self.learners if isinstance(self.learners, int) else self.learners

    def curriculum(self) -> Curriculum:
        """Return a new curriculum, the source of paths."""
        if self.path is not None:
            return curriculum_of(Fixed(path=self.path))
        assert self.paths is not None
        return curriculum_of(self.paths)


def check_backend(backend: object) -> None:
    """Raise :class:`ConfigError` if ``backend`` is unknown."""
    if backend not in BACKENDS:
        raise ConfigError(
            "unknown-backend",
            shown(backend),
            where="backend",
            expected=f"one of {', '.join(map(repr, BACKENDS))}",
            hint=did_you_mean(str(backend), BACKENDS),
        )


def check_learners(learners: Sequence[LearnerFlow]) -> None:
    """Raise :class:`ConfigError` if an episode could have no learning flow."""
    if learners[0].probability < 1:
        raise ConfigError(
            "out-of-range",
            f"probability {learners[0].probability:g}",
            where="learners[0]",
            expected="a first learner that takes part in every episode",
            hint="give a probability only to later learners: learners: [{}, {probability: 0.5}]",
        )


def check_flows(backend: str, flows: Sequence[FlowSpec]) -> None:
    """Raise :class:`~ccgym.errors.CcgymError` if a flow cannot run on the backend: some need real packets."""
    for place, flow in enumerate(flows):
        where, choice = f"flows[{place}]", flow.choice
        choice.refuse("real environment" if backend in REAL_BACKENDS else "environment", where)
        reason = choice.why_unavailable()
        if reason is not None:
            raise SchemeNotFoundError(
                "scheme-unavailable",
                f"{shown(flow.scheme)} is not available: {reason}",
                where=where,
                expected="a scheme that is available on this machine",
                hint="`ccgym doctor` lists the available schemes",
            )
