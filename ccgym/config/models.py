"""What users may write about paths, flows and agents: type, unit, range, default and help of each parameter.

The native core declares all of it (``spec.rs`` of ccgym-path and ccgym-run, and the agent's spec): change it there. The
stub next to this file, for editors and type checkers, is written by ``make format``.
"""

import json

from ccgym import _core
from ccgym.config.model_builder import build

globals().update(build(json.loads(_core.schema())))
