"""What the YAML of a scorecard says: paths in sections, groups of sections, schemes, runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator
from typing_extensions import Self

from ccgym.config.path import NetworkPath
from ccgym.config.quantities import PeriodField
from ccgym.errors import ConfigError, did_you_mean, shown
from ccgym.experiments.spec import MAX_RUNS, PRETRAINED

KIND: Final = "scorecard"


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Section(_Strict):
    """Paths that figures set apart."""

    title: str
    """For people."""
    paths: tuple[str, ...] = Field(min_length=1)
    """Names of the catalog."""

    @field_validator("paths")
    @classmethod
    def _known(cls, paths: tuple[str, ...]) -> tuple[str, ...]:
        # Aliases, such as pantheon-5, become the name that says more: 77.72mbps.
        return tuple(NetworkPath.named(name).name or name for name in paths)


class GroupSpec(_Strict):
    """Sections whose paths are ranked together."""

    title: str
    """For people."""
    sections: tuple[str, ...]
    """Names of the sections."""


class ScorecardSpec(_Strict):
    """Every scheme on every path: a score for each, rankings over groups of paths."""

    kind: Literal["scorecard"]
    """What tells a scorecard from other experiments."""
    title: str
    """For headings."""
    schemes: Sequence[Any] = ("cubic", "bbr", "copa", PRETRAINED)
    """Schemes that take part where none are named, as in other experiments."""
    runs: int = Field(default=3, ge=1, le=MAX_RUNS)
    """Runs per scheme and path."""
    duration: PeriodField = 30_000_000_000
    """Length of a run."""
    sections: Mapping[str, Section] = Field(min_length=1)
    """The paths, in sections by name."""
    groups: Mapping[str, GroupSpec] = Field(default_factory=dict)
    """What is ranked together, by name; the first is that of the overall ranking. By default all paths."""
    quick: Mapping[str, Any] = Field(default_factory=dict)
    """What ``--quick`` changes."""
    name: str = ""
    """Name in files; that of the YAML file."""

    @model_validator(mode="after")
    def _known_sections(self) -> Self:
        if not self.groups:
            everything = {"all": GroupSpec(title="All paths", sections=tuple(self.sections))}
            object.__setattr__(self, "groups", everything)
        for name, group in self.groups.items():
            for section in group.sections:
                if section not in self.sections:
                    raise ConfigError(
                        f"section {shown(section)}",
                        where=f"groups.{name}",
                        expected=", ".join(self.sections),
                        hint=did_you_mean(section, self.sections),
                    )
        return self

    @property
    def paths(self) -> Mapping[str, str]:
        """The section of every path, section by section."""
        return {name: section for section, one in self.sections.items() for name in one.paths}
