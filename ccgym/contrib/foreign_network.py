"""A network from another program, as an ONNX file in float32, such as ``torch.onnx.export`` writes.

A policy of ccgym computes in float64 between float32 inputs and outputs (``docs/guides/deploy.md`` has the reason),
and all its constants are initializers. This module converts a given file to this form: it widens every weight, makes
constants of nodes initializers, and replaces some operations by simpler ones. The native core checks the operations
of the result, as for any policy. Both files are run and compared: the given file in float32 is the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
import onnxruntime
from google.protobuf.message import DecodeError
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from ccgym.errors import ConfigError, ResultsError, shown
from ccgym.files import MAX_MODEL_BYTES, UnreadableError, read_bytes
from ccgym.schemes.policy_card import NetworkShape
from ccgym.training.onnx_graph import Floats, Graph

MAX_IR_VERSION: Final = 10
"""Newest version of ONNX's file format that the native core accepts."""


@dataclass(frozen=True)
class ForeignNetwork:
    """A network from a file, in the given and the widened form. It has the methods of a torch policy."""

    file: Path
    shape: NetworkShape
    given: bytes
    """Content of the file."""
    widened: bytes
    """The same network in float64, with float32 inputs and outputs."""
    bounds = None
    """The bounds of its agent apply; the network itself may have none."""

    def onnx(self, name: str) -> bytes:
        """Return the content of the file ``NAME.onnx``."""
        return self.widened

    # Created at the first use: before that, the native core has reported unsupported operations.
    @cached_property
    def _given(self) -> onnxruntime.InferenceSession:
        return onnxruntime.InferenceSession(self.given, providers=["CPUExecutionProvider"])

    @cached_property
    def _widened(self) -> ReferenceEvaluator:
        # ONNX Runtime lacks float64 for Softplus and other operations.
        return ReferenceEvaluator(self.widened)

    def decide(self, observations: Floats, state: Floats | None = None) -> tuple[Floats, Floats | None]:
        """Evaluate the widened network; see :meth:`TorchPolicy.decide`."""
        return self._run(self._widened.run, self._widened.input_names, observations, state)

    def decide_as_trained(self, observations: Floats, state: Floats | None = None) -> tuple[Floats, Floats | None]:
        """Evaluate the given file in float32."""
        names = [one.name for one in self._given.get_inputs()]
        return self._run(self._given.run, names, observations, state)

    def _run(
        self, run: Callable[..., Any], names: list[str], observations: Floats, state: Floats | None
    ) -> tuple[Floats, Floats | None]:
        inputs = {names[0]: observations.astype(np.float32)}
        if self.shape.state_size:
            zeros = np.zeros((len(observations), self.shape.state_size), dtype=np.float32)
            inputs[names[1]] = zeros if state is None else state
        answers = [np.asarray(answer, dtype=np.float32) for answer in run(None, inputs)]
        return answers[0].reshape(len(observations), -1), answers[1] if self.shape.state_size else None


def load_foreign(file: Path, observation_size: int, action_size: int) -> ForeignNetwork:
    """Read a network from another program.

    Args:
        file: The ``.onnx`` file: one input [batch, features] and one output [batch, actions], in float32; a network
            with memory has a second input and output, [batch, state].
        observation_size: Number of features in the agent's observation.
        action_size: Number of values in the agent's action, or of scores for a discrete action.

    Raises:
        ResultsError: The file is missing or is no ONNX file.
        ConfigError: Its inputs or outputs do not fit the agent, or it has parts that cannot be widened.
    """
    try:
        given = read_bytes(file, MAX_MODEL_BYTES)
        model = onnx.load_from_string(given)
        onnx.checker.check_model(model)
    except (FileNotFoundError, UnreadableError, DecodeError, onnx.checker.ValidationError) as error:
        found = error.strerror if isinstance(error, OSError) else str(error).strip().splitlines()[0]
        raise ResultsError(
            "network-unreadable",
            f"the network cannot be read: {found}",
            where=str(file),
            expected="an ONNX file, as from torch.onnx.export, with the weights inside",
        ) from None
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = [port for port in model.graph.input if port.name not in constants]
    outputs = list(model.graph.output)
    if len(inputs) != len(outputs) or len(inputs) not in (1, 2):
        raise ConfigError(
            "policy-unsuitable",
            f"{len(inputs)} inputs and {len(outputs)} outputs",
            where=str(file),
            expected="features as input and an action as output; for a network with memory, also a state for both",
        )
    for port in (*inputs, *outputs):
        _require_float32(file, port)
    state_size = 0 if len(inputs) == 1 else _width(inputs[1])
    shape = NetworkShape(
        kind="lstm" if len(inputs) == 2 else "mlp",
        observation_size=observation_size,
        state_size=state_size,
        action_size=action_size,
    )
    for port, what, size in ((inputs[0], "features", observation_size), (outputs[0], "actions", action_size)):
        if _width(port) not in (0, size):
            raise ConfigError(
                "shape-mismatch",
                f"the network has {_width(port)} {what} ({port.name})",
                where=str(file),
                expected=f"{size}, as in its agent",
                hint="run `ccgym describe CONFIG` to list each number of the agent's observation and action",
            )
    widened = _widen(file, model, shape)
    return ForeignNetwork(file, shape, given, widened)


