"""A policy made without ccgym: plain PyTorch, a simple rule, a network that learns the rule, an ONNX file.

Two commands make a scheme of it (docs/guides/deploy.md, "Networks from elsewhere"); ``foreign_policy.yaml`` next to
this file describes the network's inputs and outputs::

    python examples/foreign_policy.py network.onnx
    ccgym train export network.onnx --config examples/foreign_policy.yaml
    ccgym evaluate --trace 77.72mbps --schemes foreign_policy.onnx,bbr,cubic
"""

from __future__ import annotations

import sys
import warnings

import torch
from torch import nn

QUEUE_TARGET = 0.1
"""Target queueing delay, in minimum RTTs."""
LOSS_LIMIT = 0.01
"""Fraction of lost packets above which the window shrinks."""


def rule(features: torch.Tensor) -> torch.Tensor:
    """Return the rule's action a: the window is multiplied by 2^a.

    Args:
        features: [batch, 2]: queueing delay over the minimum RTT; fraction of lost packets.

    Returns:
        [batch, 1], within ±0.5.
    """
    queue, loss = features[:, :1], features[:, 1:]
    step = QUEUE_TARGET - queue
    return torch.where(loss > LOSS_LIMIT, step - 0.3, step).clamp(-0.5, 0.5)


def taught(steps: int = 1500) -> nn.Sequential:
    """Return a network that has learned the rule from examples."""
    torch.manual_seed(1)
    network = nn.Sequential(nn.Linear(2, 32), nn.Tanh(), nn.Linear(32, 32), nn.Tanh(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-3)
    for _ in range(steps):
        # Short queues and few losses are the most frequent inputs.
        features = torch.stack([4 * torch.rand(256) ** 4, torch.rand(256) ** 6], dim=1)
        loss = nn.functional.mse_loss(network(features), rule(features))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return network


def main() -> None:
    """Train a network and write it to the file that the command line names."""
    file = sys.argv[1] if len(sys.argv) > 1 else "network.onnx"
    axes = {"features": {0: "batch"}, "action": {0: "batch"}}
    with warnings.catch_warnings():
        # The newer exporter (dynamo=True) also works; it needs the package onnxscript.
        warnings.simplefilter("ignore", DeprecationWarning)
        torch.onnx.export(
            taught(),
            (torch.zeros(1, 2),),
            file,
            input_names=["features"],
            output_names=["action"],
            dynamic_axes=axes,
            opset_version=17,
            dynamo=False,
        )


if __name__ == "__main__":
    main()
