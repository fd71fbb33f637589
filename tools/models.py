"""Writes the modules of ``ccgym/config/models`` from what the native core declares (``_core.schema()``).

A definition of the schema becomes a model: an object a class, a union of kinds a class per kind and a field type for
any of them. What a definition cannot say (short forms, rules over several fields) is in ``ccgym/config/declared.py``:
``<Name>Base`` there is the base of the class ``<Name>``, ``read_<union>`` reads the short form of a union.
"""

from __future__ import annotations

import ast
import json
import re
import textwrap
from functools import cache
from typing import Any

from ccgym import _core
from ccgym.config import declared, expressions, quantities

PACKAGE = "ccgym.config.models"

MODULES = {
    "queues": ("Queue", "queue disciplines"),
    "links": ("", "bottlenecks: when they deliver, and what waits there"),
    "elements": ("Element", "elements of a path: links, delays, losses, jitter and others"),
    "sources": ("Source", "what a flow's application sends"),
    "flows": ("Flow", "flows, however they are steered"),
    "observations": ("Observation", "what an agent sees"),
    "actions": ("Action", "what an agent does"),
    "rewards": ("Reward", "what an agent is rewarded for"),
    "experts": ("Expert", "teachers of an agent"),
    "agents": ("Agent", "agents: clock, start-up, guard, and all of it"),
}
"""Modules in the order in which they may import each other: the definition that each is about, and its title.

Each holds that definition and those that it refers to, unless a module above does. A link is a part of the union of
elements.
"""

FORMATS = {
    "milliseconds": "MillisecondsField", "bytes": "BytesField", "rate": "RateField",
    "probability": "ProbabilityField", "flow_rate": "FlowRateField",
    "expression": "ExpressionField", "operand": "OperandField", "operation": "OperationField", "bounds": "BoundsField",
}  # fmt: skip
"""Field types by the format of a schema; a time is a period where it may not be zero."""

STEPS = {"rate": "RateSteps", "time": "TimeSteps", "probability": "ProbabilitySteps"}
"""Field types of what may change in time."""

ELEMENTS = ("Element", "Queue")
"""Unions whose kinds are known by their own names; of others, the kind of ``Clock`` called ``fixed`` is FixedClock."""

LINK = '''class Link(declared.LinkBase):
    """A bottleneck in one or both directions (mahimahi's ``mm-link``)."""

    kind: Literal["link"] = "link"
    uplink: LinkDirection | None = Field(default=None, description="The direction of the data; none: no limit.")
    downlink: LinkDirection | None = Field(
        default=None, description="The direction of the acknowledgements; none: no limit."
    )
    once: bool = Field(
        default=False, description="Stop at the end of the traces instead of repeating them (mahimahi's `--once`)."
    )

    def toward(self, direction: declared.Direction) -> LinkDirection | None:
        """The given direction of the link."""
        return self.uplink if direction == "uplink" else self.downlink'''
"""What a user gives of a link."""

WIDTH = 120

GENERATED = """Written by `make docs` from the declarations in Rust (spec.rs of ccgym-path and ccgym-run, and the
agent's spec): change it there."""


