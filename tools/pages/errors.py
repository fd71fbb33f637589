"""docs/errors.md, and the snapshot of all texts of errors: what a reviewer reads when one changes."""

from __future__ import annotations

import ast
import contextlib
import io
import re
import shlex
from collections.abc import Iterator

from ccgym.cli.main import main
from ccgym.errors import CODES
from pages import errors_rust
from pages.markdown import ROOT, table

SNAPSHOT = "tests/snapshots/errors-python.txt"
KINDS = {
    "CcgymError",
    *re.findall(r"^class (\w+Error)\(", (ROOT / "ccgym" / "errors.py").read_text(encoding="utf-8"), re.MULTILINE),
    "ParityError",
}
"""Classes of errors."""

BAD = (
    "paths --nope",
    "paths show 77.27mbps",
    "paths show 'mm-dealy 20'",
    "paths show 'mm-delay 1.5'",
    "paths show 'mm-delay'",
    "paths make constant --rate 50 -o x.trace",
    "paths make constant --rate 50mpbs -o x.trace",
    "paths make constant --rate fast -o x.trace",
    "paths make constant --rate 5MB/s -o x.trace",
    "paths make constant --rate 5mbps -o no/such/x.trace",
    "paths make stepped --step 5 -o x.trace",
    "evaluate",
    "evaluate --trace 12mbps --schemes cubci",
    "evaluate --trace 12mbps --schemes cubic,cubic",
    "evaluate --trace 12mbps --schemes tcp:bbr",
    "evaluate --trace 12mbps --schemes none.py:Mine",
    "evaluate --trace 12mbps --runs 0",
    "evaluate --trace 12mbps --backend simm",
    "evaluate --trace 12mbps --logs frist",
    "evaluate --trace 12mbps --flows 4 --interval 10",
    "evaluate --mahimahi 'mm-delay 20' --schemes cubic",
    "evaluate --experiment nothing",
    "evaluate --experiment calibrated --trace 12mbps",
    "evaluate --quick --trace 12mbps",
    "describe",
    "describe aurora --set agent.clokc=1",
    "describe aurora --set agent.clock.kind=tick",
    "describe aurora --set agent.action=up",
    "describe aurora --set agent.reward=[]",
    "plot portrait cubic -o cubic.gif",
    "plot tree aurora -o tree.png",
    "schemes certificate nothing",
    "report watch no/such",
    "describe --schema nothing",
)
"""Command lines with a mistake each; none of them writes anything."""


def template(node: ast.expr) -> str:
    """A text as it stands in the source, with what is put into it in braces."""
    if isinstance(node, ast.Constant):
        return str(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(
            f"{{{ast.unparse(part.value)}}}" if isinstance(part, ast.FormattedValue) else template(part)
            for part in node.values
        )
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return template(node.left) + template(node.right)
    if isinstance(node, ast.IfExp):
        return f"{{{template(node.body)} | {template(node.orelse)}}}"
    return f"{{{ast.unparse(node)}}}"


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Constant) and isinstance(node.value, str))


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")


def _codes(node: ast.expr, place: str) -> list[str]:
    """The codes that an error may have; a name is that of a variable."""
    if isinstance(node, ast.IfExp):
        return [*_codes(node.body, place), *_codes(node.orelse, place)]
    if isinstance(node, (ast.Name, ast.Attribute)) or (isinstance(node, ast.Constant) and node.value in CODES):
        return [template(node)]
    if isinstance(node, ast.Call) and _called(node) == "known_code":
        return _codes(node.args[1], place)
    raise SystemExit(f"{place}: {ast.unparse(node)} is no code of ccgym/errors.py")


