"""Certificates: bounds that no input breaks, and properties of policies that are known to have them or not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from ccgym.cli.main import main
from ccgym.contrib.bounds import ROUNDING, Network, box, constant
from ccgym.contrib.certificate import _breaks, _direction, certify, settings_of, visit
from ccgym.errors import ConfigError
from ccgym.schemes.policies import LearnedPolicy, find, load
from tests.refusals import refused

RNG: Final = np.random.default_rng(1)


def policy(name: str) -> LearnedPolicy:
    found = find(name)
    assert found is not None
    return found


def graph(nodes: list[Any], constants: dict[str, Any]) -> bytes:
    """A network from ``observation`` to ``action``."""
    ports = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, None) for name in ("observation", "action")]
    kept = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    made = helper.make_graph(nodes, "test", ports[:1], ports[1:], initializer=kept)
    content: bytes = helper.make_model(made).SerializeToString()
    return content


def node(operation: str, *inputs: str, output: str = "action") -> Any:
    return helper.make_node(operation, list(inputs), [output])


CURVES: Final = {
    "Tanh": ([node("Tanh", "observation")], {}),
    "Sigmoid": ([node("Sigmoid", "observation")], {}),
    "Exp": ([node("Exp", "observation")], {}),
    "Max": ([node("Max", "observation", "c")], {"c": 0.3}),
    "Min": ([node("Min", "observation", "c")], {"c": [0.3, -0.2, 5.0]}),
    "Div": ([node("Sub", "observation", "c", output="v"), node("Div", "v", "d")], {"c": 0.1, "d": [2.0, -3.0, 0.5]}),
    "SiLU": ([node("Sigmoid", "observation", output="v"), node("Mul", "observation", "v")], {}),
    "square": ([node("Mul", "observation", "observation")], {}),
    "difference": ([node("Tanh", "observation", output="v"), node("Sub", "v", "observation")], {}),
}


@pytest.mark.parametrize("name", CURVES)
def test_no_input_breaks_the_bounds(name: str) -> None:
    network = Network(graph(*CURVES[name]))
    for _ in range(40):
        center, radius = RNG.normal(0, 2, 3), RNG.exponential(1, 3)
        low, high = network.over(box(center, radius)).bounds()
        for place in (*RNG.uniform(-1, 1, (100, 3)), np.ones(3), -np.ones(3)):
            answer = network.over(constant(center + place * radius)).center
            assert (low <= answer).all()
            assert (answer <= high).all()


@pytest.mark.parametrize(("name", "widest"), [("Tanh", 2.0), ("Sigmoid", 1.0), ("Max", 3.0)])
def test_bounds_of_small_boxes_are_close(name: str, widest: float) -> None:
    """The straight line is near the curve there; far from wider than the values themselves."""
    network = Network(graph(*CURVES[name]))
    low, high = network.over(box([0.5, -0.5, 2.0], 0.01)).bounds()
    assert (high - low <= 0.02 * widest).all()


def test_sums_are_exact_and_what_cancels_does() -> None:
    both = graph([node("MatMul", "observation", "w", output="v"), node("Sub", "v", "observation")], {"w": np.eye(3)})
    low, high = Network(both).over(box([1.0, 2.0, 3.0], 0.5)).bounds()
    assert np.abs(low).max() <= ROUNDING
    assert np.abs(high).max() <= ROUNDING


@pytest.mark.parametrize("name", ["aurora", "eagle", "indigo", "eagle_v1"])
def test_bounds_of_the_policies_that_come_along(name: str) -> None:
    """Without a width they are the policy's own decision; with one no observation leads out of them."""
    known = policy(name)
    network = Network(known.file.read_bytes())
    visited = visit(known, settings_of(known), 1, 7)
    for place in RNG.integers(0, len(visited.observations), 5):
        seen, state = visited.observations[[place]], visited.states[[place]]
        remembered = state if state.size else None
        answers = network.over(constant(seen), remembered).center
        native = known.native.decide(seen, remembered)[0][0]
        decided = answers if len(answers) == len(native) else np.array([np.argmax(answers)])
        assert decided == pytest.approx(native, abs=1e-5)
        low, high = network.over(box(seen[0], 0.05 * np.abs(seen[0])), remembered).bounds()
        for _ in range(20):
            other = seen[0] * RNG.uniform(0.95, 1.05, seen.shape[1])
            inside = network.over(constant(other), remembered).center
            assert (low <= inside).all()
            assert (inside <= high).all()


def test_an_unknown_operation_is_refused() -> None:
    with refused(ConfigError, "policy-unsuitable"):
        Network(graph([node("Cos", "observation")], {}))


