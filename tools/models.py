"""Write ``ccgym/config/models.pyi``: the models that ccgym builds at its start, for editors and type checkers.

Run by ``make format``; with ``--check`` it only returns exit status 1 if the file is outdated.
"""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from textwrap import wrap
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic_core import PydanticUndefined

from ccgym.config import models

HEAD = '''"""Written by `make format` from what the native core declares; see models.py."""

from typing import Any, Literal, TypeAlias

from ccgym.config import declared
from ccgym.config.quantities import Limit
'''


UNIONS = {made: name for name, made in vars(models).items() if name.startswith("Any")}


def written(annotation: Any, name: str = "") -> str:
    """Return a type as source; ``name`` is the name of its definition."""
    if UNIONS.get(annotation, name) != name:
        return UNIONS[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return written(arguments[0])
    if origin is Literal:
        return f"Literal[{json.dumps(arguments, ensure_ascii=False)[1:-1]}]"
    if origin in (Union, types.UnionType):
        return " | ".join(map(written, arguments))
    if annotation is Ellipsis:
        return "..."
    if annotation is type(None):
        return "None"
    if arguments:
        return f"{origin.__name__}[{', '.join(map(written, arguments))}]"
    return str(annotation.__name__)


def default(value: Any) -> str:
    """Return a default value as source."""
    if isinstance(value, BaseModel):
        return (
            f"{type(value).__name__}({', '.join(f'{key}={default(part)}' for key, part in value if part is not None)})"
        )
    return json.dumps(value) if isinstance(value, str) else f"{value:_}" if type(value) is int else repr(value)


def module() -> str:
    """Return the source of the stub."""
    blocks = [HEAD]
    for name, made in vars(models).items():
        if name.startswith("_") or name in ("json", "build"):
            continue
        if not isinstance(made, type):
            blocks.append(f"{name}: TypeAlias = {written(made, name)}\n")
            continue
        (parent,) = made.__bases__
        base = parent.__name__ if parent.__module__ == made.__module__ else f"declared.{parent.__name__}"
        lines = wrap(f'    """{made.__doc__}"""', 120, subsequent_indent="    ", drop_whitespace=True)
        for key, field in made.model_fields.items():
            if key in made.__annotations__ and key != "WORDS":
                given = "" if field.default is PydanticUndefined else f" = {default(field.default)}"
                lines.append(f"    {key}: {written(field.annotation)}{given}")
        blocks.append("\n".join([f"class {name}({base}):", *lines, ""]))
    return "\n".join(blocks)


if __name__ == "__main__":
    stub = Path(models.__file__).with_suffix(".pyi")
    if "--check" not in sys.argv[1:]:
        stub.write_text(module(), encoding="utf-8")
    elif stub.read_text(encoding="utf-8") != module():
        raise SystemExit(f"{stub} is outdated: run `make format`")
