"""The snapshot of all texts of errors in the Rust crates; ``errors`` makes that of Python.

It reads the sources without their tests, and collects by file: the texts in every
call that makes one of :data:`KINDS`, in calls of the file's functions and closures that do so, and in what is chained
to them (``.expected(…)``, ``.hint(…)``, ``.coded(…)``); and texts that got a name such as ``found`` or ``hint`` before.
What is put into a text stands in it as in the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ccgym.errors import CODES
from pages.markdown import ROOT

SNAPSHOT = "tests/snapshots/errors-rust.txt"

KINDS = {
    "Error::of": "",
    "Error::new": "invalid-value",
    "Error::ensure": "invalid-value",
    "Error::unknown": "",
    "unreadable": "policy-unreadable",
    "impossible": "parameter-invalid",
    "PyValueError::new_err": "",
    "PyRuntimeError::new_err": "",
    "value_error": "",
    "context": "system-call-failed",
}
"""What makes an error, and its code unless its first text or ``.coded(…)`` is one; empty where Python gives it."""

OWN = {*CODES, "invalid-value"}
STRING = re.compile(r'"((?:[^"\\]|\\.)*)"', re.DOTALL)
TOKEN = re.compile(
    r"""(?P<text>"(?:[^"\\]|\\.)*")|(?P<char>'(?:[^'\\]|\\[^u]|\\u\{\w+\})')|(?P<note>//[^\n]*)""", re.DOTALL
)
TESTS = re.compile(r"^ *#\[cfg\(test\)\]\n(?: *#\[.*\n)* *mod ", re.MULTILINE)
ERRORS = r"\bError\b"
CHAINED = re.compile(r"\s*\.(expected|hint|coded)(?=\()")
NAMED = re.compile(r"\blet (found|expected|hint|message|heard|when)\b[^=;]*= (?=[^;]*\")")


def _source(text: str) -> str:
    """A source without its tests and comments, and with no brackets in characters."""
    tests = TESTS.search(text)
    return TOKEN.sub(
        lambda one: one["text"] or ("' '" if one["char"] else ""), text[: tests.start()] if tests else text
    )


def _end(text: str, start: int) -> int:
    """Where the bracket that opens at ``start`` closes, or where a statement from there ends."""
    depth = 0
    place = start
    while place < len(text):
        if found := STRING.match(text, place):
            place = found.end()
            continue
        depth += (text[place] in "([{") - (text[place] in ")]}")
        place += 1
        if depth <= 0 and (text[start] in "([{" or text[place - 1] == ";"):
            break
    return place


def _texts(text: str, label: str = "") -> list[str]:
    lines = (re.sub(r"\\\n\s*", "", one) for one in STRING.findall(text))
    return [f"  {label}{one}" for one in lines if label or re.search(r"\w", one)]


def _makers(text: str) -> set[str]:
    """Functions and closures of a file that are told a text and make an error."""
    functions = re.findall(rf"\bfn (\w+)(?:<[^>]*>)?\(([^{{;]*)\) -> (?:Result<[^=]*?, )?{ERRORS}", text)
    told = {name for name, parameters in functions if re.search(r"str|String|Display", parameters)}
    start = rf"(?:Err\()?(?:{ERRORS}::|{'|'.join([*told, 'self.error'])})"
    return told | set(re.findall(rf"\blet (\w+) =\s*\|[^|]*\|\s*\{{?\s*{start}", text))


def entries() -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Code, where it stands and texts of every error."""
    for path in sorted([*(ROOT / "crates").rglob("src/**/*.rs"), *(ROOT / "schemes/src").rglob("*.rs")]):
        if path.name in ("tests.rs", "testing.rs") or path.name.startswith("recorded_"):
            continue
        file, text = path.relative_to(ROOT).as_posix(), _source(path.read_text(encoding="utf-8"))
        for one in NAMED.finditer(text):
            if texts := _texts(text[one.end() : _end(text, one.end())], f"{one[1]}: "):
                yield "", f"let in {file}", tuple(texts)
        names = "|".join(map(re.escape, [*KINDS, *sorted(_makers(text))]))
        for one in re.finditer(rf"(?<!fn )\b({names}) ?(?=[({{])", text):
            end = _end(text, one.end())
            code, texts = KINDS.get(one[1], ""), _texts(text[one.end() : end])
            while chained := CHAINED.match(text, end):
                end = _end(text, chained.end())
                part = _texts(text[chained.end() : end], f"{chained[1]}: ")
                if chained[1] == "coded":
                    code = part[0].partition(": ")[2] if part else "error's own"
                else:
                    texts += part
            if texts and texts[0].strip() in OWN:
                code = texts.pop(0).strip()
            if code not in OWN | {"", "error's own"}:
                raise SystemExit(f"{file}: {code} is not among CODES of ccgym/errors.py")
            if texts:
                yield code, f"{one[1]} in {file}", tuple(texts)


def codes() -> set[str]:
    """All codes that Rust gives."""
    paths = (ROOT / folder for folder in ("crates", "schemes"))
    sources = (_source(file.read_text(encoding="utf-8")) for path in paths for file in path.rglob("src/**/*.rs"))
    return {one for text in sources for one in STRING.findall(text) if one in CODES}


def snapshot() -> str:
    """Every text of an error in the crates."""
    head = "Written by `make docs`: every error of the Rust crates, its code where one is given, file and texts."
    found = sorted(set(entries()))
    return "\n".join([head, *(f"\n{code or '-'}  {where}\n" + "\n".join(texts) for code, where, texts in found), ""])