class Writer:
    """Turns definitions into source text, each after what it needs."""

    def __init__(self, definitions: dict[str, Any]) -> None:
        self.definitions = definitions
        self.written: dict[str, str] = {}
        self.blocks: dict[str, list[str]] = {module: [] for module in MODULES}
        self.homes = {
            name: source.__name__
            for source in (expressions, quantities)
            for name in vars(source)
            if name.endswith(("Field", "Limit", "Steps")) and name != "Field"
        }
        for self.module, (root, _) in MODULES.items():
            if root:
                self.define(root)
        for name in definitions:  # and what nothing refers to
            self.define(name)

    def write(self, block: str) -> None:
        """Add a block to the module at hand."""
        self.blocks[self.module].append(block)
        for name in re.findall(r"^(?:class )?(\w+)[(:]", block, re.MULTILINE):
            self.homes[name] = f"{PACKAGE}.{self.module}"

    def text(self, module: str) -> str:
        """A whole module."""
        body = "\n\n\n".join(self.blocks[module])
        used = {node.id for node in ast.walk(ast.parse(body)) if isinstance(node, ast.Name)}
        sources: dict[str, set[str]] = {}
        for name in used & self.homes.keys():
            sources.setdefault(self.homes[name], set()).add(name)
        sources.pop(f"{PACKAGE}.{module}", None)
        lines = [
            f'"""{oneline(MODULES[module][1])}',
            "",
            GENERATED,
            '"""',
            "",
            "from __future__ import annotations",
            "",
            imported("typing", used & {"Annotated", "Any", "ClassVar", "Literal", "TypeAlias"}),
            "",
            "from pydantic import Field",
            "",
            "from ccgym.config import declared",
            *(imported(source, names) for source, names in sorted(sources.items())),
        ]
        return "\n".join(lines) + "\n\n\n" + body + "\n"

    def define(self, name: str) -> str:
        """Write a definition once; returns the name of its field type."""
        if name in self.written:
            return self.written[name]
        schema = self.definitions[name]
        if "oneOf" in schema and all(is_constant(one) for one in schema["oneOf"]):
            self.written[name] = literal(one["const"] for one in schema["oneOf"])
        elif "enum" in schema:
            self.written[name] = literal(schema["enum"])
        elif "anyOf" in schema:
            self.written[name] = self.choice(name, schema)
        elif "oneOf" in schema:
            self.written[name] = f"{name}Field"
            self.union(name, schema)
        else:
            self.written[name] = name
            self.model(name, name, schema)
        return self.written[name]

    def choice(self, name: str, schema: dict[str, Any]) -> str:
        """One of several types that only their form tells apart; a mapping is called after its first key."""
        types = []
        for one in schema["anyOf"]:
            if one.get("type") == "object":
                types.append(f"{name}{next(iter(one['properties'])).capitalize()}")
                self.model(types[-1], name, one)
            else:
                types.append(self.type(one)[0])
        return " | ".join(types)

    def union(self, name: str, schema: dict[str, Any]) -> None:
        """One of several kinds."""
        variants = [self.whole(one) for one in schema["oneOf"]]
        tag = next(key for key, value in variants[0]["properties"].items() if "const" in value)
        common = leading(variants)
        if common:
            fields = {tag: {"type": "string"}, **common}
            shared = {"description": schema["description"], "properties": fields, "required": variants[0]["required"]}
            self.model(name, name, shared)
        kinds: dict[str, str] = {}
        for variant in variants:
            kind = variant["properties"][tag]["const"]
            kinds[kind] = class_name(name, kind)
            if kind == "link":
                self.link(variant)
            else:
                own = {key: part for key, part in variant["properties"].items() if key not in common}
                self.model(kinds[kind], name, {**variant, "properties": own}, name if common else "")
        union = " | ".join(kinds.values())
        if len(f"Any{name}: TypeAlias = {union}") > WIDTH:
            inner = union if len(union) + 4 <= WIDTH else "\n    | ".join(kinds.values())
            union = f"(\n    {inner}\n)"
        what = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name).lower()
        reading = f"read_{what.replace(' ', '_')}"
        given = f'"{what}"' + (f", declared.{reading}" if hasattr(declared, reading) else "")
        given += f', tag="{tag}"' if tag != "kind" else ""
        field = f"{name}Field: TypeAlias = Annotated[Any{name}, declared.OneOf({given})]"
        if len(field) > WIDTH:
            field = field.replace("[", "[\n    ", 1)[:-1] + "\n]"
        self.write(f'Any{name}: TypeAlias = {union}\n"""{oneline(schema["description"])}"""\n\n{field}')

    def link(self, schema: dict[str, Any]) -> None:
        """The core's link has one direction, a user's link both."""
        one_way = {key: value for key, value in schema["properties"].items() if key != "kind"}
        elements, self.module = self.module, "links"
        self.model("LinkDirection", "LinkDirection", {**schema, "properties": one_way})
        self.write(LINK)
        self.module = elements

    def whole(self, schema: dict[str, Any]) -> dict[str, Any]:
        """A variant with the fields of what it refers to."""
        if "$ref" not in schema:
            return schema
        target = self.definitions[reference(schema)]
        self.written[reference(schema)] = "…"
        properties = {**schema["properties"], **target["properties"]}
        return {**target, **schema, "properties": properties}

    def model(self, name: str, family: str, schema: dict[str, Any], parent: str = "") -> None:
        """A class with its fields."""
        fields = [self.field(key, part, schema) for key, part in schema.get("properties", {}).items()]
        base = next(
            (f"{one}Base" for one in (name, family) if hasattr(declared, f"{one}Base")),
            "Element" if family == "Element" else "Declared",
        )
        lines = [f"class {name}({parent or f'declared.{base}'}):", *doc(schema["description"])]
        if "words" in schema:
            lines += ["", f"    WORDS: ClassVar[str] = {json.dumps(schema['words'], ensure_ascii=False)}"]
        self.write("\n".join([*lines, *([""] if fields and "words" not in schema else []), *fields]))

    def field(self, name: str, schema: dict[str, Any], owner: dict[str, Any]) -> str:
        """One field with its type, default, range and help."""
        if "const" in schema:
            return f'    {name}: Literal["{schema["const"]}"] = "{schema["const"]}"'
        kind, bounds = self.type(schema)
        required = name in owner.get("required", ())
        settings = [] if required else [f"default={self.default(schema.get('default'), schema)}"]
        if not required and schema.get("default") is None and "None" not in kind:
            kind += " | None"
        settings += [f"{key}={number(value)}" for key, value in bounds.items()]
        head = f"    {name}: {kind} = Field("
        if schema.get("description"):
            settings.append(f"description={json.dumps(oneline(schema['description']), ensure_ascii=False)}")
        listed = ", ".join(settings)
        if not settings:
            return f"    {name}: {kind}"
        if len(head) + len(listed) < WIDTH:
            return f"{head}{listed})"
        if len(listed) + 8 <= WIDTH:
            return f"{head}\n        {listed}\n    )"
        lines = [head, *(f"        {setting}," for setting in settings), "    )"]
        return "\n".join(part for line in lines for part in folded(line))

    def type(self, schema: dict[str, Any]) -> tuple[str, dict[str, float]]:
        """The type of a field in Python, and pydantic's bounds."""
        form = schema.get("format", "")
        if form == "steps":
            return STEPS[schema["items"]["format"]], {}
        if form == "limit":
            return "Limit", {}
        if form == "time":
            return "PeriodField" if schema.get("minimum", 0) > 0 else "TimeField", {}
        if form in FORMATS:
            return FORMATS[form], {}
        if "anyOf" in schema:
            (one,) = (part for part in schema["anyOf"] if part.get("type") != "null")
            return f"{self.type(one)[0]} | None", {}
        if "$ref" in schema:
            return self.define(reference(schema)), {}
        if "enum" in schema:
            return literal(schema["enum"]), {}
        kind = schema.get("type")
        if isinstance(kind, list):
            kind = next(one for one in kind if one != "null")
        if kind == "array":
            inner, bounds = self.type(schema["items"])
            if bounds:
                limits = ", ".join(f"{key}={number(value)}" for key, value in bounds.items())
                inner = f"Annotated[{inner}, Field({limits})]"
            lengths = {"min_length": schema.get("minItems"), "max_length": schema.get("maxItems")}
            return f"tuple[{inner}, ...]", {key: value for key, value in lengths.items() if value is not None}
        names = {"minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "minLength": "min_length",
                 "maxLength": "max_length", "pattern": "pattern"}  # fmt: skip
        bounds = {names[key]: value for key, value in schema.items() if key in names and value is not None}
        if bounds.get("ge") == 0 and "gt" in bounds:
            del bounds["ge"]
        return {"integer": "int", "number": "float", "boolean": "bool", "string": "str", "object": "dict[str, Any]"}[
            str(kind)
        ], bounds

    def default(self, value: Any, schema: dict[str, Any]) -> str:
        """A default as Python."""
        if schema.get("format") == "limit" and value is not None:
            return f"Limit({', '.join(f'{key}={number}' for key, number in value.items())})"
        target = schema.get("$ref") and self.definitions[reference(schema)]
        if not isinstance(value, dict) or not target:
            return python(value)
        if "oneOf" in target:
            variant = next(
                one for one in map(self.whole, target["oneOf"]) if one["properties"]["kind"]["const"] == value["kind"]
            )
            model = class_name(reference(schema), value["kind"])
            fields = variant["properties"]
        else:
            model, fields = reference(schema), target["properties"]
        given = {
            key: self.default(part, fields[key])
            for key, part in value.items()
            if key != "kind" and part != fields[key].get("default")
        }
        return f"{model}({', '.join(f'{key}={part}' for key, part in given.items())})"


