"""What is refused, by the code of the error and its place: the words of a message may change."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from pydantic import ValidationError

from ccgym.errors import CODES, CcgymError


@contextmanager
def refused(kind: type[Exception], what: str) -> Iterator[pytest.ExceptionInfo[Any]]:
    """Expect an error.

    Args:
        kind: Its class; with pydantic's, what our model said is looked at.
        what: Its code, as in ``"unknown-key"``, or code and end of its place, as in ``"unknown-key at agent.clock"``.
    """
    with pytest.raises(kind) as caught:
        yield caught
    code, _, place = what.partition(" at ")
    error = caught.value
    if isinstance(error, ValidationError):
        error = error.errors()[0]["ctx"]["error"]
    assert isinstance(error, CcgymError)
    assert error.code == code, error
    assert error.where.endswith(place), error


def explained(printed: str, what: str) -> None:
    """Check that a command ended with one explanation on standard error and no traceback.

    Args:
        printed: What it printed there.
        what: The code of the error, or code and end of its place, as in :func:`refused`.
    """
    code, _, place = what.partition(" at ")
    assert code in CODES, code
    assert "Traceback" not in printed, printed
    assert re.findall(r"^error\[.*?\]", printed, re.MULTILINE) == [f"error[{code}]"], printed
    assert re.search(rf"^error\[{code}\]: .*{re.escape(place)}", printed, re.MULTILINE), printed
