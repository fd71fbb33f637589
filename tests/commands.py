"""Commands as functions of the words that follow them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from ccgym.cli.main import load, main


def _run(name: str, words: Sequence[str] = ()) -> int:
    return main([*name.split(), *map(str, words)])


def parsed(line: str, words: Sequence[str] = ()):
    """What a command reads of the words that follow ``line``."""
    name, *rest = line.split()
    command, _, left = load(name).find([*rest, *words])
    return command.parse(f"ccgym {name}", left)


evaluate = partial(_run, "evaluate")
train = partial(_run, "train")
analyze = partial(_run, "report analyze")
convert = partial(_run, "report convert")
site = partial(_run, "report site")
watch = partial(_run, "report watch")
export = partial(_run, "train export")
pantheon = partial(_run, "pantheon")
