"""Strict YAML: every mistake is reported with file and line, and ambiguous values are refused.

The loader refuses well-known sources of mistakes: duplicate keys, the unquoted words ``yes no on off`` as booleans,
sexagesimal and octal numbers, anchors and aliases, tags, several documents in a file, keys that are not strings.
Numbers are as in YAML 1.2, so ``1e-3`` is a float. A file can extend one other file with ``extends: other.yaml``, in
the same folder or included in ccgym. Mappings are merged key by key, everything else is replaced. Mappings of another
``kind`` and another ``algorithm`` are also replaced, because they have other keys. A list of named items (by the key
``name``, or by the key of the item's kind) is changed by a mapping of these names: the value of a name is merged with
the item, ``null`` removes the item, and a new name adds an item. The value need not repeat the name.

:func:`load_model` reads a model. It applies overrides (``--set link.delay=40ms``, or a mapping of such keys in Python)
with the same validation, and converts pydantic's errors to :class:`~ccgym.errors.ConfigError` with the line of the
key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeAlias, TypeVar, get_args, get_origin

from ccgym.config.configurations import packaged_config
from ccgym.config.yaml_extends import extend
from ccgym.config.yaml_parser import Node, parse, parse_file
from ccgym.errors import CcgymError, ConfigError, did_you_mean, located, near_miss, shown

if TYPE_CHECKING:
    from pydantic import BaseModel, ValidationError

    _M = TypeVar("_M", bound=BaseModel)

MAX_PROBLEMS: Final = 10
"""Max number of further problems that an error lists."""

Place: TypeAlias = "tuple[str | int, ...]"
"""Keys and list positions from the top."""


@dataclass
class Loaded:
    """The content of a configuration file, and the line of each part."""

    data: Any
    """Dictionaries, lists, strings, integers, floats, booleans and ``None``."""
    lines: dict[Place, str] = field(default_factory=dict)
    """``file:line`` of every key and list item."""
    source: str = ""
    """Name of the file; empty for data without a file."""
    extends: str = ""
    """The extended file; empty if there is none."""
    dropped: list[str] = field(default_factory=list)
    """Key paths of the extended file that are not inherited: see :data:`OWNED`."""

    @classmethod
    def of(cls, root: Node, source: str) -> Loaded:
        """Separate the values of a file from their lines."""
        lines: dict[Place, str] = {}

        def plain(value: Any, place: Place) -> Any:
            inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
            lines.update({(*place, step): node.line for step, node in inside})
            if isinstance(value, dict):
                return {key: plain(node.value, (*place, key)) for key, node in value.items()}
            if isinstance(value, list):
                return [plain(node.value, (*place, position)) for position, node in enumerate(value)]
            return value

        return cls(plain(root.value, ()), lines, source)

    def inherited(self) -> list[str]:
        """Return key paths, at most two levels deep, whose whole content is from the extended file."""
        if not self.extends:
            return []

        def theirs(place: Place) -> bool:
            within = [line for known, line in self.lines.items() if known[: len(place)] == place]
            return all(line.startswith(f"{self.extends}:") for line in within)

        found: list[str] = []
        for key, value in self.data.items():
            if theirs((key,)):
                found.append(key)
            elif isinstance(value, dict):
                found += [f"{key}.{inner}" for inner in value if theirs((key, inner))]
        return found

    def where(self, place: Sequence[str | int]) -> str:
        """Return ``file:line: key path`` of a place, or of the nearest written key above it."""
        known: Place = ()
        node = self.data
        for step in place:
            try:
                node = node[step]
            except (LookupError, TypeError):
                continue  # a name that pydantic adds for a member of a union
            known = (*known, step)
        above = (known[:length] for length in range(len(known), -1, -1))
        line = next((self.lines[one] for one in above if one in self.lines), self.source)
        return ": ".join(part for part in (line, dotted(known)) if part)


def dotted(place: Sequence[str | int]) -> str:
    """Write a place as a key path: ``flows[0].scheme``."""
    text = ""
    for step in place:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def load_yaml(path: str | os.PathLike[str]) -> Loaded:
    """Read a YAML file and, if it has the key ``extends``, the extended file.

    Raises:
        ConfigError: The file is missing or unreadable, or breaks one of the rules above.
    """
    top = parse_file(path)
    if not isinstance(top.value, dict) or "extends" not in top.value:
        return Loaded.of(top, str(path))
    name, line = top.value["extends"].value, top.value.pop("extends").line
    with located(f"{line}: extends"):
        if not isinstance(name, str) or not name:
            raise ConfigError("wrong-type", shown(name), expected="the name of one YAML file")
        base_path = Path(path).parent / name
        if not base_path.exists() or base_path.samefile(path):
            base_path = packaged_config(name) or base_path
        base = parse_file(base_path).value
        if not isinstance(base, dict):
            raise ConfigError("not-a-mapping", f"{base_path} is not a mapping", expected="keys and values")
        if "extends" in base:
            raise ConfigError(
                "yaml-feature",
                f"{base_path} also extends a file",
                expected="one level of `extends`",
                hint="extend that file directly, or copy the necessary parts",
            )
    content, dropped = extend(base, top.value)
    loaded = Loaded.of(Node(content, ""), str(path))
    loaded.extends, loaded.dropped = str(base_path), dropped
    return loaded


def parse_yaml(text: str, source: str) -> Loaded:
    """Parse YAML text; ``source`` is the name that errors show. Raises :class:`ConfigError`."""
    return Loaded.of(parse(text, source), source)


def load_model(path: str | os.PathLike[str], model: type[_M], overrides: Iterable[str] | Mapping[str, Any] = ()) -> _M:
    """Read a configuration file into a model.

    Args:
        path: The YAML file.
        model: A pydantic model class.
        overrides: Settings ``"a.b=c"`` from the command line, applied in order; ``c`` is YAML, list items are numbered
            from 0 (``flows.0.scheme=bbr``). Or, from Python, a mapping of such keys to values: ``{"a.b": c}``.

    Raises:
        ConfigError: With ``file:line: key path``, the found and expected values, and a suggestion for unknown keys.
    """
    loaded = load_yaml(path)
    if loaded.data is None:
        loaded.data = {}
    if not isinstance(loaded.data, dict):
        raise ConfigError("not-a-mapping", shown(loaded.data), expected="keys and values", where=loaded.source)
    if isinstance(overrides, Mapping):
        for key, value in overrides.items():
            set_value(loaded, key, value, f"set[{shown(key)}]")
    else:
        for override in overrides:
            apply_override(loaded, override, model)
    return validate(loaded, model)


def validate(loaded: Loaded, model: type[_M]) -> _M:
    """Build a model from loaded YAML; errors as in :func:`load_model`."""
    from pydantic import ValidationError

    try:
        return model.model_validate(loaded.data)
    except ValidationError as error:
        raise config_error(error, model, loaded) from None
    except CcgymError as error:
        raise error.at(loaded.source) from None


def apply_override(loaded: Loaded, override: str, model: type[BaseModel]) -> None:
    """Apply one ``a.b=c`` to loaded YAML, in place; hints use the keys of ``model``. Raises :class:`ConfigError`."""
    where = f"--set {override}"
    name, equals, text = override.partition("=")
    if not equals or not all(name.strip().split(".")):
        near = _key_near(name.strip(), model)
        raise ConfigError(
            "text-malformed",
            shown(override),
            expected="key.path=value",
            hint=f"write --set {near}=…" if near else "",
            where="--set",
        )
    set_value(loaded, name.strip(), parse_yaml(text, where).data, where)


def set_value(loaded: Loaded, name: str, value: Any, where: str) -> None:
    """Put ``value`` at the key path ``name`` (``a.b.0.c``) of loaded YAML, in place.

    Args:
        loaded: The YAML content to change.
        name: Keys from the top, separated by dots; list items are numbered from 0.
        value: The new value.
        where: Place of the value in errors.

    Raises:
        ConfigError: The place does not exist.
    """
    keys = str(name).split(".")
    if not all(keys):
        raise ConfigError(
            "text-malformed", shown(name), expected="keys separated by dots, like 'agent.action.map.delta'", where=where
        )
    node = loaded.data
    place: Place = ()
    for position, key in enumerate(keys):
        last = position == len(keys) - 1
        step: str | int = key
        if isinstance(node, list):
            if not key.isdecimal() or len(key) > 9 or int(key) >= len(node):
                raise ConfigError(
                    "unknown-key",
                    f"{dotted(place)} has no item {shown(key)}",
                    expected=f"a number below {len(node)}",
                    where=where,
                )
            step = int(key)
        elif not isinstance(node, dict):
            raise ConfigError(
                "not-a-mapping",
                f"{dotted(place)} is {shown(node)}, which has no keys",
                expected="a mapping",
                where=where,
            )
        place = (*place, step)
        if last:
            node[step] = value
            for old in [known for known in loaded.lines if known[: len(place)] == place]:
                del loaded.lines[old]
            loaded.lines[place] = where
        else:
            if isinstance(node, dict) and node.get(step) is None:
                node[step] = {}
                loaded.lines[place] = where
            node = node[step]


def config_error(error: ValidationError, model: type[BaseModel], loaded: Loaded | None = None) -> ConfigError:
    """Convert pydantic's error: the first problem with all details, then the places and values of the others."""
    first, *others = (_config_error(problem, model, loaded) for problem in error.errors(include_url=False))
    if not others:
        return first
    listed = "; ".join(": ".join(filter(None, (one.where, one.found))) for one in others[:MAX_PROBLEMS])
    rest = f" and {len(others) - MAX_PROBLEMS} others" if len(others) > MAX_PROBLEMS else ""
    more = f"{len(others)} more problem{'s' if len(others) > 1 else ''}: {listed}{rest}"
    hint = f"{first.hint}; {more}" if first.hint else more
    return type(first)(first.code, first.found, expected=first.expected, hint=hint, where=first.where)


