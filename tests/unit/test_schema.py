"""JSON Schema of YAML files, from the models that read them."""

from __future__ import annotations

import json

import pytest

from ccgym import _core
from ccgym.cli.describe import KINDS, json_schema
from ccgym.cli.main import main
from ccgym.config.declared import kinds_of
from ccgym.config.models import AnyElement, AnyQueue
from ccgym.errors import NotFoundError
from tests.refusals import refused


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_has_a_schema(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "--schema", kind]) == 0
    assert json.loads(capsys.readouterr().out) == json_schema(kind)


def test_kinds_are_listed_and_near_misses_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", "--schema"]) == 0
    assert all(kind in capsys.readouterr().out for kind in ["config"])
    with refused(NotFoundError, "unknown-kind"):
        json_schema("pth")


def test_ranges_defaults_and_help_reach_the_schema() -> None:
    fq_codel = json_schema("path")["$defs"]["FqCodel"]
    assert fq_codel["additionalProperties"] is False
    flows = fq_codel["properties"]["flows"]
    assert (flows["default"], flows["minimum"], flows["maximum"]) == (1024, 1, 65_536)
    assert "RFC" in flows["description"]


def test_a_file_that_extends_another_needs_nothing_else() -> None:
    schema = json_schema("config")
    assert schema["if"] == {"required": ["extends"]}
    assert "agent" in schema["else"]["required"]
    assert "required" not in schema["then"]
    terms = schema["$defs"]["Reward.changed"]["properties"]["terms"]
    assert {"type": "object"} in terms["anyOf"]


def test_models_have_what_the_core_declares() -> None:
    declared = json.loads(_core.schema())
    for union, models in (("Element", kinds_of(AnyElement)), ("Queue", kinds_of(AnyQueue))):
        variants = {one["properties"]["kind"]["const"]: one["properties"] for one in declared[union]["oneOf"]}
        assert set(variants) == set(models)
        for kind in set(models) - {"link"}:
            assert set(variants[kind]) == set(models[kind].model_fields) - {"direction"}
