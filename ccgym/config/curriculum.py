"""Curricula: distributions of paths that change while training goes on.

A trainer asks :meth:`Curriculum.distribution` from time to time, with its progress from 0 to 1, gives the answer to its
environments, and puts :meth:`Curriculum.state_dict` into its checkpoints. An ordinary distribution is a curriculum that
never changes, of one stage; in YAML a curriculum in stages is::

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
    """What a trainer needs of a curriculum. It may learn from what it gets, or just follow a plan."""

    def distribution(self, progress: float) -> PathDistribution:
        """The distribution to draw from now on; ``progress`` is the share of the training steps done, from 0 to 1."""
        ...

    def level(self) -> float:
        """A number for the log: the stage, counted from 0, or another measure of progress."""
        ...

    def state_dict(self) -> dict[str, Any]:
        """What a checkpoint must hold, as JSON."""
        ...

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on from a checkpoint. Raises :class:`~ccgym.errors.ConfigError` for the state of another curriculum."""
        ...


class Stage(Strict):
    """One stage of a plan."""

    until: float = Field(gt=0, le=1)
    """Share of the training steps after which the next stage begins; 1 in the last one."""
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
                    f"{other.until:g} after {one.until:g}", expected="strictly increasing shares",
                    where=f"stages[{place + 1}].until",
                )  # fmt: skip
        if self.stages[-1].until != 1.0:
            raise ConfigError("out-of-range",
                f"{self.stages[-1].until:g} in the last stage", expected="1, the end of the training",
                where=f"stages[{len(self.stages) - 1}].until",
            )  # fmt: skip
        return self

    def summary(self) -> str:
        """One line of text."""
        return f"a curriculum of {len(self.stages)} stages"

    def rows(self) -> list[ParameterRow]:
        """The numbers that the stages draw."""
        return [
            row for place, stage in enumerate(self.stages) for row in prefixed(f"stages[{place}].", stage.paths.rows())
        ]

    def describe(self) -> dict[str, Any]:
        """``summary``, ``numbers`` as a distribution has them, and ``stages``: end and summary of each."""
        stages = [{"until": stage.until, "summary": stage.paths.summary()} for stage in self.stages]
        return {"summary": self.summary(), "numbers": self.rows(), "stages": stages}


@dataclass
class Staged:
    """The curriculum of a plan. It never goes back to an earlier stage."""

    stages: tuple[Stage, ...]
    stage: int = 0
    """The present one, counted from 0."""

    def distribution(self, progress: float) -> PathDistribution:
        """The distribution of the stage that ``progress`` lies in."""
        while self.stage < len(self.stages) - 1 and progress >= self.stages[self.stage].until:
            self.stage += 1
        return self.stages[self.stage].paths

    def level(self) -> float:
        """The stage."""
        return float(self.stage)

    def state_dict(self) -> dict[str, Any]:
        """The stage, and how many there are."""
        return {"kind": "stages", "stage": self.stage, "stages": len(self.stages)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on in a stage; refuse the state of another plan."""
        stage = state.get("stage")
        if state.get("stages") != len(self.stages) or not isinstance(stage, int) or stage < 0:
            raise ConfigError(
                "resume-changed",
                f"the state of a curriculum of {shown(state.get('stages'))} stages",
                expected=f"one of {len(self.stages)}",
                hint="the configuration has changed since the checkpoint",
                where="curriculum",
            )
        self.stage = min(stage, len(self.stages) - 1)


AnyCurriculum: TypeAlias = Stages | GapSearch | GapBins
"""Every curriculum, as data."""

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
    """Understand ``paths:`` however it is given. Raises :class:`ConfigError`."""
    if isinstance(value, (PathDistribution, AnyCurriculum)):
        return value
    return validate(Loaded({"paths": value}), _Holder).paths


def curriculum_of(paths: PathDistribution | AnyCurriculum) -> Curriculum:
    """A fresh curriculum for ``paths:``."""
    if isinstance(paths, GapSearch):
        return Searched(paths)
    if isinstance(paths, GapBins):
        return Binned(paths)
    return Staged(paths.stages if isinstance(paths, Stages) else (Stage(until=1.0, paths=paths),))