def _config_error(problem: Mapping[str, Any], model: type[BaseModel], loaded: Loaded | None) -> ConfigError:
    """Convert one of pydantic's problems to an error of ccgym."""
    place: Place = tuple(problem["loc"])
    kind, value = problem["type"], problem.get("input")
    context = problem.get("ctx", {})
    cause = context.get("error")
    where = loaded.where(place) if loaded is not None else dotted(place)
    if isinstance(cause, CcgymError):
        inner = cause.at(where)
        if loaded is not None and loaded.source and cause.where:
            # The place in the error of a nested model is enough to find the line.
            words = re.findall(r"[\w-]+", cause.where)
            steps = tuple(int(word) if word.isdecimal() and len(word) < 9 else word for word in words)
            line = loaded.where((*place, *steps)).partition(": ")[0]
            inner = cause.at(f"{line}: {dotted(place)}" if place else line)
        code, found, expected, hint, where = inner.code, inner.found, inner.expected, inner.hint, inner.where
        kind_of_error = type(cause) if isinstance(cause, ConfigError) else ConfigError
    else:
        kind_of_error = ConfigError
        hint = ""
        if kind == "extra_forbidden":
            known = _field_names(model, place[:-1])
            code = "unknown-key"
            found, expected = f"unknown key {shown(place[-1])}", ", ".join(known) or "no keys"
            elsewhere = _key_near(str(place[-1]), model)
            hint = did_you_mean(str(place[-1]), known, f"did you mean {elsewhere!r}?" if elsewhere else "")
        elif kind == "missing":
            code = "key-missing"
            found, expected = f"key {shown(place[-1])} is missing", "this key"
            parent = value if isinstance(value, dict) else {}
            written = near_miss(str(place[-1]), [str(key) for key in parent if key not in _field_names(model, ())])
            hint = f"rename {written!r} if it is this key" if written else ""
        elif kind in ("union_tag_invalid", "literal_error", "enum"):
            choices = re.findall(r"'([^']*)'", str(context.get("expected_tags") or context.get("expected", "")))
            tag = context.get("tag", value)
            code = "unknown-kind" if kind == "union_tag_invalid" else "unknown-choice"
            found, expected = shown(tag), ", ".join(choices)
            hint = did_you_mean(str(tag), choices)
        elif kind == "union_tag_not_found":
            code = "key-missing"
            found, expected = (
                f"{shown(value)} without {context.get('discriminator', 'kind')}",
                "a mapping with this key",
            )
        else:
            code = _code_of(kind)
            found = shown(value)
            message = problem["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
            expected = message.removeprefix("Input should be ").replace("a valid tuple", "a list")
    return kind_of_error(code, found, expected=expected, hint=hint, where=where)


def _code_of(kind: str) -> str:
    """Return the error code for one of pydantic's kinds of problems with a value."""
    if kind.startswith(("greater_than", "less_than", "multiple_of", "finite_number")):
        return "out-of-range"
    if kind in ("too_short", "too_long"):
        return "wrong-count"
    if kind.startswith("string_") and kind != "string_type":
        return "text-malformed"
    return "wrong-type"


def _field_names(model: type[BaseModel], place: Sequence[str | int]) -> list[str]:
    """Return the possible keys at a place of a model (best effort, for suggestions)."""
    candidates: list[type[BaseModel]] = [model]
    for step in place:
        if isinstance(step, int):
            continue
        inside = [
            found
            for candidate in candidates
            if step in candidate.model_fields
            for found in _models_in(candidate.model_fields[step].annotation)
        ]
        if inside:
            candidates = inside
            continue
        candidates = [candidate for candidate in candidates if step in _tags(candidate)] or candidates
    names: dict[str, None] = {}
    for candidate in candidates:
        names.update(dict.fromkeys(getattr(candidate, "ACCEPTED_KEYS", ()) or candidate.model_fields))
    return list(names)


def _models_in(annotation: object) -> Iterator[type[BaseModel]]:
    """Yield the models that a field of this type can contain."""
    from pydantic import BaseModel

    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    elif get_origin(annotation) is Annotated:
        yield from _models_in(get_args(annotation)[0])
    else:
        for argument in get_args(annotation):
            yield from _models_in(argument)


def _tags(model: type[BaseModel]) -> tuple[object, ...]:
    """Return the values of the key ``kind`` or ``name`` that distinguish a model in its union."""
    fields = [model.model_fields[key] for key in ("kind", "name") if key in model.model_fields]
    return tuple(tag for field in fields for tag in (*get_args(field.annotation), field.default))


def _key_near(name: str, model: type[BaseModel]) -> str | None:
    """Return the key path of a model whose last word (or else the whole path) is most similar to a name."""
    paths = [".".join(path) for path in _key_paths(model)]
    by_last = {path.rpartition(".")[2]: path for path in reversed(paths)}
    last = near_miss(name.rpartition(".")[2], by_last)
    return by_last[last] if last is not None else near_miss(name, paths)


def _key_paths(model: type[BaseModel], deepest: int = 3) -> Iterator[tuple[str, ...]]:
    """Yield key paths of a model without list indexes, the shortest first."""
    inside = []
    for key, found in model.model_fields.items():
        yield (key,)
        if deepest > 1:
            inside += [(key, inner) for inner in _models_in(found.annotation)]
    for key, inner in inside:
        for path in _key_paths(inner, deepest - 1):
            yield (key, *path)
