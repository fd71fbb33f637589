"""Models of paths, flows and agents: type, unit, range, default and help of each parameter.

The native core declares all parameters (``spec.rs`` of ccgym-path and ccgym-run, and the agent's spec): change them
there. ``make format`` writes the stub next to this file, for editors and type checkers.
"""

import json

from ccgym import _core
from ccgym.config.model_builder import build

globals().update(build(json.loads(_core.schema())))
