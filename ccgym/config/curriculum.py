"""Curricula: distributions of paths that change during training.

A trainer regularly calls :meth:`Curriculum.distribution` with its progress from 0 to 1, sets the result in its
environments, and stores :meth:`Curriculum.state_dict` in its checkpoints. An ordinary distribution is a curriculum with
one stage, which never changes. A curriculum in stages, in YAML::

    paths:
      kind: stages
      stages:
        - {until: 0.3, paths: genet_rl1}
        - {until: 0.6, paths: genet_rl2}
        - {until: 1.0, paths: genet_rl3}

Two further kinds, ``gap_search`` and ``gap_bins``, are in :mod:`ccgym.config.grown`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, Protocol, Self, TypeAlias, runtime_checkable

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from ccgym.config.declared import Strict, kinds_of
from ccgym.config.distributions import KINDS, PathDistributionField, refuse_unknown_kind
from ccgym.config.grown import Binned, GapBins, GapSearch, Searched
from ccgym.config.sampled_path import ParameterRow, PathDistribution, prefixed
from ccgym.config.yaml_loader import Loaded, validate
from ccgym.errors import ConfigError, shown


@runtime_checkable
class Curriculum(Protocol):
    """Interface of a curriculum for trainers. A curriculum follows a plan, or adapts to measured results."""

    def distribution(self, progress: float) -> PathDistribution:
        """Return the current distribution; ``progress`` is the completed fraction of training steps, from 0 to 1."""
        ...

    def level(self) -> float:
        """Return a number for the log: the stage, counted from 0, or another measure of progress."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """Return the state for a checkpoint, as JSON data."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore a checkpoint. Raises :class:`~ccgym.errors.ConfigError` for the state of another curriculum."""
        ...


class Stage(Strict):
    """One stage of a plan."""

    until: float = Field(gt=0, le=1)
    """Fraction of the training steps at which the stage ends; 1 in the last stage."""
    paths: PathDistributionField


class Stages(Strict):
    """A plan of several distributions, one after the other."""

    kind: Literal["stages"] = "stages"
    stages: tuple[Stage, ...] = Field(min_length=1, max_length=1000)

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        for place, (one, other) in enumerate(zip(self.stages, self.stages[1:], strict=False)):
            if one.until >= other.until:
                raise ConfigError("order-wrong",
                    f"{other.until:g} after {one.until:g}", expected="strictly increasing fractions",
                    where=f"stages[{place + 1}].until",
                )  # fmt: skip
        if self.stages[-1].until != 1.0:
            raise ConfigError("out-of-range",
                f"{self.stages[-1].until:g} in the last stage", expected="1, the end of the training",
                where=f"stages[{len(self.stages) - 1}].until",
            )  # fmt: skip
        return self

    def summary(self) -> str:
        """Return one line of text."""
        return f"a curriculum of {len(self.stages)} stages"

    def rows(self) -> list[ParameterRow]:
        """Return the parameters of all stages."""
        return [
            row for place, stage in enumerate(self.stages) for row in prefixed(f"stages[{place}].", stage.paths.rows())
        ]

    def describe(self) -> dict[str, Any]:
        """Return ``summary``, ``numbers`` as in a distribution, and ``stages``: end and summary of each stage."""
        stages = [{"until": stage.until, "summary": stage.paths.summary()} for stage in self.stages]
        return {"summary": self.summary(), "numbers": self.rows(), "stages": stages}


@dataclass
class Staged:
    """The curriculum of a plan. It never returns to an earlier stage."""

    stages: tuple[Stage, ...]
    stage: int = 0
    """The current stage, counted from 0."""

    def distribution(self, progress: float) -> PathDistribution:
        """Return the distribution of the stage at ``progress``."""
        while self.stage < len(self.stages) - 1 and progress >= self.stages[self.stage].until:
            self.stage += 1
        return self.stages[self.stage].paths

    def level(self) -> float:
        """Return the stage."""
        return float(self.stage)

    def state_dict(self) -> dict[str, Any]:
        """Return the stage and the number of stages."""
        return {"kind": "stages", "stage": self.stage, "stages": len(self.stages)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore the stage; refuse the state of another plan."""
        stage = state.get("stage")
        if state.get("stages") != len(self.stages) or not isinstance(stage, int) or stage < 0:
            raise ConfigError(
                "resume-changed",
                f"the state of a curriculum of {shown(state.get('stages'))} stages",
                expected=f"the state of {len(self.stages)} stages",
                hint="use the configuration of the checkpoint; it has changed since",
                where="curriculum",
            )
        self.stage = min(stage, len(self.stages) - 1)


AnyCurriculum: TypeAlias = Stages | GapSearch | GapBins
"""All curricula, as data."""

CURRICULA: Final[Mapping[str, type[Strict]]] = kinds_of(AnyCurriculum)
"""The curricula by ``kind``."""


def _which(value: Any) -> str:
    kind = value.get("kind") if isinstance(value, Mapping) else getattr(value, "kind", None)
    return str(kind) if kind in CURRICULA else "distribution"


def _near_miss(value: Any) -> Any:
    if isinstance(value, Mapping) and value.get("kind") is not None:
        refuse_unknown_kind(value["kind"], (*KINDS, *CURRICULA))
    return value


PathsField: TypeAlias = Annotated[
    Annotated[PathDistributionField, Tag("distribution")]
    | Annotated[Stages, Tag("stages")]
    | Annotated[GapSearch, Tag("gap_search")]
    | Annotated[GapBins, Tag("gap_bins")],
    Discriminator(_which),
    BeforeValidator(_near_miss),
]
"""``paths:`` of an environment: a distribution in any form, or a curriculum."""


class _Holder(Strict):
    paths: PathsField


def read_paths(value: object) -> PathDistribution | AnyCurriculum:
    """Read ``paths:`` in any form. Raises :class:`ConfigError`."""
    if isinstance(value, (PathDistribution, AnyCurriculum)):
        return value
    return validate(Loaded({"paths": value}), _Holder).paths


def curriculum_of(paths: PathDistribution | AnyCurriculum) -> Curriculum:
    """Return a new curriculum for ``paths:``."""
    if isinstance(paths, GapSearch):
        return Searched(paths)
    if isinstance(paths, GapBins):
        return Binned(paths)
    return Staged(paths.stages if isinstance(paths, Stages) else (Stage(until=1.0, paths=paths),))
