"""The paths of the suite ``calibrated``: Pantheon's 18 emulators and Indigo's 24 synthetic links.

They are entries of the catalog (``traces/paths.yaml``), which says where each comes from; here they are put into
sections and groups. A *section* is what a figure sets apart, a *group* is what is ranked together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ccgym.config.distribution_kinds import INDIGO_CALIBRATED, INDIGO_SYNTHETIC
from ccgym.config.path import NetworkPath

SECTIONS: Final[Mapping[str, str]] = {
    "calibrated": "Emulators calibrated to real paths",
    "policers": "Policers: room for one packet",
    "ack-aggregation": "Aggregated acknowledgements",
    "small-buffers": "Small buffers",
    "synthetic": "Indigo's synthetic links: infinite queues",
}
"""Titles of the sections, in order."""

GROUPS: Final[Mapping[str, tuple[str, tuple[str, ...]]]] = {
    "all": ("All paths", tuple(SECTIONS)),
    "calibrated": ("Calibrated emulators", ("calibrated",)),
    "pathological": ("Pathological emulators", ("policers", "ack-aggregation", "small-buffers")),
    "synthetic": ("Indigo's synthetic links", ("synthetic",)),
}
"""Groups that do not depend on who takes part: title, and their sections."""


@dataclass(frozen=True)
class SuitePath:
    """A path of a suite."""

    name: str
    """Its name in the catalog."""
    section: str
    """The section that it belongs to, a key of :data:`SECTIONS`."""

    @property
    def path(self) -> NetworkPath:
        """The path."""
        return NetworkPath.named(self.name)


def _of(section: str, names: tuple[str, ...]) -> tuple[SuitePath, ...]:
    # Aliases, such as pantheon-5, become the name that tells more: 77.72mbps.
    return tuple(SuitePath(NetworkPath.named(name).name or name, section) for name in names)


def _pantheon(first: int, last: int) -> tuple[str, ...]:
    return tuple(f"pantheon-{number}" for number in range(first, last + 1))


def calibrated_paths() -> tuple[SuitePath, ...]:
    """The 42 paths, section by section."""
    return (
        *_of("calibrated", INDIGO_CALIBRATED),
        *_of("policers", _pantheon(7, 12)),
        *_of("ack-aggregation", _pantheon(13, 14)),
        *_of("small-buffers", _pantheon(15, 18)),
        *_of("synthetic", INDIGO_SYNTHETIC),
    )
