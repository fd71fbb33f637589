"""A network that was made outside ccgym becomes a scheme: the example from end to end, other graphs, and mistakes."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper
from torch import nn

import ccgym
from ccgym.cli.main import main as cli
from ccgym.schemes import policies
from ccgym.schemes.reading import parse_scheme
from tests.refusals import explained

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
CARD = EXAMPLES / "foreign_policy.yaml"


def exported(network: Path, *words: str) -> int:
    return cli(["train", "export", str(network), "--config", str(CARD), "--episodes", "1", *words])


def written(folder: Path, network: nn.Module, inputs: int = 2) -> Path:
    """The file of a network, as the example writes it."""
    file = folder / "network.onnx"
    names: dict[str, Any] = {"input_names": ["x"], "output_names": ["y"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # as in the example
        torch.onnx.export(network, (torch.zeros(1, inputs),), str(file), opset_version=17, dynamo=False, **names)
    return file


@pytest.mark.long
def test_the_example_becomes_a_scheme(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    network = tmp_path / "network.onnx"
    made = subprocess.run(
        [sys.executable, EXAMPLES / "foreign_policy.py", network], check=True, capture_output=True, text=True
    )
    assert "ccgym" not in (EXAMPLES / "foreign_policy.py").read_text(encoding="utf-8").split('"""')[2], made.stderr
    assert exported(network) == 0
    assert "as given, within" in capsys.readouterr().out
    file = tmp_path / "foreign_policy.onnx"
    policy = policies.load(file)
    assert (policy.card.training, policy.card.trained_here) == ({}, False)
    assert policy.card.parity["decisions"] > 100
    assert policy.card.reference == "not trained by ccgym"
    assert "not trained by ccgym" in policy.label
    assert parse_scheme(str(file)).policy == policy
    # It keeps the queue that its rule asks for: a tenth of the round trip of 40 ms.
    path = ccgym.NetworkPath(rate="24mbps", rtt="40ms", queue="200p")
    flow = ccgym.simulate(path, flows=[str(file)], duration="10s").flows[0]
    assert flow.throughput_mbps > 20
    assert 20 < flow.delay_p95_ms < 30


@pytest.mark.parametrize(
    "layers",
    [
        (nn.LeakyReLU(0.2), nn.Linear(8, 8), nn.ELU(0.7)),
        (nn.SiLU(), nn.Linear(8, 8), nn.ReLU6(), nn.Dropout()),
        (nn.Sigmoid(), nn.Linear(8, 8, bias=False), nn.BatchNorm1d(8)),
        (nn.Softplus(), nn.Linear(8, 8), nn.Mish(), nn.Linear(8, 4), nn.Softmax(dim=1), nn.Linear(4, 8)),
    ],
    ids=lambda layers: type(layers[0]).__name__,
)
def test_other_layers(layers: tuple[nn.Module, ...], tmp_path: Path) -> None:
    torch.manual_seed(2)
    network = nn.Sequential(nn.Linear(2, 8), *layers, nn.Linear(8, 1), nn.Hardtanh(-0.5, 0.5))
    network(torch.rand(64, 2))  # statistics of the batch normalization
    assert exported(written(tmp_path, network.eval())) == 0
    observations = np.random.default_rng(1).uniform(0, 2, size=(50, 2)).astype(np.float32)
    found, _ = policies.load(tmp_path / "foreign_policy.onnx").native.decide(observations, None)
    with torch.no_grad():
        expected = network(torch.from_numpy(observations)).numpy()
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_memory_is_carried_along(tmp_path: Path) -> None:
    """A running mean of the first feature, by nodes: state ← (state + feature) / 2 is also the action."""
    ports = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", size])
        for name, size in (("x", 2), ("h", 1), ("y", 1), ("k", 1))
    ]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["first"]),
        helper.make_node("Add", ["first", "h"], ["sum"]),
        helper.make_node("Constant", [], ["half"], value=numpy_helper.from_array(np.float32(0.5))),
        helper.make_node("Mul", ["sum", "half"], ["y"]),
        helper.make_node("Identity", ["y"], ["k"]),
    ]
    weights = numpy_helper.from_array(np.array([[1], [0]], dtype=np.float32), "w")
    graph = helper.make_graph(nodes, "mean", ports[:2], ports[2:], initializer=[weights])
    file = tmp_path / "network.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)
    assert exported(file) == 0
    native = policies.load(tmp_path / "foreign_policy.onnx").native
    one = np.array([[1, 0]], dtype=np.float32)
    action, state = native.decide(one, None)
    assert (action.item(), native.decide(one, state)[0].item()) == (0.5, 0.75)


def test_mistakes_are_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def refuses(what: str, network: Path, *words: str) -> None:
        assert exported(network, *words) == 2
        explained(capsys.readouterr().err, what)

    refuses("shape-mismatch at network.onnx", written(tmp_path, nn.Linear(3, 1), 3))
    refuses("shape-mismatch at network.onnx", written(tmp_path, nn.Linear(2, 4)))
    refuses("policy-unsuitable at network.onnx", written_in_double(tmp_path))
    refuses("unsupported", written(tmp_path, nn.Sequential(nn.Linear(2, 1), nn.GELU())))
    good = written(tmp_path, nn.Linear(2, 1))
    refuses("name-taken", good, "-o", str(good))
    refuses("options-conflict", good, "--normalize", "x.pkl")
    refuses("options-conflict", good, "--model", "best")
    refuses("network-unreadable at none.onnx", tmp_path / "none.onnx")
    bad = tmp_path / "bad.onnx"
    bad.write_bytes(b"PK")
    refuses("network-unreadable at bad.onnx", bad)
    assert cli(["train", "export", str(good)]) == 2
    explained(capsys.readouterr().err, "option-needed at --config")
    assert {file.name for file in tmp_path.iterdir()} == {"network.onnx", "bad.onnx"}, "nothing was written"


def written_in_double(folder: Path) -> Path:
    ports = [helper.make_tensor_value_info(name, TensorProto.DOUBLE, ["n", 2]) for name in ("x", "y")]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "minus", ports[:1], ports[1:])
    file = folder / "network.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), file)
    return file
