"""Where configurations are found: files, those of the current directory, and those that come with ccgym."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ccgym.errors import NotFoundError, did_you_mean, shown

DIRECTORY: Final = "configs"
"""Where configurations are looked for by name, below the current directory."""

FOLDERS: Final = (".", "ablations")
"""The folders of it that are searched."""

PACKAGED: Final = (Path(__file__).parents[1] / "_data" / DIRECTORY).resolve()
"""The directory of those that come with ccgym."""


def packaged_config(config: str | os.PathLike[str]) -> Path | None:
    """The configuration of that name that comes with ccgym: ``aurora``, ``aurora.yaml`` or ``configs/aurora.yaml``."""
    given = Path(config)
    name = given.name if given.suffix == ".yaml" else f"{given.name}.yaml"
    for folder in FOLDERS:
        if given.parent in (Path(), Path(DIRECTORY, folder)) and (PACKAGED / folder / name).is_file():
            return PACKAGED / folder / name
    return None


def find_config(config: str | os.PathLike[str], where: str = "config") -> Path:
    """Find a configuration by file or by name: here, in ``./configs``, and among those that come with ccgym.

    Args:
        config: A file, or a name: ``aurora``, ``aurora.yaml``, ``configs/aurora.yaml``.
        where: The option or argument, for errors.

    Raises:
        NotFoundError: There is none; the nearest name is suggested.
    """
    given = Path(config)
    for folder in (Path(), *(Path(DIRECTORY, name) for name in FOLDERS)):
        for candidate in (folder / given, folder / f"{given}.yaml"):
            if candidate.is_file():
                return candidate
    packaged = packaged_config(given)
    if packaged is not None:
        return packaged
    folders = [root / folder for root in (Path(DIRECTORY), PACKAGED) for folder in FOLDERS]
    known = sorted({file.stem for folder in folders for file in folder.glob("*.yaml")})
    raise NotFoundError(
        f"no configuration is called {shown(str(config))}",
        expected=f"a YAML file, or one of {', '.join(known)}",
        hint=did_you_mean(given.stem, known),
        where=where,
    )
