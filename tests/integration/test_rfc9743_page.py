"""RFC 9743's report in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from ccgym.cli.main import main
from tests.browser import Browser, program

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(program() is None, reason="needs chromium: sudo apt-get install chromium"),
]


def test_the_table_of_rows_fits_a_laptop(tmp_path: Path) -> None:
    assert main(["rfc9743", "cubic", "--quick", "--out", str(tmp_path)]) == 0
    with Browser() as browser:
        browser.open(tmp_path / "rfc9743.html", width=1280)
        widths = browser.run(
            "(({scrollWidth, clientWidth}) => [scrollWidth, clientWidth])(document.querySelector('.scroll'))"
        )
    assert widths[0] <= widths[1]
