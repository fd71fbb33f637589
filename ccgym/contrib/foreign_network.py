"""A network that was made outside ccgym, as an ONNX file in float32: what ``torch.onnx.export`` writes.

A policy of ccgym computes in float64 between float32 inputs and outputs (``docs/guides/deploy.md`` says why), from
constants that are all initializers. Here a given file becomes such a one: every weight is widened, constants of nodes
become initializers, and operations that are easily said by others are. What the result may hold the native core
checks, as of any policy. Both files are run side by side: the given one in float32 is what the export is compared with.
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
"""Newest version of ONNX's file format that the native core takes."""


@dataclass(frozen=True)
class ForeignNetwork:
    """A network read from a file, given and widened. It decides as a policy of torch does."""

    file: Path
    shape: NetworkShape
    given: bytes
    """The file's content."""
    widened: bytes
    """The same network in float64, of float32 inputs and outputs."""
    bounds = None
    """Those of its agent hold; the network itself may have none."""

    def onnx(self, name: str) -> bytes:
        """The file ``NAME.onnx``."""
        return self.widened

    # Made when they are first asked: by then the native core has named what it does not run.
    @cached_property
    def _given(self) -> onnxruntime.InferenceSession:
        return onnxruntime.InferenceSession(self.given, providers=["CPUExecutionProvider"])

    @cached_property
    def _widened(self) -> ReferenceEvaluator:
        # ONNX Runtime has no float64 of Softplus and others.
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
    """Read a network that was made outside ccgym.

    Args:
        file: The ``.onnx`` file: one input [batch, features] and one output [batch, actions], in float32; with a memory
            a second of each, [batch, state].
        observation_size: Numbers that its agent observes.
        action_size: Numbers that its agent's action has, or scores of a discrete one.

    Raises:
        ResultsError: The file is missing or no ONNX.
        ConfigError: It has other inputs or outputs than the agent, or parts that cannot be widened.
    """
    try:
        given = read_bytes(file, MAX_MODEL_BYTES)
        model = onnx.load_from_string(given)
        onnx.checker.check_model(model)
    except (FileNotFoundError, UnreadableError, DecodeError, onnx.checker.ValidationError) as error:
        found = error.strerror if isinstance(error, OSError) else str(error).strip().splitlines()[0]
        raise ResultsError(
            "network-unreadable",
            f"no network can be read: {found}",
            where=str(file),
            expected="an ONNX file, as torch.onnx.export writes one, its weights inside",
        ) from None
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = [port for port in model.graph.input if port.name not in constants]
    outputs = list(model.graph.output)
    if len(inputs) != len(outputs) or len(inputs) not in (1, 2):
        raise ConfigError(
            "policy-unsuitable",
            f"{len(inputs)} inputs and {len(outputs)} outputs",
            where=str(file),
            expected="features in and an action out, and a state each if the network has a memory",
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
                expected=f"{size}, as its agent has",
                hint="`ccgym describe CONFIG` lists what the agent observes and does, number by number",
            )
    widened = _widen(file, model, shape)
    return ForeignNetwork(file, shape, given, widened)


def _width(port: onnx.ValueInfoProto) -> int:
    """The last dimension of an input or output; 0 where it is open."""
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
        hint="export the network on a batch of flat features, its history flattened inside the network's input",
    )


def _widen(file: Path, model: onnx.ModelProto, shape: NetworkShape) -> bytes:
    """The network in float64, between casts of its inputs and outputs, which get the names that every policy has."""
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
            case "Identity" if x[0] in constants:  # how torch writes equal weights once
                constants[y] = constants[x[0]]
            case "Cast" if attributes["to"] in (TensorProto.FLOAT, TensorProto.DOUBLE):
                graph.add("Identity", x[0], output=y)  # everything is float64; any other is the core's to refuse
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
    """What a value of the given graph is called in the new one; an input that was left out has no name."""
    return f"given.{name}" if name else ""


def _constant(file: Path, given: Mapping[str, Any]) -> Any:
    """The value of a node ``Constant``, by its attributes."""
    match given:
        case {"value": tensor}:
            return numpy_helper.to_array(tensor)
        case {"value_float": value} | {"value_floats": value}:
            return np.asarray(value, dtype=np.float64)
        case {"value_int": value} | {"value_ints": value}:
            return np.asarray(value, dtype=np.int64)
    raise ConfigError("policy-unsuitable", f"a constant of {shown(sorted(given))}", where=str(file), expected="numbers")
