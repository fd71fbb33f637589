"""Where ONNX Runtime is, the shared library that computes policies inside the native core.

It comes with the Python package ``onnxruntime``, of which nothing but the library is used: Python does not import it.
``ORT_DYLIB_PATH`` names another one, such as a distribution's.
"""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from typing import Final

from ccgym.errors import PlatformError

LIBRARY_VARIABLE: Final = "ORT_DYLIB_PATH"
"""Environment variable with the path of the library; the native core reads it when the first policy is loaded."""

PATTERNS: Final = ("libonnxruntime.so*", "libonnxruntime.*.dylib", "libonnxruntime.dylib")
"""Names of the library in the package."""


def provide_library() -> Path:
    """Let the native core know where the library is, and return its path.

    Raises:
        PlatformError: There is none.
    """
    given = os.environ.get(LIBRARY_VARIABLE)
    if given:
        return Path(given)
    found = _in_package()
    if found is None:
        raise PlatformError(
            "package-missing",
            "ONNX Runtime is missing, which computes learned policies",
            expected=f"the Python package onnxruntime, or a library named by {LIBRARY_VARIABLE}",
            hint="pip install onnxruntime",
        )
    os.environ[LIBRARY_VARIABLE] = str(found)
    return found


def _in_package() -> Path | None:
    spec = importlib.util.find_spec("onnxruntime")
    for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
        for pattern in PATTERNS:
            for library in sorted(Path(folder, "capi").glob(pattern)):
                return library
    return None
