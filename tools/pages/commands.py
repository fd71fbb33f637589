"""docs/commands.md: every command with its options, from the tables that make parsers and completion."""

from __future__ import annotations

from collections.abc import Iterator

from ccgym.cli.command import Command, key_of
from ccgym.cli.main import FORMER, load
from ccgym.invocation import COMMANDS
from pages.markdown import code, table


def _of(command: Command, name: str, help: str) -> Iterator[str]:
    """A command and those below it."""
    yield from (f"## `{name}`", "", f"{help[0].upper()}{help[1:]}.", "")
    rows = [(code(said["form"]), text, said["default"] or "") for key, text in command.options.items()
            if (said := key_of(key))["mark"] != "# "]  # fmt: skip
    if rows:
        yield from (*table(("option", "meaning", "default"), rows), "")
    for below in command.commands:
        yield from _of(below, f"{name} {below.name}", below.help)


def commands() -> list[str]:
    """All of them."""
    return [line for name, (_, help) in COMMANDS.items() for line in _of(load(name), f"ccgym {name}", help)]


def formers() -> list[str]:
    """What commands of the last release are called now."""
    return table(("former", "now"), [(code(f"ccgym {old}"), code(f"ccgym {new}")) for old, new in FORMER.items()])


BLOCKS = {"docs/commands.md": {"commands": commands, "former": formers}}