def test_what_raises_and_what_lowers() -> None:
    assert [_direction(one) for one in ("*2", "/2", "+10", "-10", "+0", "*1", "*0.75", "/0.5")] == [
        1, -1, 1, -1, 0, 0, -1, 1
    ]  # fmt: skip
    number = _breaks({"kind": "signed_multiply", "delta": 0.025})
    assert number["congested"](box([-1.0], [0.5])) == (False, False)
    assert number["congested"](box([-1.0], [1.5])) == (True, False)
    assert number["congested"](box([1.0], [0.5])) == (True, True)
    assert number["clean"](box([1.0], [0.5])) == (False, False)
    chosen = _breaks({"kind": "discrete", "operations": ["/2", "+0", "*2"]})
    scores = box([0.0, 1.0, 0.0], [0.0, 0.4, 0.4])
    assert chosen["congested"](scores) == chosen["clean"](scores) == (False, False)
    wide = box([0.0, 1.0, 0.0], [0.0, 0.6, 0.6])
    assert (chosen["congested"](wide), chosen["clean"](wide)) == ((True, False), (False, False))
    with refused(ConfigError, "agent-unsuitable at certificate"):
        _breaks({"kind": "passive"})


def constant_policy(folder: Path, action: float) -> LearnedPolicy:
    """Aurora with a network that always gives this action."""
    known = policy("aurora")
    zeros = np.zeros((30, 1))
    nodes = [
        helper.make_node("Cast", ["observation"], ["wide"], to=TensorProto.DOUBLE),
        node("MatMul", "wide", "w", output="v"),
        node("Add", "v", "b", output="sum"),
        helper.make_node("Cast", ["sum"], ["action"], to=TensorProto.FLOAT),
    ]
    made = helper.make_graph(
        nodes, "constant",
        [helper.make_tensor_value_info("observation", TensorProto.FLOAT, ["batch", 30])],
        [helper.make_tensor_value_info("action", TensorProto.FLOAT, ["batch", 1])],
        initializer=[numpy_helper.from_array(zeros, "w"), numpy_helper.from_array(np.array([action]), "b")],
    )  # fmt: skip
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
    onnx.save(model, folder / "constant.onnx")
    import hashlib

    digest = hashlib.sha256((folder / "constant.onnx").read_bytes()).hexdigest()
    card = known.card.model_copy(update={"name": "constant", "onnx_sha256": digest})
    (folder / "constant.json").write_text(card.to_json(), encoding="utf-8")
    return load(folder / "constant.onnx")


@pytest.mark.parametrize(("action", "good", "bad"), [(0.05, "clean", "congested"), (-1.0, "congested", "clean")])
def test_a_policy_that_only_raises_or_only_lowers(tmp_path: Path, action: float, good: str, bad: str) -> None:
    found = certify(constant_policy(tmp_path, action), episodes=8, boxes=20)
    assert found.sound_for == "observation"
    assert found.properties[good].boxes > 0
    assert found.properties[bad].boxes > 0
    assert (found.properties[good].proven, found.properties[good].passed) == (1.0, True)
    assert (found.properties[bad].refuted, found.properties[bad].passed) == (1.0, False)


def test_wider_boxes_prove_less_and_a_seed_repeats_itself() -> None:
    known = policy("eagle_v1")
    narrow, again, wide = (certify(known, episodes=6, boxes=40, noise=noise) for noise in (0.01, 0.01, 0.5))
    assert narrow == again
    for name in ("congested", "clean"):
        one, other = narrow.properties[name], wide.properties[name]
        assert other.proven <= one.proven <= one.held
        assert one.proven + one.refuted <= 1
    assert wide.properties["congested"].proven < 0.5


def test_the_command_writes_the_card(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    known = policy("aurora")
    for suffix, file in ((".onnx", known.file), (".json", known.file.with_name("card.json"))):
        shutil.copy(file, tmp_path / f"mine{suffix}")
    arguments = ["schemes", "certificate", str(tmp_path / "mine.onnx"), "--episodes", "2", "--boxes", "5"]
    assert main([*arguments, "--write"]) == 0
    text = capsys.readouterr().out
    assert "A proof covers every observation." in text
    assert main([*arguments, "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert json.loads((tmp_path / "mine.json").read_text())["certificate"] == printed
    assert load(tmp_path / "mine.onnx").digest == known.digest, "the same policy"
    assert main(["schemes", "certificate", "auroar"]) == 2
    assert main(["schemes", "certificate", "aurora", "--boxes", "0"]) == 2
