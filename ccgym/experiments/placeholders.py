"""Placeholders in an experiment's YAML: ``$rate`` is a named value, ``$(2 * owd)`` is arithmetic with them.

Values keep their units: ``$(2 * owd)`` of ``10ms`` is 20 ms, and a sum of a time and a rate is an error. Arithmetic has
``+ - * /``, parentheses, and the functions of :data:`FUNCTIONS`; nothing else is evaluated.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from ccgym.errors import ConfigError, UnitError, did_you_mean, located, shown
from ccgym.units import (
    NS_PER_MS,
    NS_PER_S,
    PACKET_BITS,
    Nanoseconds,
    format_rate,
    is_number,
    parse_rate,
    parse_size,
    parse_time,
)

SCHEME: Final = "scheme"
"""Name of the tested scheme: its placeholder stays until a scheme is inserted."""

Unit: TypeAlias = Literal["rate", "time", "bdp", "packets", ""]

_NAME: Final = re.compile(r"\$([A-Za-z_]\w*)")
_TIME: Final = re.compile(r"[\d.]+\s*(ns|us|µs|μs|ms|s|sec|min)")
_OPERATORS: Final[Mapping[type, Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True)
class Quantity:
    """A number with its unit."""

    value: float
    """Value in bit/s, ns, bandwidth-delay products or packets, depending on the unit."""
    unit: Unit = ""
    """Unit; empty for a plain number."""

    @classmethod
    def read(cls, value: object) -> Quantity:
        """Read a number or a text such as ``"10mbps"``, ``"20ms"``, ``"1.5bdp"`` or ``"94p"``.

        Raises:
            UnitError: The value has another form.
        """
        if isinstance(value, Quantity):
            return value
        if isinstance(value, Nanoseconds):
            return cls(float(value), "time")
        if is_number(value):
            return cls(float(value))
        if isinstance(value, str):
            if _TIME.fullmatch(value.strip()):
                return cls(float(parse_time(value)), "time")
            for read in (_rate, _size):
                try:
                    return read(value)
                except UnitError:
                    continue
        raise UnitError(
            "quantity-malformed",
            shown(value),
            expected="a number, or a number with a unit, like 10mbps, 20ms, 1.5bdp or 94p",
        )

    def plain(self) -> Any:
        """Return the form that paths, flows and metrics read."""
        if self.unit == "time":
            return Nanoseconds(round(self.value))
        if self.unit == "rate":
            return format_rate(round(self.value))
        if self.unit:
            return f"{self.value:g}{'p' if self.unit == 'packets' else self.unit}"
        return int(self.value) if self.value.is_integer() else self.value

    def coordinate(self) -> tuple[str, float]:
        """Return unit and number as in tables and figures: ``("mbps", 10.0)``."""
        units = {"time": ("ms", NS_PER_MS), "rate": ("mbps", 1e6)}
        unit, scale = units.get(self.unit, (self.unit, 1.0))
        return unit, self.value / scale


def _rate(text: str) -> Quantity:
    return Quantity(float(parse_rate(text)), "rate")


def _size(text: str) -> Quantity:
    size = parse_size(text)
    if size.bdp is not None:
        return Quantity(size.bdp, "bdp")
    if size.packets is not None:
        return Quantity(float(size.packets), "packets")
    raise UnitError("unit-mismatch", shown(text), expected="a size in packets or bandwidth-delay products")


class Names:
    """Named values, evaluated on access: a value may use other values.

    Args:
        raw: The values as written.
    """

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self._raw = dict(raw)
        self._known: dict[str, Any] = {SCHEME: f"${SCHEME}"}
        self._open: list[str] = []

    def define(self, name: str, value: Any) -> None:
        """Set a value that is not evaluated: a drawn value."""
        self._known[name] = value

    def __getitem__(self, name: str) -> Any:
        if name in self._known:
            return self._known[name]
        if name in self._open:
            raise ConfigError(
                "circular", f"{' → '.join([*self._open, name])}", expected="values that do not depend on each other"
            )
        if name not in self._raw:
            known = sorted({*self._raw, *self._known})
            raise ConfigError(
                "unknown-name",
                f"no value is called {shown(name)}",
                expected=", ".join(known),
                hint=did_you_mean(name, known),
            )
        self._open.append(name)
        try:
            self._known[name] = substitute(self._raw[name], self)
        finally:
            self._open.pop()
        return self._known[name]


def substitute(value: Any, names: Names) -> Any:
    """Replace the placeholders in a text, or in all texts of a list or mapping.

    Raises:
        ConfigError: An unknown name, or an expression that cannot be evaluated.
    """
    if isinstance(value, Mapping):
        return {key: substitute(part, names) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [substitute(part, names) for part in value]
    if not isinstance(value, str) or "$" not in value:
        return value.plain() if isinstance(value, Quantity) else value
    parts = _parts(value)
    if len(parts) == 1:
        return _evaluated(parts[0], names)
    return "".join(part if not part.startswith("$") else f"{_evaluated(part, names)}" for part in parts)


def _parts(text: str) -> list[str]:
    """Split into plain text and placeholders."""
    parts, start, at = [], 0, 0
    while (at := text.find("$", at)) >= 0:
        end = _end(text, at)
        parts += [text[start:at], text[at:end]]
        start = at = end
    return [part for part in [*parts, text[start:]] if part]


def _end(text: str, start: int) -> int:
    """Return the end of the placeholder that begins at ``start``."""
    if match := _NAME.match(text, start):
        return match.end()
    depth = 0
    for at in range(start + 1, len(text)):
        depth += (text[at] == "(") - (text[at] == ")")
        if depth == 0:
            if at == start + 1:
                break
            return at + 1
    raise ConfigError("text-malformed", shown(text), expected="placeholders like $rate or $(2 * owd)")


def _evaluated(placeholder: str, names: Names) -> Any:
    if match := _NAME.fullmatch(placeholder):
        value = names[match[1]]
        return value.plain() if isinstance(value, Quantity) else value
    return evaluate(placeholder[2:-1], names).plain()


def evaluate(expression: str, names: Names) -> Quantity:
    """Evaluate arithmetic.

    Raises:
        ConfigError: The expression is not arithmetic, or units do not fit.
    """
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except SyntaxError:
        raise ConfigError("text-malformed", f"$({expression})", expected="arithmetic, like $(2 * owd)") from None
    try:
        with located(f"$({expression})"):
            value = _value(tree, names)
    except ZeroDivisionError:
        raise ConfigError("text-malformed", f"$({expression})", expected="no division by zero") from None
    return value


def _value(node: ast.expr, names: Names) -> Quantity:
    if isinstance(node, ast.Constant) and is_number(node.value):
        return Quantity(float(node.value))
    if isinstance(node, ast.Name):
        return Quantity.read(names[node.id])
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        one = _value(node.operand, names)
        return Quantity(-one.value, one.unit)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        left, right = _value(node.left, names), _value(node.right, names)
        return Quantity(_OPERATORS[type(node.op)](left.value, right.value), _unit(node.op, left, right))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        if node.func.id not in FUNCTIONS:
            raise ConfigError(
                "unknown-name",
                f"the function {shown(node.func.id)}",
                expected=", ".join(FUNCTIONS),
                hint=did_you_mean(node.func.id, FUNCTIONS),
            )
        try:
            return FUNCTIONS[node.func.id](*(_value(argument, names) for argument in node.args))
        except TypeError:
            raise ConfigError(
                "wrong-count", f"{len(node.args)} arguments of {node.func.id}", expected="another number"
            ) from None
    raise ConfigError(
        "text-malformed",
        shown(ast.unparse(node)),
        expected=f"numbers, names, + - * /, parentheses, {', '.join(FUNCTIONS)}",
    )


def _unit(op: ast.operator, left: Quantity, right: Quantity) -> Unit:
    if isinstance(op, (ast.Add, ast.Sub)) and left.unit == right.unit:
        return left.unit
    if isinstance(op, ast.Mult) and "" in (left.unit, right.unit):
        return left.unit or right.unit
    if isinstance(op, ast.Div) and right.unit in ("", left.unit):
        return "" if right.unit else left.unit
    sign = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}[type(op)]
    raise ConfigError(
        "unit-mismatch",
        f"{left.unit or 'a number'} {sign} {right.unit or 'a number'}",
        expected="sums of values with the same unit, and multiples",
        hint="numbers in arithmetic have no unit: define values with units as parameters, like silence: 1s",
    )


def _needs(value: Quantity, unit: Unit, function: str) -> float:
    if value.unit != unit:
        raise ConfigError("unit-mismatch", f"{function} of {value.unit or 'a number'}", expected=f"a {unit}")
    return value.value


def _packet_time(rate: Quantity) -> Quantity:
    return Quantity(PACKET_BITS * NS_PER_S / _needs(rate, "rate", "packet_time"), "time")


def _bdp(rate: Quantity, rtt: Quantity) -> Quantity:
    return Quantity(_needs(rate, "rate", "bdp") * _needs(rtt, "time", "bdp") / NS_PER_S / PACKET_BITS)


def _ceil(value: Quantity) -> Quantity:
    return Quantity(float(math.ceil(round(value.value, 9))), value.unit)


def _max(one: Quantity, other: Quantity) -> Quantity:
    if one.unit != other.unit:
        raise ConfigError(
            "unit-mismatch", f"max of {one.unit or 'a number'} and {other.unit or 'a number'}", expected="one unit"
        )
    return max(one, other, key=lambda quantity: quantity.value)


FUNCTIONS: Final[Mapping[str, Callable[..., Quantity]]] = {
    "packet_time": _packet_time,
    "bdp": _bdp,
    "ceil": _ceil,
    "max": _max,
}
"""``packet_time(rate)``: transmission time of a packet of 1500 bytes; ``bdp(rate, rtt)``: bandwidth-delay product in
such packets; ``ceil(x)``: rounded up; ``max(x, y)``: the larger value."""
