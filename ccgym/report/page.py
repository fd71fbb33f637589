"""Pages: HTML in one file that needs nothing else, not even a network.

The templates are in ``templates/``. Each page extends ``base.html.j2``, which holds style sheet and script;
``parts.html.j2`` shows figures and tables. Figures are inside the page, and link to their files in the same directory.
"""

from __future__ import annotations

import base64
import gzip
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from ccgym.files import atomic_write
from ccgym.report.table import counted

TEMPLATES: Final = Path(__file__).with_name("templates")

_IMAGE_TYPES: Final = {".png": "image/png", ".svg": "image/svg+xml"}


@dataclass(frozen=True)
class Picture:
    """A figure on a page: the image inside it, and the file it links to."""

    file: str
    """Name of the file that is linked; empty where it is missing."""
    packed: str
    """The image, compressed by gzip, in base64: drawings shrink to a sixth. The page's script unpacks it."""
    media_type: str
    """What it is: ``image/svg+xml``."""
    alt: str
    """What it shows, in words."""

    @classmethod
    def of(cls, path: Path, alt: str) -> Picture:
        """The figure in a file; where that is missing, the page says so."""
        if not path.exists():
            return cls("", "", "", alt)
        packed = base64.b64encode(gzip.compress(path.read_bytes(), mtime=0)).decode()
        return cls(path.name, packed, _IMAGE_TYPES[path.suffix], alt)


def render(template: str, **values: Any) -> str:
    """Fill a template.

    Args:
        template: Its name without the suffix: ``scorecard``.
        values: What it needs; ``provenance`` and ``sections`` (identifiers and titles of its headings) always.
    """
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["counted"] = counted
    return environment.get_template(f"{template}.html.j2").render(values)


def write_page(file: Path, template: str, values: Mapping[str, Any]) -> None:
    """Fill a template into a file, which appears complete or not at all; see :func:`render`."""
    atomic_write(file, render(template, **values))