def imported(source: str, names: set[str]) -> str:
    """A statement that imports names."""
    line = f"from {source} import {', '.join(sorted(names))}"
    if len(line) > WIDTH:
        line = "\n".join([f"from {source} import (", *(f"    {name}," for name in sorted(names)), ")"])
    return line


def class_name(union: str, kind: str) -> str:
    """What a kind of a union is called."""
    word = "".join(part.capitalize() for part in kind.split("_"))
    return word if union in ELEMENTS or word.endswith(union) else word + union


def leading(variants: list[dict[str, Any]]) -> dict[str, Any]:
    """The fields with which all variants begin, after their tags."""
    fields = [[part for part in one["properties"].items() if "const" not in part[1]] for one in variants]
    return dict(parts[0] for parts in zip(*fields, strict=False) if all(part == parts[0] for part in parts))


def is_constant(schema: dict[str, Any]) -> bool:
    """Whether a variant is just a word."""
    return "const" in schema


def reference(schema: dict[str, Any]) -> str:
    """The name of the definition that a schema refers to."""
    return str(schema["$ref"]).rpartition("/")[2]


def literal(words: Any) -> str:
    """One of several words."""
    return f"Literal[{', '.join(json.dumps(word) for word in words)}]"


def number(value: Any) -> str:
    """A number as it is written in source."""
    if isinstance(value, str):
        return "r" + json.dumps(value) if "\\" not in value else f'r"{value}"'
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 10_000:
        return f"{value:_}"
    return repr(value)


