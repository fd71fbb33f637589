"""Training: from a YAML file to a policy, resumable at any moment and reproducible from a seed.

=====================  =====================================================================================
``config``             the YAML file: agent, environment, algorithm, run, evaluation
``trainer``            the loop: rollout, update, evaluation, checkpoint
``environments``       the environments that a configuration means
``training_env``       those to learn in, which can be captured and brought back
``ppo``                PPO: rollouts in the native core, advantages, the loss and its gradient
``gaussian_policy``    the networks that PPO's loss is differentiated by hand for
``algorithms``         DAgger, distillation, the cross-entropy method, and the settings of all
``model``              the learner from a configuration; threads, device, hashes of weights
``normalizer``         running statistics of features and rewards
``privileged_critic``  a value function that sees the ground truth about the path
``earlier_self``       the policy as it was some time ago, to steer other flows
``evaluation``         a policy or a baseline on the held-out paths
``callbacks``          what happens between updates: records, evaluations, pictures
``bayesian``           Bayesian optimization
``gaps``               how much more a scheme earns than another or than the policy, for curricula that grow by it
``checkpoint``         everything that a run continues from, whole or not at all
``run_directory``      everything about a run on disk, and its lock
``saved_model``        the best and the final model; starting from the best one of another run
``logs``               progress tables and TensorBoard's events, which continue when a run is resumed
``progress``           what is shown on the terminal
``stopping``           SIGINT and SIGTERM as requests to stop
``streams``            seeds by name, and the state of all generators
``sb3_model``          a model that Stable-Baselines3 saved
``foreign_network``    a network that was made outside ccgym, as an ONNX file
``export``             the policy as ONNX with its card
``tree_policy``        a policy that is a tree
``torch_policy``       the trained policy, as trained and in float64
``onnx_graph``         its network as an ONNX graph
``parity``             whether the export does what the trained policy does
``confirmation``       policies and baselines on fresh draws
``recording``          several seeds, confirmed on fresh draws; the median one exported
``population``         seeds and settings that are varied, on a Ray cluster
``comparison``         trainings compared on fresh draws, with intervals
=====================  =====================================================================================

Names are loaded when first used: ``import ccgym.training`` does not load torch.

May import ``report`` and what stands below it in ``ARCHITECTURE.md``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ccgym.lazy import lazy

if TYPE_CHECKING:
    from ccgym.training.config import TrainConfig
    from ccgym.training.export import export_policy
    from ccgym.training.saved_model import TrainedModel, load_model
    from ccgym.training.trainer import Outcome, Trainer, train

__all__ = ["Outcome", "TrainConfig", "TrainedModel", "Trainer", "export_policy", "load_model", "train"]

_LAZY: Final = {
    "Outcome": "ccgym.training.trainer",
    "TrainConfig": "ccgym.training.config",
    "TrainedModel": "ccgym.training.saved_model",
    "Trainer": "ccgym.training.trainer",
    "export_policy": "ccgym.training.export",
    "load_model": "ccgym.training.saved_model",
    "train": "ccgym.training.trainer",
}

__getattr__, __dir__ = lazy(__name__, _LAZY)
