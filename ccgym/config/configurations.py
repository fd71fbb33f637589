"""Where configurations are found: files, those of the current directory, and those that come with ccgym."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ccgym.errors import NotFoundError, did_you_mean, shown

DIRECTORY: Final = "configs"
"""Where configurations are looked for by name, below the current directory."""

FOLDERS: Final = (".", "ablations")
"""The folders of it that are searched."""

FORMER: Final = {"weaknesses": "stress_tests"}
"""Names of the last release, and what they are now."""

PACKAGED: Final = (Path(__file__).parents[1] / "_data" / DIRECTORY).resolve()
"""The directory of those that come with ccgym."""


def packaged_config(config: str | os.PathLike[str], folders: Sequence[str] = FOLDERS) -> Path | None:
    """The configuration of that name that comes with ccgym: ``aurora``, ``aurora.yaml`` or ``configs/aurora.yaml``."""
    given = Path(config)
    name = given.name if given.suffix == ".yaml" else f"{given.name}.yaml"
    for folder in folders:
        below = given.parent if given.parent != Path(DIRECTORY, folder) else Path()
        if not below.is_absolute() and ".." not in below.parts and (PACKAGED / folder / below / name).is_file():
            return PACKAGED / folder / below / name
    return None


def find_config(config: str | os.PathLike[str], where: str = "config", folders: Sequence[str] = FOLDERS) -> Path:
    """Find a configuration by file or by name: here, in ``./configs``, and among those that come with ccgym.

    Args:
        config: A file, or a name: ``aurora``, ``aurora.yaml``, ``configs/aurora.yaml``.
        where: The option or argument, for errors.
        folders: The folders within ``configs`` that names are looked for in.

    Raises:
        NotFoundError: There is none; the nearest name is suggested.
    """
    given = Path(config)
    for folder in (Path(), *(Path(DIRECTORY, name) for name in folders)):
        for candidate in (folder / given, folder / f"{given}.yaml"):
            if candidate.is_file():
                return candidate
    packaged = packaged_config(given, folders)
    if packaged is not None:
        return packaged
    renamed = Path(*(FORMER.get(part, part) for part in given.with_suffix("").parts))
    places = [root / folder for root in (Path(DIRECTORY), PACKAGED) for folder in folders]
    known = sorted({file.stem for place in places for file in place.glob("*.yaml")})
    raise NotFoundError(
        "unknown-configuration",
        f"no configuration is called {shown(str(config))}",
        expected=f"a YAML file, or one of {', '.join(known)}",
        hint=did_you_mean(given.stem, known) if packaged_config(renamed, folders) is None else f"now: {renamed}",
        where=where,
    )
