"""Builds the models of :mod:`ccgym.config.models` from the schema of the native core (``_core.schema()``).

Every definition of the schema becomes a model. An object becomes a class. A union of kinds becomes a class per kind,
and a field type for all kinds. Rules over several fields are in :mod:`ccgym.config.declared`:
``<Name>Base`` is the base of the class ``<Name>``. ``read_<union>`` of :mod:`ccgym.config.short_forms` reads the
short form of a union.
"""

from __future__ import annotations

import re
import types
from collections.abc import Iterable, Mapping
from functools import reduce
from operator import or_
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field, create_model

from ccgym.config import declared, short_forms
from ccgym.config.expressions import BoundsField, ExpressionField, OperandField, OperationField
from ccgym.config.quantities import (
    BytesField,
    FlowRateField,
    Limit,
    MillisecondsField,
    PeriodField,
    ProbabilityField,
    ProbabilitySteps,
    RateField,
    RateSteps,
    TimeField,
    TimeSteps,
)

HOME: Final = "ccgym.config.models"
"""The module of the models."""

_FORMATS: Final[dict[str, Any]] = {
    "milliseconds": MillisecondsField, "bytes": BytesField, "rate": RateField, "probability": ProbabilityField,
    "flow_rate": FlowRateField, "expression": ExpressionField, "operand": OperandField, "operation": OperationField,
    "bounds": BoundsField, "limit": Limit,
}  # fmt: skip
"""Field types by the format of a schema. A time that must not be zero is a period."""

_STEPS: Final[dict[str, Any]] = {"rate": RateSteps, "time": TimeSteps, "probability": ProbabilitySteps}
"""Field types of values that can change over time."""

_TYPES: Final[dict[str, Any]] = {
    "integer": int, "number": float, "boolean": bool, "string": str, "object": dict[str, Any],
}  # fmt: skip

_BOUNDS: Final = {
    "minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "minLength": "min_length", "maxLength": "max_length",
    "minItems": "min_length", "maxItems": "max_length", "pattern": "pattern",
}  # fmt: skip
"""Pydantic's names for the bounds of a schema."""

_OWN_NAMES: Final = ("Element", "Queue")
"""Unions whose classes have the name of the kind only. For other unions: kind ``fixed`` of ``Clock`` is FixedClock."""


def build(definitions: Mapping[str, Any]) -> dict[str, Any]:
    """Return models and field types by name, each after the models that it needs."""
    return _Builder(definitions).made