def _width(port: onnx.ValueInfoProto) -> int:
    """Return the last dimension of an input or output; 0 if it is not fixed."""
    dims = port.type.tensor_type.shape.dim
    return int(dims[-1].dim_value) if dims else 0


def _require_float32(file: Path, port: onnx.ValueInfoProto) -> None:
    kind, dims = port.type.tensor_type.elem_type, port.type.tensor_type.shape.dim
    if kind == TensorProto.FLOAT and len(dims) == 2:
        return
    sizes = ", ".join(one.dim_param or str(one.dim_value) for one in dims)
    raise ConfigError(
        "policy-unsuitable",
        f"{port.name} is {TensorProto.DataType.Name(kind).lower()} [{sizes}]",
        where=str(file),
        expected="float [batch, numbers]",
        hint="export the network with a batch of flat features, with the history flattened in the network's input",
    )


def _widen(file: Path, model: onnx.ModelProto, shape: NetworkShape) -> bytes:
    """Return the network in float64, between casts of inputs and outputs, which get the names of every policy."""
    graph, constants = Graph(), {_inner(one.name): numpy_helper.to_array(one) for one in model.graph.initializer}
    given = [port.name for port in model.graph.input if _inner(port.name) not in constants]
    for port, name in zip(("observation", "state"), given, strict=False):
        graph.add("Cast", port, to=TensorProto.DOUBLE, output=_inner(name))
    for node in model.graph.node:
        x, (y, *_) = [*map(_inner, node.input)], [*map(_inner, node.output)]
        attributes = {one.name: helper.get_attribute_value(one) for one in node.attribute}
        match node.op_type:
            case "Constant":
                constants[y] = _constant(file, attributes)
            case "Identity" if x[0] in constants:  # torch writes equal weights once in this way
                constants[y] = constants[x[0]]
            case "Cast" if attributes["to"] in (TensorProto.FLOAT, TensorProto.DOUBLE):
                graph.add("Identity", x[0], output=y)  # everything is float64; the core refuses any other cast
            case "LeakyRelu":
                graph.leaky_relu(x[0], attributes.get("alpha", np.float32(0.01)), output=y)
            case "Elu":
                graph.elu(x[0], attributes.get("alpha", 1.0), output=y)
            case "BatchNormalization" if constants.keys() >= set(x[1:]):
                scale, bias, mean, variance = (constants[name].astype(np.float64) for name in x[1:])
                factor = scale / np.sqrt(variance + attributes.get("epsilon", 1e-5))
                scaled = graph.add("Mul", x[0], graph.constant(factor))
                graph.add("Add", scaled, graph.constant(bias - mean * factor), output=y)
            case _:
                kept = onnx.NodeProto()
                kept.CopyFrom(node)
                kept.input[:], kept.output[:] = x, map(_inner, node.output)
                graph.nodes.append(kept)
    for port, old in zip(("action", "state_out"), model.graph.output, strict=False):
        graph.add("Cast", _inner(old.name), to=TensorProto.FLOAT, output=port)
    used = {name for node in graph.nodes for name in node.input}
    for name in sorted(used & constants.keys()):
        floating = np.issubdtype(constants[name].dtype, np.floating)
        graph.constant(constants[name], np.float64 if floating else np.int64, name)
    opsets = [(one.domain, one.version) for one in model.opset_import]
    made = graph.finished(model.graph.name or "policy", shape, opsets, min(model.ir_version, MAX_IR_VERSION))
    widened: bytes = made.SerializeToString(deterministic=True)
    return widened


def _inner(name: str) -> str:
    """Return the name of a given graph's value in the new graph; a missing input has no name."""
    return f"given.{name}" if name else ""


def _constant(file: Path, given: Mapping[str, Any]) -> Any:
    """Return the value of a node ``Constant`` from its attributes."""
    match given:
        case {"value": tensor}:
            return numpy_helper.to_array(tensor)
        case {"value_float": value} | {"value_floats": value}:
            return np.asarray(value, dtype=np.float64)
        case {"value_int": value} | {"value_ints": value}:
            return np.asarray(value, dtype=np.int64)
    raise ConfigError("policy-unsuitable", f"a constant of {shown(sorted(given))}", where=str(file), expected="numbers")
