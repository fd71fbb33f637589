"""Says whether a change left every simulated packet, score and verdict as it was.

    python -m tests.reference.unchanged FILE --record     keeps what comes out now
    python -m tests.reference.unchanged FILE              again; names what differs, exit status 1

Every scheme, with each word that it may be given, and every pretrained policy runs over the eight paths below, alone
and with a flow of Cubic that joins after 2 s: the hash of the trajectory is kept. With --studies so are the numbers of
a quick scorecard and of quick stress tests. FILE stands outside of the tree: it is about one change, not about ccgym.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

from ccgym import Job, NetworkPath, simulate_many
from ccgym.cli.main import main as ccgym
from ccgym.evaluation.simulate import Record
from ccgym.schemes import policies
from ccgym.schemes.registry import registry

PATHS: Final[dict[str, Any]] = {
    "constant": {"rate": "12mbps", "rtt": "40ms", "queue": "100p"},
    "shallow": {"rate": "48mbps", "rtt": "80ms", "queue": "20p"},
    "lossy": {"rate": "24mbps", "rtt": "60ms", "queue": "200p", "loss": 0.01},
    "steps": {"rate": [("0s", "20mbps"), ("3s", "4mbps"), ("6s", "20mbps")], "rtt": "60ms", "queue": "200p"},
    "jitter": {"rate": "12mbps", "rtt": "40ms", "queue": "100p", "jitter": "5ms"},
    "codel": {"rate": "12mbps", "rtt": "40ms", "queue": "codel"},
    "ecn": {"rate": "24mbps", "rtt": "20ms", "queue": {"kind": "fq_codel", "ecn": True}},
    "trace": "2.64mbps-poisson",
}
DURATION: Final = "10s"
STUDIES: Final = ("calibrated", "stress_tests")


def schemes() -> dict[str, dict[str, Any]]:
    """What runs, as a flow, by what one would type."""
    found: dict[str, dict[str, Any]] = {name: {"scheme": name} for name in policies.pretrained()}
    for name, entry in registry().items():
        if name == policies.SCHEME:
            continue
        found[name] = {"scheme": name}
        for parameter in entry["parameters"]:
            words = parameter["choices"][1:] or ([True] if parameter["default"] is False else [])
            for word in words:
                found[f"{name}:{parameter['name']}={word}"] = {"scheme": name, "params": {parameter["name"]: word}}
    return found


def trajectories() -> dict[str, str]:
    """The hash of each run."""
    jobs, names = [], []
    for scheme, flow in schemes().items():
        for path, values in PATHS.items():
            for competing in ("alone", "cubic"):
                flows = [flow] if competing == "alone" else [flow, {"scheme": "cubic", "start": "2s"}]
                jobs.append(Job(NetworkPath.from_any(values), flows, DURATION, 1))
                names.append(f"{scheme} {path} {competing}")
    runs = simulate_many(jobs, record=Record(packets=False))
    return {name: run.trajectory_hash for name, run in zip(names, runs, strict=True)}


def studies() -> dict[str, str]:
    """A digest of the numbers of each study."""
    found = {}
    for study in STUDIES:
        with tempfile.TemporaryDirectory() as out:
            if ccgym(["evaluate", "--experiment", study, "--quick", "--out", out]) not in (0, 1):
                raise SystemExit(f"{study}: no results")
            for table in sorted(Path(out).glob("*.csv")):
                found[f"{study} {table.name}"] = hashlib.sha256(table.read_bytes()).hexdigest()
    return found


def main() -> int:
    """Record, or compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--studies", action="store_true", help="the scorecard and the stress tests, too: some minutes")
    options = parser.parse_args()
    now = trajectories() | (studies() if options.studies else {})
    if options.record:
        known = json.loads(options.file.read_text(encoding="utf-8")) if options.file.exists() else {}
        options.file.write_text(json.dumps(known | now, indent=1) + "\n", encoding="utf-8")
        print(f"{len(now)} recorded")
        return 0
    before = json.loads(options.file.read_text(encoding="utf-8"))
    changed = [name for name, value in now.items() if before.get(name, value) != value]
    print(*changed, f"{len(changed)} of {len(now)} differ", sep="\n")
    return int(bool(changed))


if __name__ == "__main__":
    sys.exit(main())