def _in_module(file: str, tree: ast.Module) -> Iterator[tuple[str, str, list[str]]]:
    """Code, where it stands and texts of every error that a module makes, and of the calls of its functions that do."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    makers: dict[str, str] = {}
    for function in functions:
        names = {argument.arg for argument in function.args.args}
        for node in ast.walk(function):
            if isinstance(node, ast.Call) and _called(node) in KINDS and len(node.args) > 1:
                used = {name.id for one in node.args for name in ast.walk(one) if isinstance(name, ast.Name)}
                if used & names & {"code", "found", "reason", "expected", "wrong"}:
                    makers[function.name] = str(getattr(node.args[0], "value", ""))
    for function in functions:
        local = [
            f"  {ast.unparse(node.targets[0])} = {template(node.value)}"
            for node in ast.walk(function)
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in ("found", "expected", "hint", "wrong")
            if any(_is_text(one) for one in ast.walk(node.value) if isinstance(one, ast.expr))
        ]
        for node in ast.walk(function):
            if not isinstance(node, ast.Call):
                continue
            name = _called(node)
            if name in KINDS and node.args and file != "ccgym/errors.py":
                code, *rest = node.args
                texts = [f"  {template(one)}" for one in rest]
                texts += [f"  {one.arg}: {template(one.value)}" for one in node.keywords if one.arg]
                texts += local * any(text == "  {found}" for text in texts)
                for one in _codes(code, f"{file}:{node.lineno}"):
                    yield one, f"{name} in {file}", texts
            elif name == "explained" and len(node.args) == 3:
                kind, _, code = node.args
                texts = [f"  {one.arg}: {template(one.value)}" for one in node.keywords if one.arg]
                yield template(code), f"{ast.unparse(kind)} in {file}", ["  {what the native core says}", *texts]
            elif name in makers:
                values = [getattr(one, "value", None) for one in node.args]
                code = next((str(one) for one in values if one in CODES), makers[name])
                texts = [f"  {template(one)}" for one in node.args if _is_text(one) and template(one) != code]
                if texts:
                    yield code, f"{name}() in {file}", texts


def entries() -> list[tuple[str, str, list[str]]]:
    """All errors of the package, by code and file."""
    found: list[tuple[str, str, list[str]]] = []
    for path in sorted((ROOT / "ccgym").rglob("*.py")):
        file = path.relative_to(ROOT).as_posix()
        for one in _in_module(file, ast.parse(path.read_text(encoding="utf-8"))):
            if one not in found:
                found.append(one)
    unused = sorted(set(CODES) - {one[0] for one in found} - errors_rust.codes() - {"command-line"})
    if unused:
        raise SystemExit(f"no error has these codes of ccgym/errors.py: {', '.join(unused)}")
    return sorted(found)


def snapshot() -> str:
    """Every text of an error in the package."""
    head = "Written by `make docs`: every error of the Python package, its code, class, file and texts."
    return "\n".join([head, *(f"\n{code}  {where}\n" + "\n".join(texts) for code, where, texts in entries()), ""])


def _said(line: str) -> tuple[str, str]:
    """Code and first line of what a command line ends with."""
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(io.StringIO()):
        status = main(shlex.split(line))
    answer = re.match(r"error\[([a-z0-9-]+)\]: (.*)", printed.getvalue())
    if status != 2 or answer is None:
        raise SystemExit(f"`ccgym {line}` ended with {status} and no error")
    return answer[1], answer[2]


def _span(text: str) -> str:
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def codes() -> list[str]:
    """A row per code, with an example."""
    examples: dict[str, str] = {}
    for line in BAD:
        code, text = _said(line)
        examples.setdefault(code, f"`ccgym {line}`: {_span(text)}")
    texts: dict[str, set[str]] = {}
    python = entries()
    ours = {code for code, *_ in python}
    native = [(code, where, list(said)) for code, where, said in errors_rust.entries() if code not in ours]
    for code, _, said in (*python, *native):
        text = re.sub(r"\{[^{}]*\}", "…", said[0].strip() if said else "")
        if re.search(r"\w", text) and not re.search(r"[{}]", text):
            texts.setdefault(code, set()).add(text)
    for code, known in texts.items():
        plainest = min(known, key=lambda text: (text.count("…"), -len(text), text))
        examples.setdefault(code, _span(plainest))
    rows = ((f"`{one}`", CODES[one], examples.get(one, "")) for one in sorted(CODES))
    return table(("code", "meaning", "example"), rows)


BLOCKS = {"docs/errors.md": {"codes": codes}}
