"""The codes of errors in docs/reference/errors.md, with messages of commands with such errors."""

from __future__ import annotations

import contextlib
import io
import re
import shlex

from ccgym.cli.main import main
from ccgym.errors import CODES
from pages.markdown import table

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
    "plot portrait cubic -o cubic.gif",
    "plot tree aurora -o tree.png",
    "schemes certificate nothing",
    "report watch no/such",
)
"""Command lines with one error each; none of them writes any file."""


def _said(line: str) -> tuple[str, str]:
    """Return the code and the first line of a command line's error."""
    printed = io.StringIO()
    with contextlib.redirect_stderr(printed), contextlib.redirect_stdout(io.StringIO()):
        status = main(shlex.split(line))
    answer = re.match(r"error\[([a-z0-9-]+)\]: (.*)", printed.getvalue())
    if status != 2 or answer is None:
        raise SystemExit(f"`ccgym {line}` ended with {status} and no error")
    return answer[1], answer[2]


def codes() -> list[str]:
    """Return a row per code, with an example if a short command has this error."""
    examples: dict[str, str] = {}
    for line in BAD:
        code, text = _said(line)
        examples.setdefault(code, f"`ccgym {line}`: {f'`` {text} ``' if '`' in text else f'`{text}`'}")
    rows = ((f"`{one}`", CODES[one], examples.get(one, "")) for one in sorted(CODES))
    return table(("code", "meaning", "example"), rows)


BLOCKS = {"docs/reference/errors.md": {"codes": codes}}
