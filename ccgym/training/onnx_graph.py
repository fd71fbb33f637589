"""Exported policies as ONNX graphs, put together node by node.

**A network.**

float32 in → float64 → normalization → layers → clipping to the action's bounds → float32 out. Built from the weights
rather than traced, so that the graph holds nothing but the sums, and equal weights give equal bytes.

========================  ==================================  =========================================
``observation``           float32 [batch, features]           raw features: normalization is inside
``state``                 float32 [batch, state], if any      ``[h | c]`` layer by layer; zeros at first
``action``                float32 [batch, actions]            of a discrete policy, one score per operation
``state_out``             float32 [batch, state], if any      the state for the next decision
========================  ==================================  =========================================

Only elementary operations are used (matrix product, sums, products, tanh, sigmoid, exp, min, max, split,
concatenation), on float64, so that any runtime can do it.

**A tree** is one node, ``TreeEnsembleClassifier`` of the standard domain ``ai.onnx.ml``, from ``observation`` to
``action`` (``schemes/src/learned/tree.rs``).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from ccgym.schemes.policy_card import NetworkShape
from ccgym.training.torch_policy import TorchPolicy
from ccgym.training.tree_policy import TreePolicy

OPSET: Final = 13
"""Version of ONNX's operations: old enough for every runtime."""
IR_VERSION: Final = 7
"""Version of ONNX's file format that belongs to it."""
ML_OPSET: Final = 1
"""Version of ``ai.onnx.ml``: the first has all that a tree needs."""


def build_onnx(policy: TorchPolicy, name: str) -> bytes:
    """The file ``NAME.onnx`` of a policy; equal policies give equal bytes.

    Args:
        policy: Whose weights.
        name: The graph's name.
    """
    shape = policy.shape
    graph = _Graph()
    inputs = [helper.make_tensor_value_info("observation", TensorProto.FLOAT, ["batch", shape.observation_size])]
    outputs = [helper.make_tensor_value_info("action", TensorProto.FLOAT, ["batch", shape.action_size])]
    value = graph.add("Cast", "observation", to=TensorProto.DOUBLE)
    if policy.normalizer is not None:
        value = graph.add("Sub", value, graph.constant(policy.normalizer.mean))
        value = graph.add("Div", value, graph.constant(policy.normalizer.deviation))
        value = graph.between(value, -policy.normalizer.clip, policy.normalizer.clip)
    if policy.lstm is not None:
        inputs.append(helper.make_tensor_value_info("state", TensorProto.FLOAT, ["batch", shape.state_size]))
        outputs.append(helper.make_tensor_value_info("state_out", TensorProto.FLOAT, ["batch", shape.state_size]))
        value = _lstm(graph, value, policy.lstm)
    for layer in policy.layers:
        value = _layer(graph, value, layer)
    if policy.bounds is not None:
        value = graph.between(value, *policy.bounds)
    graph.add("Cast", value, to=TensorProto.FLOAT, output="action")
    model = helper.make_model(
        helper.make_graph(graph.nodes, name, inputs, outputs, initializer=graph.constants),
        producer_name="ccgym",
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
    )
    onnx.checker.check_model(model, full_check=True)
    made: bytes = model.SerializeToString(deterministic=True)
    return made


def build_tree(tree: TreePolicy, shape: NetworkShape, name: str) -> bytes:
    """The file ``NAME.onnx`` of a tree; equal trees give equal bytes.

    Args:
        tree: The tree.
        shape: Its sizes.
        name: The graph's name.
    """
    count, leaf = len(tree.feature), (tree.feature < 0).numpy()
    leaves = np.flatnonzero(leaf)
    node = helper.make_node(
        "TreeEnsembleClassifier",
        ["observation"],
        ["label", "action"],
        domain="ai.onnx.ml",
        nodes_treeids=[0] * count,
        nodes_nodeids=list(range(count)),
        nodes_modes=["LEAF" if one else "BRANCH_LEQ" for one in leaf],
        nodes_featureids=tree.feature.clamp(min=0).tolist(),
        nodes_values=tree.threshold.tolist(),
        nodes_hitrates=tree.decisions.float().tolist(),
        nodes_truenodeids=tree.at_most.tolist(),
        nodes_falsenodeids=tree.above.tolist(),
        class_treeids=[0] * len(leaves),
        class_nodeids=leaves.tolist(),
        class_ids=tree.action[leaves].tolist(),
        class_weights=tree.share[leaves].clamp(min=1e-6).tolist(),
        classlabels_int64s=list(range(shape.action_size)),
        post_transform="NONE",
    )
    inputs = [helper.make_tensor_value_info("observation", TensorProto.FLOAT, ["batch", shape.observation_size])]
    outputs = [helper.make_tensor_value_info("action", TensorProto.FLOAT, ["batch", shape.action_size])]
    model = helper.make_model(
        helper.make_graph([node], name, inputs, outputs),
        producer_name="ccgym",
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)],
        ir_version=IR_VERSION,
    )
    onnx.checker.check_model(model)
    made: bytes = model.SerializeToString(deterministic=True)
    return made


