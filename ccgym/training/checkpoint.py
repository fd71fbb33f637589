"""Checkpoints: a directory per step, written atomically, with the checksum of every file.

``step_<N>/`` contains ``rl_model.zip`` (policy and optimizer in SB3's form), ``state.pt`` (all other data that the next
update needs) and ``checkpoint.json`` (the checksums). Files are read without unpickling: a run directory from another
person is data, not a program.
"""

from __future__ import annotations

import hashlib
import io
import json
import pickle
import re
import shlex
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch

from ccgym.errors import ResultsError
from ccgym.evaluation.directory import differences
from ccgym.files import MAX_MODEL_BYTES, UnreadableError, atomic_write, read_bytes, read_json, write_directory
from ccgym.training.config import RESUMABLE, TrainConfig
from ccgym.training.run_directory import RunDirectory

MANIFEST: Final = "checkpoint.json"
MODEL: Final = "rl_model.zip"
STATE: Final = "state.pt"
LATEST: Final = "latest"
FORMAT: Final = "ccgym-checkpoint"
FORMAT_VERSION: Final = 1

_NAME: Final = re.compile(r"step_(\d{1,18})")


@dataclass(frozen=True)
class Checkpoint:
    """The state from which a run continues."""

    step: int
    """Decisions before the checkpoint."""
    model: bytes
    """Policy and optimizer, in the format of SB3's ``save``."""
    state: dict[str, Any]
    """Counters, normalizer, generators, environments: numbers, text, tensors, and containers of them."""


def write_checkpoint(root: Path, checkpoint: Checkpoint, keep: int) -> Path:
    """Write a checkpoint, then remove the oldest ones.

    Args:
        root: Directory of the checkpoints.
        checkpoint: The checkpoint.
        keep: Number of checkpoints to keep, at least 1.

    Returns:
        The directory of the checkpoint.

    Raises:
        PlatformError: The disk is full or cannot be written. Earlier checkpoints stay unchanged.
    """
    buffer = io.BytesIO()
    torch.save(checkpoint.state, buffer)
    files = {MODEL: checkpoint.model, STATE: buffer.getvalue()}
    manifest = {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "step": checkpoint.step,
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in files.items()},
    }
    directory = root / f"step_{checkpoint.step}"
    write_directory(directory, {**files, MANIFEST: json.dumps(manifest, indent=1).encode()})
    atomic_write(root / LATEST, f"{directory.name}\n")
    for _, old in _directories(root)[keep:]:
        shutil.rmtree(old, ignore_errors=True)
    return directory


def read_checkpoint(directory: Path) -> Checkpoint:
    """Read one checkpoint.

    Raises:
        ResultsError: The checkpoint is damaged, or from another version of ccgym.
    """
    try:
        manifest = read_json(directory / MANIFEST)
        if manifest["format"] != FORMAT or manifest["version"] != FORMAT_VERSION:
            raise _damaged(directory, "written by another version of ccgym")
        files: Mapping[str, str] = manifest["sha256"]
        content = {name: read_bytes(directory / name, MAX_MODEL_BYTES) for name in (MODEL, STATE)}
        for name, data in content.items():
            if hashlib.sha256(data).hexdigest() != files[name]:
                raise _damaged(directory, f"{name} does not match its checksum")
        state = torch.load(io.BytesIO(content[STATE]), map_location="cpu", weights_only=True)
        return Checkpoint(int(manifest["step"]), content[MODEL], state)
    except FileNotFoundError as error:
        raise _damaged(directory, f"{Path(error.filename).name} is missing") from None
    except UnreadableError as error:
        raise _damaged(directory, str(error)) from None
    except pickle.UnpicklingError:
        raise _damaged(directory, f"{STATE} contains more than data") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _damaged(directory, f"{MANIFEST} is cut off or damaged") from None


def latest_checkpoint(root: Path) -> tuple[Checkpoint | None, list[str]]:
    """Return the newest usable checkpoint, and the damages of newer checkpoints."""
    damages: list[str] = []
    for _, directory in _directories(root):
        try:
            return read_checkpoint(directory), damages
        except ResultsError as error:
            damages.append(f"{directory} is damaged ({error.found})")
    return None, damages


def checkpoint_to_resume(run: RunDirectory, config: TrainConfig, notice: Callable[[str], None]) -> Checkpoint | None:
    """Return the newest intact checkpoint of a run; None if the run was killed before its first checkpoint.

    Args:
        run: The run.
        config: The configuration of the resumed training.
        notice: Gets messages for the user.

    Raises:
        ResultsError: All checkpoints are damaged, or the run was trained with another configuration.
    """
    checkpoint, damages = latest_checkpoint(run.checkpoints)
    if checkpoint is None:
        if damages:
            raise ResultsError(
                "checkpoint-damaged",
                f"no checkpoint can be used: {'; '.join(damages)}",
                where=str(run.checkpoints),
                expected="a checkpoint that `ccgym train` wrote",
                hint=f"start a new run with --config {run.config}",
            )
        notice("the run was killed before the first checkpoint; starting from step 0")
        return None
    changed = differences(checkpoint.state["configuration"], config.fixed())
    if changed:
        place = shlex.quote(str(run.path))
        more = f"; and {len(changed) - 6} more" if len(changed) > 6 else ""
        raise ResultsError(
            "resume-changed",
            f"the checkpoint of step {checkpoint.step} was trained with another configuration "
            f"({'; '.join(changed[:6])}{more})",
            where=str(run.config),
            expected=f"the same configuration; only {', '.join(RESUMABLE)} may differ in a resumed run",
            hint=f"restore the configuration, or start a new run with this policy: "
            f"`ccgym train --config {place}/config.yaml --set training.start_from={place}`",
        )
    for damage in damages:
        notice(f"{damage}; continuing from step {checkpoint.step} instead")
    return checkpoint


def remove_leftovers(root: Path, after: int) -> None:
    """Remove incomplete checkpoints, and checkpoints of steps that will be repeated."""
    for partial in root.glob(".*.partial"):
        if partial.is_dir() and not partial.is_symlink():
            shutil.rmtree(partial, ignore_errors=True)
        else:
            partial.unlink(missing_ok=True)
    for step, directory in _directories(root):
        if step > after:
            shutil.rmtree(directory, ignore_errors=True)


def _directories(root: Path) -> list[tuple[int, Path]]:
    """Return steps and directories of all checkpoints, newest first."""
    found = [(int(match[1]), path) for path in root.glob("step_*") if (match := _NAME.fullmatch(path.name))]
    return sorted(found, reverse=True)


def _damaged(directory: Path, reason: str) -> ResultsError:
    return ResultsError(
        "checkpoint-damaged", reason, where=str(directory), expected="a checkpoint that `ccgym train` wrote"
    )


def plain(value: Any) -> Any:
    """Return the value with arrays as tensors and numpy's numbers as Python's, which ``torch.load`` reads safely."""
    if isinstance(value, np.ndarray):
        return torch.from_numpy(value.copy())
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {key: plain(inside) for key, inside in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(inside) for inside in value]
    return value


def with_arrays(value: Any) -> Any:
    """Invert :func:`plain` for arrays; the arrays are writable."""
    if isinstance(value, torch.Tensor):
        return value.numpy().copy()
    if isinstance(value, Mapping):
        return {key: with_arrays(inside) for key, inside in value.items()}
    if isinstance(value, list):
        return [with_arrays(inside) for inside in value]
    return value
