"""Search of configurations: files, the current directory, and configurations that are included in ccgym."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ccgym.errors import NotFoundError, did_you_mean, shown

DIRECTORY: Final = "configs"
"""Folder, in the current directory, in which configurations are searched by name."""

FOLDERS: Final = (".", "ablations")
"""Subfolders that are searched."""

FORMER: Final = {"weaknesses": "stress_tests"}
"""Names of the last release, and their new names."""

PACKAGED: Final = (Path(__file__).parents[1] / "_data" / DIRECTORY).resolve()
"""Folder of the configurations that are included in ccgym."""


def packaged_config(config: str | os.PathLike[str], folders: Sequence[str] = FOLDERS) -> Path | None:
    """Return a configuration that is included in ccgym: ``aurora``, ``aurora.yaml`` or ``configs/aurora.yaml``."""
    given = Path(config)
    name = given.name if given.suffix == ".yaml" else f"{given.name}.yaml"
    for folder in folders:
        below = given.parent if given.parent != Path(DIRECTORY, folder) else Path()
        if not below.is_absolute() and ".." not in below.parts and (PACKAGED / folder / below / name).is_file():
            return PACKAGED / folder / below / name
    return None


def find_config(config: str | os.PathLike[str], where: str = "config", folders: Sequence[str] = FOLDERS) -> Path:
    """Find a configuration by file or name: in this folder, in ``./configs``, then in the folder included in ccgym.

    Args:
        config: A file, or a name: ``aurora``, ``aurora.yaml``, ``configs/aurora.yaml``.
        where: Name of the option or argument, for errors.
        folders: Subfolders of ``configs`` in which names are searched.

    Raises:
        NotFoundError: The configuration does not exist; the hint suggests a similar name.
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
        f"there is no configuration {shown(str(config))}",
        expected=f"a YAML file, or one of {', '.join(known)}",
        hint=did_you_mean(given.stem, known) if packaged_config(renamed, folders) is None else f"use {renamed}",
        where=where,
    )
