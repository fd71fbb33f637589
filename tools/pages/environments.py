"""docs/environments.md."""

from __future__ import annotations

from ccgym import _core
from ccgym.config.distributions import presets
from ccgym.envs.registration import PRESETS as ENVIRONMENTS
from pages.markdown import code, columns, table


def environments() -> list[str]:
    """The environments' ids."""
    rows = ENVIRONMENTS.items()
    return table(["Id", "Defaults"], [(code(name), f"[`{c}.yaml`](../configs/{c}.yaml)") for name, c in rows])


def distributions() -> list[str]:
    """Path distributions with a name."""
    return table(["Name", "What it is, and where from"], [(code(n), one["source"]) for n, one in presets().items()])


BLOCKS = {
    "docs/environments.md": {
        "environments": environments,
        "distributions": distributions,
        "interval": lambda: columns(_core.AgentBatch.columns()),
        "truth": lambda: columns(_core.AgentBatch.truth_columns()),
    }
}
