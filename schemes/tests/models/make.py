"""Makes the policies of the tests in ``src/learned``, with answers that torch computes in float64.

    python schemes/tests/models/make.py            # writes NAME.onnx, NAME.json and NAME.cases.json next to itself
    python schemes/tests/models/make.py --exact    # also prints how far ONNX's reference is from torch before rounding

The tree's answers are scikit-learn's. Needs torch, onnx and scikit-learn. The same seed gives
the same files.
"""

from __future__ import annotations

import argparse
import hashlib
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from sklearn.tree import DecisionTreeClassifier
from torch import nn

HERE = Path(__file__).parent
DECISIONS = 20
SIGNALS = ["send_ratio", "latency_ratio", "loss_fraction", "rtt_inflation"]


class Graph:
    """Nodes and constants so far."""

    def __init__(self, exact: bool) -> None:
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.border = TensorProto.DOUBLE if exact else TensorProto.FLOAT

    def add(self, operation: str, *inputs: str, outputs: list[str] | None = None, **attributes: Any) -> list[str]:
        """Add a node; answers with its outputs."""
        outputs = outputs or [f"v{len(self.nodes)}"]
        self.nodes.append(helper.make_node(operation, list(inputs), outputs, **attributes))
        return outputs

    def one(self, operation: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add a node with one output, and answer with it."""
        return self.add(operation, *inputs, outputs=[output] if output else None, **attributes)[0]

    def constant(self, value: Any, kind: type = np.float64) -> str:
        """Add a constant."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value, dtype=kind), name))
        return name

    def linear(self, value: str, weight: torch.Tensor, bias: torch.Tensor) -> str:
        """``value · weightᵀ + bias``."""
        product = self.one("MatMul", value, self.constant(weight.detach().numpy().T))
        return self.one("Add", product, self.constant(bias.detach().numpy()))

    def model(self, sizes: dict[str, int]) -> bytes:
        """The bytes, with inputs ``observation`` and ``state`` and the rest as outputs."""
        inputs = [name for name in sizes if name in ("observation", "state")]
        outputs = [name for name in sizes if name not in inputs]
        graph = helper.make_graph(
            self.nodes,
            "test",
            [helper.make_tensor_value_info(n, TensorProto.FLOAT, ["batch", sizes[n]]) for n in inputs],
            [helper.make_tensor_value_info(n, self.border, ["batch", sizes[n]]) for n in outputs],
            self.constants,
        )
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=7)
        onnx.checker.check_model(made, full_check=True)
        return made.SerializeToString(deterministic=True)


class Mlp(nn.Module):
    """Normalization and clipping around tanh layers."""

    def __init__(self, sizes: list[int], bound: float | None) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(sizes))
        self.register_buffer("mean", torch.randn(sizes[0]))
        self.register_buffer("deviation", torch.rand(sizes[0]) + 0.5)
        self.bound = bound
        self.sizes = {"observation": sizes[0], "action": sizes[-1]}

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """What torch computes."""
        x = (x - self.mean) / self.deviation
        for i, layer in enumerate(self.layers):
            x = torch.tanh(layer(x)) if i + 1 < len(self.layers) else layer(x)
        return (x if self.bound is None else x.clamp(-self.bound, self.bound),)

    def export(self, exact: bool) -> bytes:
        """The same as an ONNX file; ``exact`` leaves the outputs in float64."""
        g = Graph(exact)
        x = g.one("Cast", "observation", to=TensorProto.DOUBLE)
        x = g.one("Div", g.one("Sub", x, g.constant(self.mean.numpy())), g.constant(self.deviation.numpy()))
        for i, layer in enumerate(self.layers):
            x = g.linear(x, layer.weight, layer.bias)
            x = g.one("Tanh", x) if i + 1 < len(self.layers) else x
        if self.bound is not None:
            x = g.one("Clip", x, g.constant(-self.bound), g.constant(self.bound))
        g.one("Cast", x, output="action", to=g.border)
        return g.model(self.sizes)


