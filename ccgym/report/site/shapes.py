"""Checks of results for a site: documents may come from others, and names in them become files of the site."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from types import GenericAlias
from typing import Annotated, Any, Final, Literal, cast

from pydantic import AfterValidator, TypeAdapter, ValidationError, create_model

from ccgym.evaluation.backends import PLACES
from ccgym.evaluation.results_file import damaged
from ccgym.experiments.outcome import Verdict
from ccgym.report.style import page_colors

_NAME: Final = re.compile(r"[^./\\\x00-\x1f\x7f][^/\\\x00-\x1f\x7f]{0,119}")


def _file_name(name: str) -> str:
    if _NAME.fullmatch(name) is None:
        raise ValueError("expected: a name of at most 120 characters without '/' and without a dot at its beginning")
    return name


def _inside(path: str) -> str:
    for part in path.split("/"):
        _file_name(part)
    return path


def _color(color: str) -> str:
    page_colors(color)
    return color


def _words(command: str) -> str:
    shlex.split(command)
    return command


def _backend(name: str) -> str:
    if name not in PLACES:
        raise ValueError(f"expected: one of {', '.join(PLACES)}")
    return name


FileName = Annotated[str, AfterValidator(_file_name)]

_PROVENANCE: Final = {
    "path": str,
    "backend": Annotated[str, AfterValidator(_backend)],
    "versions": {"ccgym": str},
    "command?": Annotated[str, AfterValidator(_words)] | None,
    "started?": str | None,
    "system?": str | None,
}
_TEST: Final = {
    "name": FileName,
    **dict.fromkeys(("title", "question", "setting", "threshold", "brief", "source"), str),
    "metrics": [{"key": str, "label": str, "unit": str, "better": str | None}],
}
_CONDITION: Final = {
    "key": str,
    "at": {str: Any},
    "metrics": {str: {"mean": float | None, "std": float | None, "count": int}},
    "identical?": bool,
}
_RUN: Final = {
    "condition": str,
    "run": int,
    "seed": int | str | None,
    "trajectory": str | None,
    "values": {str: float | None},
    "kept?": Annotated[str, AfterValidator(_inside)] | None,
}
_OUTCOME: Final = {
    "test": str,
    "scheme": str,
    "verdict": Verdict,
    "headline": str,
    "criteria": [{"passed": bool | None, "group": str}],
    "conditions": [_CONDITION],
    "runs": [_RUN],
}
_DOCUMENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "experiments": {
        "name": FileName,
        "provenance": _PROVENANCE,
        "parameters": {"schemes": [str], "seed?": int | None},
        "schemes": [{"key": FileName, "label": str, "color": Annotated[str, AfterValidator(_color)], "marker": str}],
        "tests": [_TEST],
        "outcomes": [_OUTCOME],
    },
    "report": {
        "provenance": _PROVENANCE,
        "name?": FileName,
        "schemes?": [dict[str, Any] | str],
        "rankings?": {str: [{"scheme": str, "reference": bool, "score": {"mean": float}}]},
    },
}
"""Keys with the types of their values. A key with a ``?`` may be missing; the key ``str`` represents any key. A list
has the type of its elements."""


def _type(shape: Any) -> Any:
    """Return the type that a shape represents."""
    if isinstance(shape, list):
        return GenericAlias(list, (_type(shape[0]),))
    if not isinstance(shape, dict):
        return shape
    if str in shape:
        return GenericAlias(dict, (str, _type(shape[str])))
    fields = {name.rstrip("?"): (_type(kind), None if name.endswith("?") else ...) for name, kind in shape.items()}
    return create_model("Shape", **cast("dict[str, Any]", fields))


_SHAPES: Final = {kind: TypeAdapter(_type(shape)) for kind, shape in _DOCUMENTS.items()}


def check_document(document: Mapping[str, Any], kind: Literal["experiments", "report"], file: Path) -> None:
    """Raise :class:`ResultsError` if a key that a site shows is missing in a document, or has a wrong type."""
    try:
        _SHAPES[kind].validate_python(document)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise damaged(file, f"{place}: {first['msg'][:500]}") from None
    if kind == "experiments" and len(document["parameters"]["schemes"]) != len(document["schemes"]):
        raise damaged(file, "parameters.schemes: another number of schemes than in schemes")
