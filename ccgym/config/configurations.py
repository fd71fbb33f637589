"""Where configurations are found: files, those of the current directory, and those that come with ccgym."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from ccgym.errors import NotFoundError, did_you_mean, shown

DIRECTORY: Final = "configs"
"""Where configurations are looked for by name, below the current directory."""

PACKAGED: Final = (Path(__file__).parents[1] / "_data" / DIRECTORY).resolve()
"""Those that come with ccgym."""


def packaged_config(config: str | os.PathLike[str]) -> Path | None:
    """The configuration of that name that comes with ccgym: ``aurora``, ``aurora.yaml`` or ``configs/aurora.yaml``."""
    given = Path(config)
    if given.parent not in (Path(), Path(DIRECTORY)):
        return None
    file = PACKAGED / (given.name if given.suffix == ".yaml" else f"{given.name}.yaml")
    return file if file.is_file() else None


def find_config(config: str | os.PathLike[str], where: str = "config") -> Path:
    """Find a configuration by file or by name: here, in ``./configs``, and among those that come with ccgym.

    Args:
        config: A file, or a name: ``aurora``, ``aurora.yaml``, ``configs/aurora.yaml``.
        where: The option or argument, for errors.

    Raises:
        NotFoundError: There is none; the nearest name is suggested.
    """
    given = Path(config)
    for folder in (Path(), Path(DIRECTORY)):
        for candidate in (folder / given, folder / f"{given}.yaml"):
            if candidate.is_file():
                return candidate
    packaged = packaged_config(given)
    if packaged is not None:
        return packaged
    known = sorted({file.stem for folder in (Path(DIRECTORY), PACKAGED) for file in folder.glob("*.yaml")})
    raise NotFoundError(
        f"no configuration is called {shown(str(config))}",
        expected=f"a YAML file, or one of {', '.join(known)}",
        hint=did_you_mean(given.stem, known),
        where=where,
    )