class Lstm(nn.Module):
    """Stacked LSTM cells and a linear layer; the state is ``[h | c]`` layer by layer."""

    def __init__(self, inputs: int, units: int, layers: int, outputs: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(inputs, units, layers)
        self.head = nn.Linear(units, outputs)
        state = 2 * units * layers
        self.sizes = {"observation": inputs, "state": state, "action": outputs, "state_out": state}

    def forward(self, x: torch.Tensor, state: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """What torch computes."""
        parts = state.reshape(self.lstm.num_layers, 2, 1, self.lstm.hidden_size)
        y, (h, c) = self.lstm(x[None], (parts[:, 0].contiguous(), parts[:, 1].contiguous()))
        return self.head(y[0]), torch.stack([h, c], dim=1).reshape(1, -1)

    def export(self, exact: bool) -> bytes:
        """The same as an ONNX file; ``exact`` leaves the outputs in float64."""
        g = Graph(exact)
        n, layers = self.lstm.hidden_size, self.lstm.num_layers
        x = g.one("Cast", "observation", to=TensorProto.DOUBLE)
        state = g.one("Cast", "state", to=TensorProto.DOUBLE)
        pieces = [f"s{i}" for i in range(2 * layers)]
        g.add("Split", state, g.constant([n] * (2 * layers), np.int64), outputs=pieces, axis=1)
        after = []
        for k in range(layers):
            w = {name: getattr(self.lstm, f"{name}_l{k}") for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")}
            gates = g.one(
                "Add",
                g.linear(x, w["weight_ih"], w["bias_ih"]),
                g.linear(pieces[2 * k], w["weight_hh"], w["bias_hh"]),
            )
            names = [f"g{k}{gate}" for gate in "ifno"]
            g.add("Split", gates, g.constant([n] * 4, np.int64), outputs=names, axis=1)
            enter, keep, leave = (g.one("Sigmoid", names[i]) for i in (0, 1, 3))
            entered = g.one("Mul", enter, g.one("Tanh", names[2]))
            cell = g.one("Add", g.one("Mul", keep, pieces[2 * k + 1]), entered)
            x = g.one("Mul", leave, g.one("Tanh", cell))
            after += [x, cell]
        g.one("Cast", g.linear(x, self.head.weight, self.head.bias), output="action", to=g.border)
        g.one("Cast", g.one("Concat", *after, axis=1), output="state_out", to=g.border)
        return g.model(self.sizes)


class Operations(nn.Module):
    """Each operation that a policy may be made of, once, on the same four numbers."""

    SIZE = 4

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(self.SIZE, self.SIZE))
        self.bias = nn.Parameter(torch.randn(self.SIZE))
        self.sizes = {"observation": self.SIZE, "action": 0}
        self.sizes["action"] = self.forward(torch.zeros(1, self.SIZE))[0].shape[1]

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """What torch computes."""
        w, b = self.weight, self.bias
        positive = x.abs() + 1
        made = [x.abs(), x + b, x.clamp(-0.5, 0.25), x / positive, x.exp(), x @ w + b, x @ w, positive.log()]
        made += [torch.maximum(x, b), torch.minimum(x, b), x * b, -x, x.relu(), x.sigmoid(), x[:, 1:3]]
        made += [x[:, :1], x[:, 1:], positive.sqrt(), x - b, x.tanh(), x]
        made += [
            nn.functional.elu(x, 0.5),
            nn.functional.leaky_relu(x, 0.25),
            nn.functional.softplus(x),
            x.softmax(1),
            x,
        ]
        return (torch.cat(made, dim=1),)

    def export(self, exact: bool) -> bytes:
        """The same as an ONNX file; ``exact`` leaves the outputs in float64."""
        g = Graph(exact)
        x = g.one("Cast", "observation", to=TensorProto.DOUBLE)
        w, b, one = g.constant(self.weight.detach()), g.constant(self.bias.detach()), g.constant(1.0)
        positive = g.one("Add", g.one("Abs", x), one)
        limits = g.constant(-0.5), g.constant(0.25)
        slices = [g.constant([k], np.int64) for k in (1, 3, 1)]
        made = [g.one("Abs", x), g.one("Add", x, b), g.one("Clip", x, *limits), g.one("Div", x, positive)]
        made += [g.one("Exp", x), g.one("Gemm", x, w, b), g.one("MatMul", x, w), g.one("Log", positive)]
        made += [g.one("Max", x, b), g.one("Min", x, b), g.one("Mul", x, b), g.one("Neg", x), g.one("Relu", x)]
        made += [g.one("Sigmoid", x), g.one("Slice", x, *slices)]
        made += g.add("Split", x, g.constant([1, 3], np.int64), outputs=["left", "right"], axis=1)
        made += [g.one("Sqrt", positive), g.one("Sub", x, b), g.one("Tanh", x), g.one("Identity", x)]
        made += [g.one("Elu", x, alpha=0.5), g.one("LeakyRelu", x, alpha=0.25), g.one("Softplus", x)]
        made += [g.one("Softmax", x, axis=1), g.one("Flatten", x)]
        g.one("Cast", g.one("Concat", *made, axis=1), output="action", to=g.border)
        return g.model(self.sizes)


class Tree(nn.Module):
    """What CART grows on noise: four features, five actions; wide thresholds on purpose."""

    def __init__(self) -> None:
        super().__init__()
        rng = np.random.default_rng(7)
        seen = rng.standard_normal((4000, 4)).astype(np.float32)
        wanted = (np.digitize(seen[:, 0] + seen[:, 1], [-1, 0, 1]) + (seen[:, 2] > seen[:, 3])).clip(0, 4)
        self.grown = DecisionTreeClassifier(min_samples_leaf=5, random_state=1).fit(seen, wanted)
        self.sizes = {"observation": 4, "action": 5}

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """What scikit-learn predicts, as scores."""
        return (torch.eye(5)[torch.from_numpy(self.grown.predict(x.numpy().astype(np.float32)))],)

    def export(self, exact: bool) -> bytes:
        """As ``ai.onnx.ml`` has it."""
        tree = self.grown.tree_
        near = tree.threshold.astype(np.float32)
        values = np.where(near > tree.threshold, np.nextafter(near, np.float32(-np.inf)), near)
        leaf = tree.children_left < 0
        leaves = np.flatnonzero(leaf).tolist()
        node = helper.make_node(
            "TreeEnsembleClassifier",
            ["observation"],
            ["label", "action"],
            domain="ai.onnx.ml",
            nodes_treeids=[0] * len(leaf),
            nodes_nodeids=list(range(len(leaf))),
            nodes_modes=["LEAF" if one else "BRANCH_LEQ" for one in leaf],
            nodes_featureids=tree.feature.clip(0).tolist(),
            nodes_values=np.where(leaf, np.float32(0), values).tolist(),
            nodes_truenodeids=tree.children_left.clip(0).tolist(),
            nodes_falsenodeids=tree.children_right.clip(0).tolist(),
            class_treeids=[0] * len(leaves),
            class_nodeids=leaves,
            class_ids=tree.value[leaves, 0].argmax(axis=1).tolist(),
            class_weights=[1.0] * len(leaves),
            classlabels_int64s=list(range(5)),
            post_transform="NONE",
        )
        ports = [
            [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", self.sizes[name]])]
            for name in ("observation", "action")
        ]
        opsets = [helper.make_opsetid("", 13), helper.make_opsetid("ai.onnx.ml", 1)]
        made = helper.make_model(helper.make_graph([node], "test", *ports), opset_imports=opsets, ir_version=7)
        onnx.checker.check_model(made)
        return made.SerializeToString(deterministic=True)


def agent(name: str, network: nn.Module, discrete: bool) -> dict[str, Any]:
    """An agent of the network's sizes."""
    size = network.sizes["observation"]
    features = 3 if size % 3 == 0 else 4
    if discrete:
        action = {"map": {"kind": "discrete", "operations": ["/2", "-10", "+0", "+10", "*2"]}, "target": "cwnd"}
    else:
        action = {"map": {"kind": "signed_multiply", "delta": 0.025}, "target": "rate"}
    return {
        "name": name,
        "clock": {"kind": "fixed", "interval": 10_000_000},
        "observation": {
            "features": [{"signal": signal, "clip": [-10.0, 1000.0]} for signal in SIGNALS[:features]],
            "history": size // features,
        },
        "action": action,
        "reward": {"terms": [{"term": "loss", "weight": -1.0}]},
        "startup": {"kind": "window", "packets": 10},
    }


def card(name: str, network: nn.Module, discrete: bool, made: bytes) -> dict[str, Any]:
    """The card of a network."""
    sizes = network.sizes
    state = sizes.get("state", 0)
    return {
        "format": 1,
        "name": name,
        "label": name,
        "color": "black",
        "marker": "o",
        "summary": f"A {'tree grown on noise' if isinstance(network, Tree) else 'network with random weights'}.",
        "reference": "none",
        "agent": agent(name, network, discrete),
        "policy": {
            "kind": "tree" if isinstance(network, Tree) else "lstm" if state else "mlp",
            "observation_size": sizes["observation"],
            "state_size": state,
            "action_size": sizes["action"],
        },
        "onnx_sha256": hashlib.sha256(made).hexdigest(),
    }


def cases(network: nn.Module, rng: np.random.Generator) -> list[dict[str, Any]]:
    """Decisions in sequence: torch in float64, rounded to float32 where it leaves the graph; ``exact`` is not."""
    size = network.sizes["observation"]
    state = np.zeros((1, network.sizes.get("state", 0)), np.float32)
    made = []
    for _ in range(DECISIONS):
        observation = (2 * rng.standard_normal((1, size))).astype(np.float32)
        inputs = [observation, state] if state.size else [observation]
        with torch.no_grad():
            exact = [value.numpy() for value in network(*(torch.from_numpy(x).double() for x in inputs))]
        action, *rest = (value.astype(np.float32) for value in exact)
        state = rest[0] if rest else state
        made.append({"observation": observation[0], "action": action[0], "state": state[0], "exact": exact[0]})
    return made


def as_text(made: list[dict[str, Any]]) -> str:
    """The float32 of the cases as JSON, a decision a line, with as many digits as float32 needs."""
    rows = [{name: [float(str(x)) for x in case[name]] for name in ("observation", "action", "state")} for case in made]
    return "[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n"


def largest_difference(network: nn.Module, made: list[dict[str, Any]]) -> float:
    """Of ONNX's reference evaluator from torch, both in float64."""
    from onnx.reference import ReferenceEvaluator

    session = ReferenceEvaluator(network.export(exact=True))
    state = np.zeros((1, network.sizes.get("state", 0)), np.float32)
    worst = 0.0
    for case in made:
        inputs = {"observation": np.float32([case["observation"]])}
        if state.size:
            inputs["state"] = state
        worst = max(worst, float(np.abs(session.run(["action"], inputs)[0] - case["exact"]).max()))
        state = np.float32([case["state"]])
    return worst


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description="make the policies of the tests")
    parser.add_argument("--exact", action="store_true", help="compare ONNX's reference with torch before rounding")
    options = parser.parse_args()
    torch.set_default_dtype(torch.float64)
    torch.manual_seed(1)
    rng = np.random.default_rng(1)
    networks = {
        "mlp": (Mlp([30, 32, 16, 1], bound=1.0), False),
        "scores": (Mlp([4, 8, 5], bound=None), True),
        "lstm": (Lstm(inputs=4, units=6, layers=2, outputs=5), True),
        "operations": (Operations(), None),
        "tree": (Tree(), True),
        "lstm_64": (Lstm(inputs=16, units=64, layers=1, outputs=5), True),
    }
    for name, (network, discrete) in networks.items():
        made = network.export(exact=False)
        (HERE / f"{name}.onnx").write_bytes(made)
        # A state of 128 numbers in each: a few show it.
        decided = cases(network, rng)[: 6 if name == "lstm_64" else None]
        (HERE / f"{name}.cases.json").write_text(as_text(decided))
        if discrete is not None:
            text = json.dumps(card(name, network, discrete, made), indent=1)
            (HERE / f"{name}.json").write_text(text + "\n")
        if options.exact:
            print(name, largest_difference(network, decided))  # noqa: T201


if __name__ == "__main__":
    main()
