"""What stands on pages of the documentation: one module per page or kind of thing, and what they share."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

BLOCKS: dict[str, dict[str, Callable[[], list[str]]]] = {}
"""The tables and figures of each page, by name."""

for _one in iter_modules(__path__):
    for _page, _blocks in getattr(import_module(f"{__name__}.{_one.name}"), "BLOCKS", {}).items():
        BLOCKS.setdefault(_page, {}).update(_blocks)
