"""What stands on pages of the documentation: one module per page, and what they share."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules

_MODULES = [import_module(f"{__name__}.{one.name}") for one in iter_modules(__path__)]

BLOCKS: dict[str, dict[str, Callable[[], list[str]]]] = {
    page: blocks for module in _MODULES for page, blocks in getattr(module, "BLOCKS", {}).items()
}
"""Pages that are written by hand, and what is written into them."""
