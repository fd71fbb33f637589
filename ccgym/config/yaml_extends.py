"""Merging of a YAML file with the file that it extends; see :mod:`ccgym.config.yaml_loader` for the rules."""

from __future__ import annotations

from typing import Final

from ccgym.config.yaml_parser import Node
from ccgym.errors import ConfigError, did_you_mean, shown

NAMING_KEYS: Final = ("name", "term", "signal")
"""Keys with the name of a list item; the first existing key counts."""

OWNED: Final = {
    # A name, and its style in reports: a policy with another name is another policy.
    "name": ("style",),
    # The meaning of an action: limits, unit and first deviation of another kind of map are not valid for this one.
    "agent.action.map.kind": ("agent.action.bounds", "agent.action.scale", "algorithm.log_std_init"),
    # Two forms of the same setting.
    "environment.paths": ("environment.path",),
    "environment.path": ("environment.paths",),
}
"""Dependent keys: if the extending file changes the first key, the other keys are not inherited."""

_ABSENT: Final = Node(None, "")


def extend(base: dict[str, Node], over: dict[str, Node]) -> tuple[dict[str, Node], list[str]]:
    """Merge a file with the file that it extends; return the content, and the key paths that are not inherited."""
    dropped = []
    for owner, owned in OWNED.items():
        new, old = _at(over, owner).value, _at(base, owner).value
        if new is None or new == old:
            continue
        for path in owned:
            holder, _, key = path.rpartition(".")
            inside = _at(base, holder).value if holder else base
            if isinstance(inside, dict) and inside.pop(key, None) is not None:
                dropped.append(path)
    return _merge(base, over, ""), dropped


def _at(mapping: dict[str, Node], path: str) -> Node:
    """Return the node at a key path."""
    node = Node(mapping, "")
    for key in path.split("."):
        node = node.value.get(key, _ABSENT) if isinstance(node.value, dict) else _ABSENT
    return node


def _merge(base: dict[str, Node], over: dict[str, Node], place: str) -> dict[str, Node]:
    """Merge a mapping at a key path with another mapping that changes it."""
    merged = dict(base)
    for key, node in over.items():
        here, value = f"{place}.{key}" if place else key, node.value
        before = base.get(key, _ABSENT).value
        if isinstance(before, dict) and isinstance(value, dict) and _is_same_kind(before, value, here):
            value = _merge(before, value, here)
        elif isinstance(before, list) and isinstance(value, dict) and "kind" not in value:
            items = [(name, item) for item in before if (name := _name_of(item)) is not None]
            if len(items) == len(before) > 0:
                value = _merge_named(items, node, here)
        merged[key] = Node(value, node.line)
    return merged


def _merge_named(items: list[tuple[str, Node]], over: Node, place: str) -> list[Node]:
    """Change the items of a list by their names."""
    # The key with the name of an item.
    tag = next((key for key in NAMING_KEYS[1:] for _, item in items if _has(item, key)), "name")
    merged: list[Node] = []
    for name, item in items:
        change = over.value.get(name, item)
        if change is not item and isinstance(change.value, dict):
            whole = item.value if isinstance(item.value, dict) else {tag: item}
            change = Node(_merge(whole, change.value, f"{place}[{len(merged)}]"), change.line)
        if change is item or change.value is not None:
            merged.append(change)
    names = [name for name, _ in items]
    for name, node in over.value.items():
        if name in names:
            continue
        if not isinstance(node.value, dict):
            raise ConfigError(
                "unknown-name",
                f"no item {shown(name)} to change",
                expected=f"one of {', '.join(names)}, or a new item",
                hint=did_you_mean(name, names),
                where=f"{node.line}: {place}",
            )
        named = node.value if _name_of(node) is not None else {tag: Node(name, node.line), **node.value}
        merged.append(Node(named, node.line))
    return merged


def _has(item: Node, key: str) -> bool:
    return isinstance(item.value, dict) and key in item.value


def _name_of(item: Node) -> str | None:
    """Return the name of a list item; a word is its own name."""
    if isinstance(item.value, str):
        return item.value
    names = (item.value[key].value for key in NAMING_KEYS if _has(item, key))
    return next((name for name in names if isinstance(name, str)), None)


def _is_same_kind(before: dict[str, Node], over: dict[str, Node], place: str) -> bool:
    """Return whether two mappings are of the same kind; for an algorithm, whether they have the same name."""
    tag = "name" if place == "algorithm" else "kind"
    return over.get(tag, _ABSENT).value in (None, before.get(tag, _ABSENT).value)
