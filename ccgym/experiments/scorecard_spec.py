"""The model of a scorecard's YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, field_validator, model_validator

from ccgym.config.declared import Strict
from ccgym.config.path import NetworkPath
from ccgym.errors import ConfigError, did_you_mean, shown
from ccgym.experiments.comparison import Comparison


class PathSection(Strict):
    """Paths that figures show as a section."""

    title: str
    paths: tuple[str, ...] = Field(min_length=1)
    """Names from the catalog."""

    @field_validator("paths")
    @classmethod
    def _known(cls, paths: tuple[str, ...]) -> tuple[str, ...]:
        # Aliases, such as pantheon-5, are replaced by the more informative name: 77.72mbps.
        return tuple(NetworkPath.named(name).name or name for name in paths)


class GroupSpec(Strict):
    """Sections whose paths are ranked together."""

    title: str
    sections: tuple[str, ...]


class ScorecardSpec(Comparison):
    """Every scheme on every path: a score for each, rankings over groups of paths."""

    kind: Literal["scorecard"]
    sections: Mapping[str, PathSection] = Field(min_length=1)
    """The paths, in sections by name."""
    groups: Mapping[str, GroupSpec] = Field(default_factory=dict)
    """Groups that are ranked, by name; the first group is the overall ranking. By default all paths."""

    @model_validator(mode="after")
    def _known_sections(self) -> Self:
        if not self.groups:
            everything = {"all": GroupSpec(title="All paths", sections=tuple(self.sections))}
            object.__setattr__(self, "groups", everything)
        for name, group in self.groups.items():
            for section in group.sections:
                if section not in self.sections:
                    raise ConfigError(
                        "unknown-name",
                        f"section {shown(section)}",
                        where=f"groups.{name}",
                        expected=", ".join(self.sections),
                        hint=did_you_mean(section, self.sections),
                    )
        return self

    @property
    def paths(self) -> Mapping[str, str]:
        """Section of every path, section by section."""
        return {name: section for section, one in self.sections.items() for name in one.paths}
