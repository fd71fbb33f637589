"""Declaration of a command: its options are declared once. Its parser, its help, its section of
docs/reference/commands.md and shell completion are derived from this declaration.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NoReturn, TypeAlias

from ccgym.errors import ConfigError, did_you_mean, located, shown
from ccgym.invocation import COMMANDS, as_typed
from ccgym.units import parse_positive_time, parse_rate, parse_time

Read: TypeAlias = Callable[[str], Any]
"""Converts the text of an option to its value. Errors that it raises get the name of the option as their place."""

Options: TypeAlias = Mapping[str, str]
"""Options and arguments with their help texts. A key has the form, and further parts in this order:

======================  ============================================================================================
``--json``              a flag
``-o, --out FILE``      an option with a value; ``KEY=VALUE...`` may be repeated, ``[KIND]`` is optional
``RUN``, ``[RUN]``      an argument, an optional argument; ``RUN...``, ``[RUN...]``: several
`` in 1..100``          bounds of a whole number N
`` = 30``               the default value of the option, which its help shows
`` as runtime_ns``      name of the attribute, by default the option's name
`` required``           the option is required
======================  ============================================================================================

``| `` in front: successive options with this mark exclude each other. ``# `` in front: the title of a group. The word
of a value selects the function that reads it (:data:`READ`), unless the command sets another one.
"""


@dataclass(frozen=True)
class Rule:
    """A rule for the combination of options.

    Args:
        options: Attributes, separated by spaces.
        other: The attribute of another option.
        hint: How to correct the command.
        needs: Whether the options need the other option; otherwise they exclude it.
    """

    options: str
    other: str
    hint: str = ""
    needs: bool = False

    def check(self, given: argparse.Namespace) -> None:
        """Raise :class:`ConfigError` if the rule is violated."""
        there = getattr(given, self.other) not in (None, False, [])
        if there == self.needs:
            return
        other = given.places[self.other]
        for name in self.options.split():
            if getattr(given, name) not in (None, False, []):
                option = given.places[name]
                code, word = ("option-needed", "without") if self.needs else ("options-conflict", "together with")
                expected = f"{option} with {other}" if self.needs else f"{other} without {option}"
                raise ConfigError(code, f"{option} {word} {other}", expected=expected, hint=self.hint)


_KEY: Final = re.compile(
    r"(?P<mark>[|#] )?(?P<form>.+?)(?: in (?P<low>\d+)\.\.(?P<high>\d*))?(?: = (?P<default>.+?))?"
    r"(?: as (?P<dest>\w+))?(?P<required> required)?"
)
_CHOICE: Final = re.compile(r"[a-z0-9]+(\|[a-z0-9]+)+")


@dataclass(frozen=True)
class Command:
    """A command, or a group of commands.

    Args:
        name: Name of the command.
        help: Description on one line.
        run: The function of the command. It gets the arguments, with the whole command as ``typed``, and returns the
            exit status. None for a group without a function.
        options: Its options and arguments.
        reads: By attribute: functions that read values, if their words do not select the right one.
        description: Longer description.
        examples: Command lines with comments.
        commands: Commands of the group.
        usage: Text after ``usage:``, with the command as ``{}``; if empty, it is generated from the options.
        rest: Whether words after the options are not parsed, but put into ``arguments.rest``.
        places: Names of options by the names that errors of called functions use.
        rules: Options that need, or exclude, other options.
    """

    name: str
    help: str = ""
    run: Callable[[argparse.Namespace], int | None] | None = None
    options: Options = field(default_factory=dict)
    reads: Mapping[str, Read] = field(default_factory=dict)
    description: str = ""
    examples: str = ""
    commands: Sequence[Command] = ()
    usage: str = ""
    rest: bool = False
    places: Mapping[str, str] = field(default_factory=dict)
    rules: Sequence[Rule] = ()

    def find(self, words: Sequence[str]) -> tuple[Command, str, list[str]]:
        """Return the command that words name, its name after the program's name, and the remaining words."""
        for one in self.commands:
            if words[:1] == [one.name]:
                found, name, left = one.find(words[1:])
                return found, f"{self.name} {name}", left
        return self, self.name, list(words)

    def parser(self, prog: str) -> Parser:
        """Return the parser of the command and of all its commands.

        Args:
            prog: The command as the user types it.
        """
        return self._fill(Parser(**self._keywords(prog)))

    def _keywords(self, prog: str) -> dict[str, Any]:
        line = self.help or COMMANDS[self.name][1]
        return {
            "prog": prog,
            "usage": self.usage.format(*[prog] * self.usage.count("{}")) or None,
            "description": self.description or f"{line[0].upper()}{line[1:]}.",
            "epilog": f"examples:\n{self.examples}" if self.examples else None,
            "formatter_class": HelpFormatter,
            "allow_abbrev": False,
        }

    def _fill(self, made: Parser) -> Parser:
        made.add_argument("-v", "--verbose", action="count", default=0, help="more messages; twice: all messages")
        group: argparse._ActionsContainer = made
        either: argparse._ActionsContainer | None = None
        for key, text in self.options.items():
            said = key_of(key)
            if said["mark"] == "# ":
                group = made.add_argument_group(said["form"])
                continue
            either = (either or group.add_mutually_exclusive_group()) if said["mark"] else None
            names, keywords = _argument(said, text, self.reads)
            (either or group).add_argument(*names, **keywords)
        if self.commands:
            actions = made.add_subparsers(title="actions", dest="action", metavar="ACTION", required=self.run is None)
            for below in self.commands:
                below.add_to(actions, made.prog)
        return made

    def add_to(self, actions: Any, prog: str, help: str = "") -> None:
        """Add the parser of the command to the parsers of the command ``prog``."""
        self._fill(actions.add_parser(self.name, help=help or self.help, **self._keywords(f"{prog} {self.name}")))

    def parse(self, prog: str, words: Sequence[str]) -> argparse.Namespace:
        """Read the words after the name of the command.

        Raises:
            CcgymError: An option is wrong.
        """
        made = self.parser(prog)
        own, rest = _split(made, words) if self.rest else (list(words), [])
        given = made.parse_args(own)
        if self.commands and given.action is not None:
            hint = f"{prog} {given.action} …"
            raise ConfigError(
                "command-line", f"options before {given.action}", expected="options after the command", hint=hint
            )
        if self.rest:
            given.own, given.rest = own, rest
        given.places = {
            **{action.dest: action.option_strings[-1] for action in made._actions if action.option_strings},
            **self.places,
        }
        for rule in self.rules:
            rule.check(given)
        return given