def python(value: Any) -> str:
    """A plain default as Python."""
    if isinstance(value, list):
        return "(" + ", ".join(map(python, value)) + ("," if len(value) == 1 else "") + ")"
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, dict):
        assert not value, value
        return "{}"
    if isinstance(value, int) and not isinstance(value, bool):
        return number(value)
    return repr(value)


def oneline(text: str) -> str:
    """A help text as a sentence in one line."""
    text = " ".join(text.split())
    return text[:1].upper() + text[1:] + ("" if text.endswith((".", "…")) else ".")


def doc(text: str) -> list[str]:
    """A docstring."""
    return folded(f'    """{oneline(text)}"""')


def folded(line: str) -> list[str]:
    """A line, folded where it is too long: docstrings at blanks, texts as adjacent literals."""
    if len(line) <= WIDTH:
        return [line]
    if line.lstrip().startswith('"""'):
        return textwrap.wrap(line, WIDTH, subsequent_indent="    ", initial_indent="", drop_whitespace=True)
    match = re.fullmatch(r'(\s+)(\w+)="(.*)",', line)
    if match is None:
        return [line]
    indent, name, text = match.groups()
    room = WIDTH - len(indent) - 6
    parts = [text] if len(text) <= room else textwrap.wrap(text, room - 1)
    literals = [f'{indent}    "{part} "' for part in parts[:-1]] + [f'{indent}    "{parts[-1]}"']
    return [f"{indent}{name}=(", *literals, f"{indent}),"]


@cache
def writer() -> Writer:
    """All modules, written once."""
    return Writer(json.loads(_core.schema()))


def module(name: str) -> str:
    """The source of ``ccgym/config/models/<name>.py``."""
    return writer().text(name)


def package() -> str:
    """The source of ``ccgym/config/models/__init__.py``."""
    width = max(map(len, MODULES)) + 4
    rule = f"{'=' * width}  {'=' * 50}"
    rows = [f"{f'``{name}``':<{width}}  {title}" for name, (_, title) in MODULES.items()]
    first = "What users may write about paths, flows and agents: type, unit, range, default and help of each parameter."
    return "\n".join([f'"""{first}', "", rule, *rows, rule, "", GENERATED, '"""', ""])
