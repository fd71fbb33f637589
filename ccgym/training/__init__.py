"""Training: from a YAML file to a policy, resumable at any moment and reproducible from a seed.

=====================  =====================================================================================
``config``             the YAML file: agent, environment, algorithm, run, evaluation
``trainer``            the loop: rollout, update, evaluation, checkpoint
``session``            what a training consists of, and what a callback is
``environments``       the environments that a configuration means
``training_env``       those to learn in, which can be captured and brought back; flows of earlier selves
``ppo``                PPO: rollouts in the native core, advantages, the loss and its gradient
``gaussian_policy``    the networks that PPO's loss is differentiated by hand for
``algorithms``         DAgger, distillation, the cross-entropy method, and the settings of all
``model``              the learner from a configuration, and models on disk; threads, device, hashes
``normalizer``         running statistics of features and rewards
``privileged_critic``  a value function that sees the ground truth about the path
``evaluation``         a policy or a baseline on the held-out paths, and on fresh draws
``callbacks``          what happens between updates: records, evaluations, pictures
``gaps``               curricula that grow by how much a scheme's reward exceeds another's or the policy's
``checkpoint``         everything that a run continues from, whole or not at all
``run_directory``      everything about a run on disk, and its lock
``logs``               progress tables and TensorBoard's events, which continue when a run is resumed
``progress``           what is shown on the terminal; SIGINT and SIGTERM as requests to stop
``streams``            seeds by name, and the state of all generators
``export``             the policy of a run as ONNX with its card
``tree_policy``        a policy that is a tree
``torch_policy``       the trained policy, as trained and in float64
``onnx_graph``         ONNX graphs, put together node by node
``parity``             whether the export does what the trained policy does
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
    from ccgym.training.model import TrainedModel, load_model
    from ccgym.training.trainer import Outcome, Trainer, train

__all__ = ["Outcome", "TrainConfig", "TrainedModel", "Trainer", "export_policy", "load_model", "train"]

_LAZY: Final = {
    "Outcome": "ccgym.training.trainer",
    "TrainConfig": "ccgym.training.config",
    "TrainedModel": "ccgym.training.model",
    "Trainer": "ccgym.training.trainer",
    "export_policy": "ccgym.training.export",
    "load_model": "ccgym.training.model",
    "train": "ccgym.training.trainer",
}

__getattr__, __dir__ = lazy(__name__, _LAZY)
