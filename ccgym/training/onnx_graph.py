"""Exported policies as ONNX graphs, built node by node: networks of torch, trees, and external networks
(:mod:`ccgym.contrib.foreign_network`).

**A network.**

float32 in → float64 → normalization → layers → clipping to the action's bounds → float32 out. The graph is built from
the weights, not traced: so it contains only the computation, and equal weights give equal bytes.

========================  ==================================  =========================================
``observation``           float32 [batch, features]           raw features: normalization is inside
``state``                 float32 [batch, state], if any      ``[h | c]`` layer by layer; zeros at first
``action``                float32 [batch, actions]            for discrete policies: one score per operation
``state_out``             float32 [batch, state], if any      the state for the next decision
========================  ==================================  =========================================

Only elementary operations are used (matrix product, sums, products, tanh, sigmoid, exp, min, max, split,
concatenation), on float64, so that any runtime supports them.

**A tree** is one node, ``TreeEnsembleClassifier`` of the standard domain ``ai.onnx.ml``, from ``observation`` to
``action`` (``schemes/src/learned/tree.rs``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import onnx
from onnx import TensorProto, helper, numpy_helper
from torch import nn

from ccgym.schemes.policy_card import NetworkShape

Floats: TypeAlias = npt.NDArray[np.float32]
"""Inputs and outputs of a network."""

OPSET: Final = 13
"""Version of ONNX's operations: old enough for all runtimes."""
IR_VERSION: Final = 7
"""Version of ONNX's file format for this version of the operations."""
ML_OPSET: Final = 1
"""Version of ``ai.onnx.ml``: the first version has all operations of a tree."""


@dataclass
class Graph:
    """Nodes and constants so far; values are identified by their names."""

    nodes: list[onnx.NodeProto] = field(default_factory=list)
    constants: list[onnx.TensorProto] = field(default_factory=list)

    def add(self, operation: str, *inputs: str, output: str = "", **attributes: Any) -> str:
        """Add a node with one output, and return its name."""
        return self.add_many(operation, *inputs, outputs=[output or f"v{len(self.nodes)}"], **attributes)[0]

    def add_many(self, operation: str, *inputs: str, outputs: list[str], **attributes: Any) -> list[str]:
        """Add a node with several outputs."""
        self.nodes.append(helper.make_node(operation, list(inputs), outputs, **attributes))
        return outputs

    def constant(self, value: npt.ArrayLike, kind: type[np.generic] = np.float64, name: str = "") -> str:
        """Add a constant, and return its name."""
        name = name or f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(value, dtype=kind), name))
        return name

    def between(self, value: str, low: npt.ArrayLike, high: npt.ArrayLike) -> str:
        """Limit a value; Max and Min, because bounds may differ by component."""
        return self.add("Min", self.add("Max", value, self.constant(low)), self.constant(high))

    def affine(self, value: str, weight: Any, bias: Any) -> str:
        """Add ``value · weightᵀ + bias`` with torch's parameters."""
        product = self.add("MatMul", value, self.constant(weight.detach().numpy().T))
        return product if bias is None else self.add("Add", product, self.constant(bias.detach().numpy()))

    def split(self, value: str, sizes: list[int]) -> list[str]:
        """Split the columns of a value into pieces of these widths."""
        names = [f"v{len(self.nodes)}_{place}" for place in range(len(sizes))]
        return self.add_many("Split", value, self.constant(sizes, np.int64), outputs=names, axis=1)

    def leaky_relu(self, value: str, slope: float, output: str = "") -> str:
        """Add max(x, 0) + slope · min(x, 0)."""
        factor = self.constant(slope)
        below = self.add("Mul", self.add("Min", value, self.constant(0.0)), factor)
        return self.add("Add", self.add("Max", value, self.constant(0.0)), below, output=output)

    def elu(self, value: str, alpha: float, output: str = "") -> str:
        """Add max(x, 0) + alpha · (exp(min(x, 0)) − 1)."""
        grown = self.add("Exp", self.add("Min", value, self.constant(0.0)))
        below = self.add("Mul", self.add("Sub", grown, self.constant(1.0)), self.constant(alpha))
        return self.add("Add", self.add("Max", value, self.constant(0.0)), below, output=output)

    def finished(
        self, name: str, shape: NetworkShape, opsets: Sequence[tuple[str, int]], ir_version: int = IR_VERSION
    ) -> onnx.ModelProto:
        """Return the model, with the inputs and outputs of every policy.

        Args:
            name: Name of the graph.
            shape: Sizes of inputs and outputs.
            opsets: Domains of operations, with their versions.
            ir_version: Version of the file's format.
        """
        sides = (("observation", shape.observation_size, "state"), ("action", shape.action_size, "state_out"))
        inputs, outputs = (
            [
                helper.make_tensor_value_info(port, TensorProto.FLOAT, ["batch", size])
                for port, size in ((first, width), (memory, shape.state_size))[: 2 if shape.state_size else 1]
            ]
            for first, width, memory in sides
        )
        return helper.make_model(
            helper.make_graph(self.nodes, name, inputs, outputs, initializer=self.constants),
            producer_name="ccgym",
            opset_imports=[helper.make_opsetid(*one) for one in opsets],
            ir_version=ir_version,
        )


def content(model: onnx.ModelProto, *, full_check: bool = False) -> bytes:
    """Return the file of a model; equal models give equal bytes."""
    onnx.checker.check_model(model, full_check=full_check)
    made: bytes = model.SerializeToString(deterministic=True)
    return made


def add_layer(graph: Graph, value: str, layer: nn.Module) -> str:
    """Add one of torch's layers, and return the name of its output."""
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
            return graph.leaky_relu(value, layer.negative_slope)
        case nn.ELU():
            return graph.elu(value, layer.alpha)
        case nn.Identity():
            return value
    raise AssertionError(f"TorchPolicy let a layer pass that has no node: {layer}")


def add_lstm(graph: Graph, value: str, lstm: nn.LSTM) -> str:
    """Add one step of torch's LSTM, layer by layer, with ``state_out``."""
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