def key_of(key: str) -> re.Match[str]:
    """Return the parts of a key of :data:`Options`, such as ``mark``, ``form`` and ``default``."""
    said = _KEY.fullmatch(key)
    assert said is not None, key
    return said


def _attribute(said: re.Match[str]) -> str:
    name, _, _ = said["form"].split(", ")[-1].partition(" ")
    return said["dest"] or name.strip("-[].").replace("-", "_").lower()


def attributes(options: Options) -> list[str]:
    """Return the attributes of the namespace for options."""
    return [_attribute(said) for key in options if (said := key_of(key))["mark"] != "# "]


def _argument(said: re.Match[str], text: str, reads: Mapping[str, Read]) -> tuple[list[str], dict[str, Any]]:
    """Return the arguments of argparse for an option or argument."""
    *names, last = said["form"].split(", ")
    name, _, value = last.partition(" ")
    is_option, dest, default = name.startswith("-"), _attribute(said), said["default"]
    word = value if is_option else last
    optional = word.startswith("[") and word.endswith("]")
    inner = word[1:-1] if optional else word
    plain = inner.removesuffix("...")
    repeated = inner != plain
    help = f"{text} (default: {default})" if default and "default" not in text else text
    keywords: dict[str, Any] = {"help": help.replace("%", "%%")}
    if is_option and not word:
        return [*names, name], keywords | {"dest": dest, "action": "store_true"}
    read = reads.get(dest) or READ.get(plain, str)
    if said["low"] is not None:
        read = whole(int(said["low"]), int(said["high"]) if said["high"] else None)
    elif dest not in reads and _CHOICE.fullmatch(plain):
        read = choice(*plain.split("|"))
    keywords |= {"metavar": plain, "type": read, "default": default}
    if not is_option:
        several = ("*" if optional else "+") if repeated else "?" if optional else None
        return [dest], keywords | ({"nargs": several} if several else {})
    keywords |= {"dest": dest, "required": bool(said["required"])}
    keywords |= {"action": "append", "default": []} if repeated else {}
    keywords |= {"nargs": "?", "const": ""} if optional else {}
    return [*names, name], keywords


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Help that keeps the layout of descriptions and examples, and shows commands as the user types them."""

    def __init__(self, prog: str) -> None:
        super().__init__(as_typed(prog), max_help_position=30)

    def format_help(self) -> str:
        """Return the complete help text."""
        return as_typed(super().format_help())


class Parser(argparse.ArgumentParser):
    """Parser that raises ccgym's errors, with suggestions for misspelled words."""

    def error(self, message: str) -> NoReturn:
        """Raise :class:`ConfigError` instead of ending the program."""
        unknown = re.search(r"unrecognized arguments: (--[\w-]+)", message)
        options = [option for action in self._actions for option in action.option_strings]
        hint = did_you_mean(unknown[1], options) if unknown else ""
        if choice := re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message):
            hint = did_you_mean(choice[1], re.findall(r"[\w-]+", choice[2]))
        raise ConfigError("command-line", message, hint=hint or f"{self.prog} --help explains the options")

    def _get_value(self, action: argparse.Action, arg_string: str) -> Any:
        """Return the value of an option's text. Unlike argparse, this keeps the errors of the reading functions."""
        names = action.option_strings or [str(action.metavar)]
        with located(names[-1]):
            return arg_string if action.type is None else action.type(arg_string)  # type: ignore[operator]


