"""Decisions per second of a whole training: rollouts, learning and all other work. One JSON line.

``value`` is the mean of all hundred updates, ``first_ten`` the mean of the first ten: a policy that has not learned
yet overloads its links, so that each decision takes more packets.
"""

from __future__ import annotations

import contextlib
import csv
import json
import sys
import tempfile
from pathlib import Path
from statistics import harmonic_mean

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from ccgym.cli.main import main as ccgym
from ccgym.training.run_directory import RunDirectory

STEPS = 1_280_000


def main() -> int:
    """Run the benchmark, and return the exit status."""
    settings = ["training.eval_every=1000000000", "evaluation.episodes=1", "evaluation.baselines=[]"]
    with tempfile.TemporaryDirectory() as place:
        run = Path(place) / "run"
        arguments = ["--config", "aurora", "--steps", str(STEPS), "--run-dir", str(run), "--no-export"]
        with contextlib.redirect_stdout(sys.stderr):
            status = ccgym(["train", *arguments, *(word for setting in settings for word in ("--set", setting))])
        if status:
            return status
        rows = csv.DictReader(RunDirectory(run).progress.read_text(encoding="utf-8").splitlines())
        rates = [float(row["sys/steps_per_second"]) for row in rows if row.get("sys/steps_per_second")]
    value, first_ten = harmonic_mean(rates), harmonic_mean(rates[:10])
    result = {"name": "train_steps_per_second/aurora", "unit": "steps/s", "value": value, "first_ten": first_ten}
    print(json.dumps(result), flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
