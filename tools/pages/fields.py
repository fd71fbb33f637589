"""What Python classes say of their fields."""

from __future__ import annotations

import ast
import inspect
import itertools
import textwrap
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from pages.markdown import code, table


def field_meanings(kind: type[Any]) -> dict[str, str]:
    """The fields of a class with the texts that stand below them in its source."""
    (body,) = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(body, ast.ClassDef)
    return {
        field.target.id: inspect.cleandoc(text.value.value)
        for field, text in itertools.pairwise(body.body)
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)
        and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant)
    }  # fmt: skip


def options(model: type[BaseModel], *without: str) -> str:
    """The fields of a model, as YAML names them, with their texts; inherited ones last."""
    bases = [kind for kind in model.__mro__ if issubclass(kind, BaseModel) and kind is not BaseModel]
    meanings = {name: text for kind in reversed(bases) for name, text in field_meanings(kind).items()}
    own = [name for kind in bases for name in field_meanings(kind)]
    fields = {name: model.model_fields[name] for name in dict.fromkeys(own) if name in model.model_fields}
    return ". ".join(
        f"`{field.alias or name}`: {meanings[name][:1].lower()}{meanings[name][1:]}".rstrip(".").replace("``", "`")
        for name, field in fields.items()
        if name not in without
    )


def frame_columns(meanings: Mapping[str, str]) -> list[str]:
    """The columns of a table of results."""
    return table(
        ["Column", ""], [(code(name), text[0].upper() + text[1:].rstrip(".")) for name, text in meanings.items()]
    )