def _split(made: argparse.ArgumentParser, words: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the options, and the words after them."""
    valued = {option for action in made._actions if action.nargs != 0 for option in action.option_strings}
    at = 0
    while at < len(words) and words[at].startswith("-"):
        if words[at] == "--":
            return list(words[:at]), list(words[at + 1 :])
        at += 2 if words[at] in valued else 1
    return list(words[:at]), list(words[at:])


# --- Readers ---------------------------------------------------------------------------------------------------------


def whole(low: int | None = None, high: int | None = None) -> Read:
    """Return a function that reads a whole number within bounds."""
    bounds = f", {low} to {high}" if high is not None else "" if low is None else f", {low} or more"

    def read(text: str) -> int:
        digits = text.removeprefix("-")
        value = (
            int(text[:25]) if digits.isascii() and digits.isdecimal() else None
        )  # Python refuses thousands of digits
        if value is None or (low is not None and value < low) or (high is not None and value > high):
            raise ConfigError("out-of-range", shown(text), expected=f"a whole number{bounds}")
        return value

    return read


def names(text: str) -> list[str]:
    """Read names that are separated by commas."""
    return [name for one in text.split(",") if (name := one.strip())]


def numbers(text: str) -> list[int]:
    """Read whole numbers that are separated by commas."""
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise ConfigError("text-malformed", shown(text), expected="whole numbers, as in 1,2,3") from None


def choice(*known: str) -> Read:
    """Return a function that reads one of several words."""

    def read(text: str) -> str:
        if text not in known:
            expected = f"{', '.join(known[:-1])} or {known[-1]}"
            raise ConfigError("unknown-choice", shown(text), expected=expected, hint=did_you_mean(text, known))
        return text

    return read


def figure_file(text: str) -> Path:
    """Read the name of a file for a figure, and check that figures can be drawn."""
    from ccgym.report.figures import figure_path, require_drawing

    file = figure_path(text)
    require_drawing("matplotlib.figure")
    return file


READ: Final[Mapping[str, Read]] = {
    "N": whole(),
    "TIME": parse_time,
    "LENGTH": parse_positive_time,
    "FIGURE": figure_file,
    "RATE": parse_rate,
    "A,B": names,
    "1,2,3": numbers,
    "FILE": Path,
    "DIR": Path,
    "DIRECTORY": Path,
}
"""Functions that read values, by the word for the value in help."""