class _Builder:
    def __init__(self, definitions: Mapping[str, Any]) -> None:
        self.definitions = definitions
        self.types: dict[str, Any] = {}
        self.made: dict[str, Any] = {}
        for name in definitions:
            self.define(name)

    def define(self, name: str) -> Any:
        """Return the field type of a definition; it is built once."""
        if name not in self.types:
            schema = self.definitions[name]
            if "enum" in schema:
                self.types[name] = _literal(schema["enum"])
            elif "anyOf" in schema:
                self.types[name] = reduce(or_, (self.form(name, one) for one in schema["anyOf"]))
            elif "oneOf" not in schema:
                self.types[name] = self.model(name, name, schema)
            elif all("const" in one for one in schema["oneOf"]):
                self.types[name] = _literal(one["const"] for one in schema["oneOf"])
            else:
                self.types[name] = self.union(name, schema)
        return self.types[name]

    def form(self, name: str, schema: dict[str, Any]) -> Any:
        """Return one of several types that differ only in their form; the name of a mapping contains its first key."""
        if schema.get("type") != "object":
            return self.type(schema)[0]
        return self.model(f"{name}{next(iter(schema['properties'])).capitalize()}", name, schema)

    def union(self, name: str, schema: dict[str, Any]) -> Any:
        """Return the field type of a union of kinds."""
        variants = [self.whole(one) for one in schema["oneOf"]]
        tag = next(key for key, value in variants[0]["properties"].items() if "const" in value)
        common = _leading(variants)
        parent: Any = None
        if common:
            fields = {tag: {"type": "string"}, **common}
            parent = self.model(name, name, {**schema, "properties": fields, "required": variants[0]["required"]})
        kinds = []
        for variant in variants:
            kind = variant["properties"][tag]["const"]
            own = {key: part for key, part in variant["properties"].items() if key not in common}
            make = self.link if kind == "link" else self.model
            kinds.append(make(_class_name(name, kind), name, {**variant, "properties": own}, parent))
        what = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
        one_of = declared.OneOf(what, getattr(short_forms, f"read_{what.replace(' ', '_')}", None), tag)
        self.made[f"Any{name}"] = reduce(or_, kinds)
        self.made[f"{name}Field"] = field = Annotated[self.made[f"Any{name}"], one_of]
        return field

    def link(self, name: str, family: str, schema: dict[str, Any], parent: Any) -> Any:
        """Build the link of users, which has two directions; the core's link has one."""
        one_way = {key: value for key, value in schema["properties"].items() if key != "kind"}
        way = self.model(f"{name}Direction", f"{name}Direction", {**schema, "properties": one_way}) | None
        help_text = "The direction of the {}; none: no limit."
        once = "Stop at the end of the traces instead of repeating them (mahimahi's `--once`)."
        fields: dict[str, Any] = {
            "kind": (Literal["link"], "link"),
            "uplink": (way, Field(default=None, description=help_text.format("data"))),
            "downlink": (way, Field(default=None, description=help_text.format("acknowledgements"))),
            "once": (bool, Field(default=False, description=once)),
        }
        words = "A bottleneck in one or both directions (mahimahi's `mm-link`)."
        return self.keep(name, declared.LinkBase, words, fields)

    def whole(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a variant with the fields of the definition that it refers to."""
        if "$ref" not in schema:
            return schema
        target = self.definitions[_reference(schema)]
        self.types[_reference(schema)] = None  # included in this variant
        return {**target, **schema, "properties": {**schema["properties"], **target["properties"]}}

    def model(self, name: str, family: str, schema: dict[str, Any], parent: Any = None) -> Any:
        """Build a class with its fields."""
        fields = {key: self.field(key, part, schema) for key, part in schema.get("properties", {}).items()}
        if "words" in schema:
            fields["WORDS"] = (ClassVar[str], schema["words"])
        bases = (f"{name}Base", f"{family}Base", family if family == "Element" else "Declared")
        base = parent or next(getattr(declared, one) for one in bases if hasattr(declared, one))
        return self.keep(name, base, schema["description"], fields)

    def keep(self, name: str, base: Any, help_text: str, fields: dict[str, Any]) -> Any:
        """Create a class and store it by name."""
        made = create_model(name, __base__=base, __module__=HOME, __doc__=_sentence(help_text), **fields)
        self.made[name] = made
        return made

    def field(self, name: str, schema: dict[str, Any], owner: dict[str, Any]) -> tuple[Any, Any]:
        """Return type, default, range and help of a field."""
        if "const" in schema:
            return _literal([schema["const"]]), schema["const"]
        kind, settings = self.type(schema)
        if name not in owner.get("required", ()):
            settings["default"] = self.default(schema.get("default"), schema, kind)
            if settings["default"] is None:
                kind |= None
        if schema.get("description"):
            settings["description"] = _sentence(schema["description"])
        return kind, Field(**settings)

    def type(self, schema: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Return the Python type of a field, and pydantic's bounds."""
        form = schema.get("format", "")
        if form == "steps":
            return _STEPS[schema["items"]["format"]], {}
        if form == "time":
            return PeriodField if schema.get("minimum", 0) > 0 else TimeField, {}
        if form in _FORMATS:
            return _FORMATS[form], {}
        if "anyOf" in schema:
            (one,) = (part for part in schema["anyOf"] if part.get("type") != "null")
            return self.type(one)[0] | None, {}
        if "$ref" in schema:
            return self.define(_reference(schema)), {}
        if "enum" in schema:
            return _literal(schema["enum"]), {}
        kinds = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        kind: Any = next(one for one in kinds if one != "null")
        bounds = {_BOUNDS[key]: value for key, value in schema.items() if key in _BOUNDS and value is not None}
        if bounds.get("ge") == 0 and "gt" in bounds:
            del bounds["ge"]
        if kind != "array":
            return _TYPES[kind], bounds
        item, limits = self.type(schema["items"])
        return types.GenericAlias(tuple, (Annotated[item, Field(**limits)] if limits else item, ...)), bounds

    def default(self, value: Any, schema: dict[str, Any], kind: Any) -> Any:
        """Return a default in the form of the field; for a model, the model with its own defaults."""
        if isinstance(value, list):
            return tuple(value)
        if kind is Limit and value is not None:
            return Limit(**value)
        if not isinstance(value, dict) or "$ref" not in schema:
            return value
        name = _reference(schema)
        return self.made[_class_name(name, value["kind"]) if "kind" in value else name].model_construct()


def _literal(words: Iterable[str]) -> Any:
    """Return the type of one of several words."""
    return Literal.__getitem__(tuple(words))


def _class_name(union: str, kind: str) -> str:
    """Return the class name for a kind of a union."""
    word = "".join(part.capitalize() for part in kind.split("_"))
    return word if union in _OWN_NAMES or word.endswith(union) else word + union


def _leading(variants: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the common first fields of all variants, after their tags."""
    fields = [[part for part in one["properties"].items() if "const" not in part[1]] for one in variants]
    return dict(parts[0] for parts in zip(*fields, strict=False) if all(part == parts[0] for part in parts))


def _reference(schema: dict[str, Any]) -> str:
    """Return the name of the definition that a schema refers to."""
    return str(schema["$ref"]).rpartition("/")[2]


def _sentence(text: str) -> str:
    """Return a help text as a sentence in one line."""
    text = " ".join(text.split())
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "…")) else ".")