@dataclass
class _Graph:
    """Nodes and constants so far; values are known by their names."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def add(self, operation: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add a node with one output, and return its name."""
        return self.add_many(operation, *inputs, outputs=[output or f"v{len(self.nodes)}"], **attributes)[0]

    def add_many(self, operation: str, *inputs: str, outputs: list[str], **attributes: Any) -> list[str]:
        """Add a node with several outputs."""
        self.nodes.append(helper.make_node(operation, list(inputs), outputs, **attributes))
        return outputs

    def constant(self, value: npt.ArrayLike, kind: type[np.generic] = np.float64) -> str:
        """Add a constant, and return its name."""
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value, dtype=kind), name))
        return name

    def between(self, value: str, low: npt.ArrayLike, high: npt.ArrayLike) -> str:
        """Limit a value; Max and Min, because bounds may differ by component."""
        return self.add("Min", self.add("Max", value, self.constant(low)), self.constant(high))

    def affine(self, value: str, weight: Any, bias: Any) -> str:
        """``value · weightᵀ + bias``, of torch's parameters."""
        product = self.add("MatMul", value, self.constant(weight.detach().numpy().T))
        return product if bias is None else self.add("Add", product, self.constant(bias.detach().numpy()))

    def split(self, value: str, sizes: list[int]) -> list[str]:
        """Cut the columns of a value into pieces of these widths."""
        names = [f"v{len(self.nodes)}_{place}" for place in range(len(sizes))]
        return self.add_many("Split", value, self.constant(sizes, np.int64), outputs=names, axis=1)


def _layer(graph: _Graph, value: str, layer: nn.Module) -> str:
    match layer:
        case nn.Linear():
            return graph.affine(value, layer.weight, layer.bias)
        case nn.Tanh():
            return graph.add("Tanh", value)
        case nn.Sigmoid():
            return graph.add("Sigmoid", value)
        case nn.SiLU():
            return graph.add("Mul", value, graph.add("Sigmoid", value))
        case nn.ReLU():
            return graph.add("Max", value, graph.constant(0.0))
        case nn.LeakyReLU():
            slope = graph.constant(layer.negative_slope)
            below = graph.add("Mul", graph.add("Min", value, graph.constant(0.0)), slope)
            return graph.add("Add", graph.add("Max", value, graph.constant(0.0)), below)
        case nn.ELU():
            grown = graph.add("Exp", graph.add("Min", value, graph.constant(0.0)))
            below = graph.add("Mul", graph.add("Sub", grown, graph.constant(1.0)), graph.constant(layer.alpha))
            return graph.add("Add", graph.add("Max", value, graph.constant(0.0)), below)
        case nn.Identity():
            return value
    raise AssertionError(f"TorchPolicy let a layer pass that has no node: {layer}")


def _lstm(graph: _Graph, value: str, lstm: nn.LSTM) -> str:
    """One step of torch's LSTM, layer by layer; adds ``state_out``."""
    layers, units = lstm.num_layers, lstm.hidden_size
    state = graph.split(graph.add("Cast", "state", to=TensorProto.DOUBLE), [units] * (2 * layers))
    after = []
    for layer in range(layers):
        hidden, cell = state[2 * layer], state[2 * layer + 1]
        weights = [getattr(lstm, f"{name}_l{layer}") for name in ("weight_ih", "bias_ih", "weight_hh", "bias_hh")]
        gates = graph.add("Add", graph.affine(value, *weights[:2]), graph.affine(hidden, *weights[2:]))
        # torch's order: input, forget, new, output.
        enter, keep, new, leave = graph.split(gates, [units] * 4)
        kept = graph.add("Mul", graph.add("Sigmoid", keep), cell)
        entered = graph.add("Mul", graph.add("Sigmoid", enter), graph.add("Tanh", new))
        cell = graph.add("Add", kept, entered)
        value = graph.add("Mul", graph.add("Sigmoid", leave), graph.add("Tanh", cell))
        after += [value, cell]
    graph.add("Cast", graph.add("Concat", *after, axis=1), to=TensorProto.FLOAT, output="state_out")
    return value
