"""Strict parser of YAML with the line of each value; see :mod:`ccgym.config.yaml_loader` for the rules."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import yaml

from ccgym.errors import ConfigError, shown
from ccgym.files import read_bytes

MAX_FILE_BYTES: Final = 4 * 2**20
"""Max size of a configuration file, bytes."""
MAX_DEPTH: Final = 32
"""Max levels of nesting."""
_INTEGER: Final = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,17})")
_FLOAT: Final = re.compile(r"[-+]?(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][-+]?[0-9]{1,3})?")
_ZERO_LED: Final = re.compile(r"[-+]?0[0-9]+")
_SEXAGESIMAL: Final = re.compile(r"[-+]?[0-9]+(?::[0-5]?[0-9])+(?:\.[0-9]*)?")
_BOOLEANS: Final = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_TRAPS: Final = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
_NULLS: Final = frozenset({"", "~", "null", "Null", "NULL"})


@dataclass
class Node:
    """A value of a file and its line. The values inside a mapping or a list are also nodes."""

    value: Any
    line: str


def parse_file(path: str | os.PathLike[str]) -> Node:
    """Parse a file. Raises :class:`ConfigError`."""
    try:
        content = read_bytes(path, MAX_FILE_BYTES)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ConfigError(
            "file-unreadable", f"cannot be read: {reason}", expected="a readable YAML file", where=str(path)
        ) from None
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ConfigError("not-utf8", "not UTF-8", expected="YAML in UTF-8", where=f"{path}:{line}") from None
    return parse(text, str(path))


def parse(text: str, source: str) -> Node:
    """Parse a text; ``source`` is the name in errors. Raises :class:`ConfigError`."""
    if len(text) > MAX_FILE_BYTES:
        raise ConfigError("too-large", f"{len(text)} characters", expected=f"at most {MAX_FILE_BYTES}", where=source)
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        return _Parser(yaml.parse(text, Loader=loader), source).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{source}:{mark.line + 1}" if mark is not None else source
        problem = " ".join(part for part in (error.context, error.problem) if part)
        hint = "use spaces, not tabs; quote text that begins with @ or `" if "start any token" in problem else ""
        raise ConfigError(
            "yaml-syntax", f"not valid YAML: {problem}", expected="YAML", hint=hint, where=where
        ) from None
    except UnicodeError:
        raise ConfigError(
            "not-utf8", "characters that UTF-8 cannot encode", expected="YAML in UTF-8", where=source
        ) from None
    except yaml.YAMLError as error:
        raise ConfigError(
            "yaml-syntax", f"not valid YAML: {str(error).splitlines()[0]}", expected="YAML", where=source
        ) from None


class _Parser:
    """Converts YAML events to nodes, because PyYAML's own constructors have neither lines nor these rules."""

    def __init__(self, events: Iterator[Any], source: str) -> None:
        self.events = events
        self.source = source

    def document(self) -> Node:
        root: Node | None = None
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent) and root is not None:
                raise self.fail(
                    "yaml-feature", event, "a second document", "one document per file", "remove the line `---`"
                )
            if isinstance(event, yaml.NodeEvent):
                root = Node(self.value(event, 0), self.line(event))
        return root or Node(None, self.source)

    def line(self, event: Any) -> str:
        return f"{self.source}:{event.start_mark.line + 1}"

    def fail(self, code: str, event: Any, found: str, expected: str, hint: str = "") -> ConfigError:
        return ConfigError(code, found, expected=expected, hint=hint, where=self.line(event))

    def value(self, event: Any, depth: int) -> Any:
        """Return the value that begins with an event, at this depth of mappings and lists."""
        self.refuse_marks(event)
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event)
        if depth >= MAX_DEPTH:
            raise self.fail("too-large", event, f"more than {MAX_DEPTH} levels", "less nesting")
        if isinstance(event, yaml.SequenceStartEvent):
            items = []
            while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
                items.append(Node(self.value(event, depth + 1), self.line(event)))
            return items
        mapping: dict[str, Node] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self.key(event, mapping)
            mapping[key] = Node(self.value(next(self.events), depth + 1), self.line(event))
        return mapping

    def refuse_marks(self, event: Any) -> None:
        if isinstance(event, yaml.AliasEvent):
            raise self.fail("yaml-feature", event, f"the alias *{event.anchor}", "no aliases", "write the value again")
        if event.anchor is not None:
            raise self.fail(
                "yaml-feature", event, f"the anchor &{event.anchor}", "no anchors", "write the value where it is used"
            )
        if event.tag is not None and event.tag != "!":
            raise self.fail(
                "yaml-feature", event, f"the tag {event.tag}", "no tags", "quote the value if it is a string"
            )

    def key(self, event: Any, mapping: Mapping[str, Node]) -> str:
        self.refuse_marks(event)
        if not isinstance(event, yaml.ScalarEvent):
            raise self.fail("yaml-ambiguous", event, "a list or mapping as key", "a word as key")
        key = str(event.value)
        if not event.style and (not key or key == "<<" or not isinstance(self.plain(event), str)):
            raise self.fail(
                "yaml-ambiguous", event, f"the key {key!r}, which is not a string", "a word as key", "quote the key"
            )
        if key in mapping:
            hint = f"first given at {mapping[key].line}"
            raise self.fail("duplicate", event, f"the key {shown(key)} a second time", "each key once", hint)
        return key

    def scalar(self, event: Any) -> Any:
        if event.style:  # quoted; a plain scalar has None here, or "" from the C parser
            return event.value
        meant = _TRAPS.get(event.value.casefold())
        if meant:
            raise self.fail(
                "yaml-ambiguous",
                event,
                f"the unquoted word {event.value}, which YAML 1.1 reads as a boolean",
                "true, false or a quoted string",
                f"write {meant} for the boolean, or {event.value!r} for the word",
            )
        return self.plain(event)

    def plain(self, event: Any) -> Any:
        """Resolve a plain scalar by YAML 1.2's core rules."""
        text = event.value
        if text in _NULLS:
            return None
        if text in _BOOLEANS:
            return _BOOLEANS[text]
        if _INTEGER.fullmatch(text):
            return int(text)
        if _ZERO_LED.fullmatch(text):
            raise self.fail(
                "yaml-ambiguous", event, f"the number {text}", "no leading zeros", "quote it if it is a string"
            )
        if _FLOAT.fullmatch(text):
            return float(text)
        if _SEXAGESIMAL.fullmatch(text):
            found = f"{text}, which YAML 1.1 reads as a number in base 60"
            raise self.fail("yaml-ambiguous", event, found, "a quantity with its unit", "quote it if it is a string")
        return text
