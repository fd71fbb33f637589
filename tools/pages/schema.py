"""What the native core declares, in words."""

from __future__ import annotations

import json
from typing import Any

from ccgym import _core
from ccgym.config.quantities import Limit
from ccgym.units import format_rate, format_time
from pages.markdown import between, code, table

SCHEMA: dict[str, Any] = json.loads(_core.schema())
"""What the native core declares."""


def span(parameter: dict[str, Any]) -> str:
    """What a parameter may be, in words."""
    if parameter.get("choices"):
        return ", ".join(f"`{choice}`" for choice in parameter["choices"])
    if parameter.get("file"):
        return "path of a file"
    return between(parameter.get("min"), parameter.get("max"))


def quantity(value: Any, schema: dict[str, Any]) -> str:
    """A default or a bound as a user writes it."""
    form = schema.get("format", "")
    if form == "limit":
        return str(Limit(**value))
    writers = {"time": format_time, "milliseconds": format_time, "rate": format_rate}
    if isinstance(value, int) and form in writers:
        return writers[form](value)
    return "none" if value is None else json.dumps(value).strip('"')


def parameter(name: str, schema: dict[str, Any], required: bool) -> str:
    """A parameter in a few words: name, default, choices, range and help."""
    choices = schema.get("enum") or words_of(schema)
    notes = [" | ".join(choices)] if choices else []
    low, high = schema.get("minimum", schema.get("exclusiveMinimum")), schema.get("maximum")
    if schema.get("type") == "number" and low is not None and high is not None:
        notes.append(f"{low:g} … {high:g}")
    if required:
        notes.append("required")
    elif schema.get("default") is not None and not isinstance(schema["default"], dict):
        notes.append(f"default {quantity(schema['default'], schema)}")
    shown = f" ({'; '.join(notes)})" if notes else ""
    help_text = " ".join(schema.get("description", "").split()).rstrip(".")
    return f"`{name}`{shown}" + (f": {help_text[:1].lower()}{help_text[1:]}" if help_text else "")


def words_of(schema: dict[str, Any]) -> list[str]:
    """The words that a parameter may be, where they have a definition of their own."""
    target = SCHEMA.get(str(schema.get("$ref", "")).rpartition("/")[2], {})
    return target.get("enum") or [one["const"] for one in target.get("oneOf", ()) if "const" in one]


def parameters(schema: dict[str, Any]) -> str:
    """All parameters of a definition."""
    required = schema.get("required", ())
    given = {name: part for name, part in schema.get("properties", {}).items() if "const" not in part}
    return "; ".join(parameter(name, part, name in required) for name, part in given.items())


def kinds(name: str) -> list[str]:
    """The kinds of a union with their parameters."""
    rows = []
    for schema in SCHEMA[name]["oneOf"]:
        kind = next(part["const"] for part in schema["properties"].values() if "const" in part)
        if kind != "link":
            rows.append((code(kind), " ".join(schema["description"].split()), parameters(schema)))
    return table([name, "", "Parameters"], rows)


def keys(name: str) -> list[str]:
    """The keys of a mapping."""
    required = SCHEMA[name].get("required", ())
    return table(
        ["Key"], [(parameter(key, part, key in required),) for key, part in SCHEMA[name]["properties"].items()]
    )
