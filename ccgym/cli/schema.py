"""``ccgym describe --schema``: JSON Schema of every kind of YAML file, so that editors complete and check it."""

from __future__ import annotations

import copy
import importlib
from typing import TYPE_CHECKING, Any, Final

from ccgym.errors import NotFoundError, did_you_mean, shown

if TYPE_CHECKING:
    from pydantic.json_schema import JsonSchemaValue

KINDS: Final = {
    "config": ("ccgym.training.config:TrainConfig", "configs/*.yaml: an agent, where and how it is trained"),
    "ablation": ("ccgym.training.config:TrainConfig", "configs/ablations/*.yaml: one that extends another"),
    "experiment": (
        "ccgym.experiments.spec:Experiment",
        "configs/experiments/*.yaml: paths, contenders, metrics, criteria",
    ),
    "agent": ("ccgym.config.agent:AgentConfig", "the section `agent` of a configuration"),
    "path": ("ccgym.config.path:NetworkPath", "one path: what lies between sender and receiver"),
    "program": (
        "ccgym.schemes.programs.declaration:Declaration",
        "schemes/programs/*.yaml: a sender and a receiver of others",
    ),
    "paths": ("ccgym.config.catalog:CatalogFile", "traces/paths.yaml: traces and paths with names"),
}
"""Kinds of YAML files: ``module:model`` and what they are. To add a kind, add a line."""

EXTENDABLE: Final = ("config", "ablation")
"""Kinds whose files may extend another."""


def json_schema(kind: str) -> JsonSchemaValue:
    """JSON Schema of a kind of YAML file.

    A file that extends another may leave out anything, and may change a list by the names of its items.

    Raises:
        NotFoundError: There is no such kind.
    """
    from pydantic import TypeAdapter
    from pydantic.json_schema import GenerateJsonSchema

    class Lenient(GenerateJsonSchema):
        """What only Python can check may be anything."""

        def emit_warning(self, kind: Any, detail: str) -> None:
            """Defaults that JSON cannot hold are left out."""

        def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:
            return {}

    if kind not in KINDS:
        raise NotFoundError(
            "unknown-kind",
            f"unknown kind {shown(kind)}",
            expected=f"one of {', '.join(KINDS)}",
            hint=did_you_mean(kind, KINDS),
        )
    module, _, name = KINDS[kind][0].partition(":")
    model = getattr(importlib.import_module(module), name)
    whole = TypeAdapter(model).json_schema(schema_generator=Lenient)
    if kind not in EXTENDABLE:
        return whole
    definitions = whole.pop("$defs", {})
    partial = relaxed(whole)
    partial["properties"] = {"extends": {"type": "string", "description": "The file that this one changes."},
                             **partial["properties"]}  # fmt: skip
    changed = {f"{key}.changed": relaxed(part) for key, part in definitions.items()}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "if": {"required": ["extends"]},
        "then": partial,
        "else": whole,
        "$defs": {**definitions, **changed},
    }


def relaxed(schema: Any) -> Any:
    """A schema of changes: nothing is required, and a mapping of names may stand for a list."""
    schema = copy.deepcopy(schema)
    if isinstance(schema, list):
        return [relaxed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if not isinstance(schema.get("required"), dict):
        schema.pop("required", None)
    schema = {key: relaxed(part) for key, part in schema.items()}
    if isinstance(schema.get("$ref"), str):
        schema["$ref"] += ".changed"
    if isinstance(schema.get("discriminator"), dict):
        del schema["discriminator"]
    if schema.get("type") == "array":
        return {"anyOf": [schema, {"type": "object"}]}
    return schema
