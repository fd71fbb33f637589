"""Training that goes on from another run's policy, elsewhere: on a real path, say."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from ccgym.errors import ConfigError
from ccgym.training import normalizer as normalizers
from ccgym.training.saved_model import load_model

if TYPE_CHECKING:
    from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm


def start_from(model: OnPolicyAlgorithm, run_dir: Path) -> int:
    """Give a new model the networks, and the features' statistics, of the best one of another run.

    The optimizer starts anew, and so does the normalizer of rewards: they belong to the environments of then.

    Args:
        model: The learner; its normalizer, if it has one, is changed too.
        run_dir: The other run.

    Returns:
        The step of the other run's model.

    Raises:
        ConfigError: There is no such run, or its networks are others.
        ResultsError: It has no model, or a damaged one.
    """
    known = load_model(run_dir)
    try:
        model.policy.load_state_dict(known.model.policy.state_dict())
    except RuntimeError as error:
        raise ConfigError(
            f"the networks of {run_dir} do not fit: {str(error).splitlines()[-1].strip()}",
            where="training.start_from",
            expected="the same agent, algorithm.name, net_arch and critic in both runs",
            hint=f"--config {run_dir}/config.yaml has them",
        ) from None
    step = int(known.card.get("step", 0))
    normalizers.start_from(model.get_vec_normalize_env(), known.statistics, step)
    return step
