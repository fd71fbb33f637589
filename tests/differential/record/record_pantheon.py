#!/usr/bin/env python3
"""Have Pantheon's and mahimahi's own, unchanged programs read directories of ours, and keep what they say.

  record_pantheon.py --pantheon DIR --python2 COMMAND --mahimahi DIR

DIR of Pantheon is a clone of StanfordSNR/pantheon, whose src/config.yml is replaced meanwhile; COMMAND is a Python 2.7
that has numpy 1.16, matplotlib 2.2 and PyYAML; pdflatex and pdfinfo are on the PATH; DIR of mahimahi holds
mm-throughput-graph and mm-delay-graph, which need perl and gnuplot (those of release 0.98 compute the same, but gnuplot
5 refuses to draw for them).
Writes recorded/pantheon/NAME.json.gz.
"""

import argparse
import contextlib
import datetime
import hashlib
import json
import pathlib
import subprocess
import tempfile
from collections.abc import Iterator

import machine
from pantheons_programs import Pantheon

from tests.differential.pantheon_cases import CASES, REAL, Case, link_log, statistics


@contextlib.contextmanager
def knowing(pantheon: Pantheon, config: pathlib.Path) -> Iterator[None]:
    """Have Pantheon know the schemes of a directory, as the head of its config.yml says."""
    own = pantheon.source / "config.yml"
    before = own.read_bytes()
    own.write_bytes(config.read_bytes())
    try:
        yield
    finally:
        own.write_bytes(before)


def read_by_mahimahi(scripts: pathlib.Path, directory: pathlib.Path) -> dict:
    def said(script: str, *words: str) -> list[str]:
        call = [str(scripts / script), *words, str(directory / "cubic_mm_datalink_run1.log")]
        return subprocess.run(call, capture_output=True, text=True, check=True).stderr.splitlines()

    return {
        "events_sha256": hashlib.sha256("\n".join(link_log(directory)).encode()).hexdigest(),
        "mm-throughput-graph 500": said("mm-throughput-graph", "500"),
        "mm-delay-graph": said("mm-delay-graph"),
    }


def record(name: str, case: Case, pantheon: Pantheon, scripts: pathlib.Path, made: dict) -> None:
    with tempfile.TemporaryDirectory() as place:
        directory = pathlib.Path(place)
        results = case.run(directory, raw_logs=True)
        found = {"made": made, "trajectory_hash": results.trajectory_hash}
        if name == "real":
            found["ours"] = statistics(directory)
        if name == "trace":
            found["mahimahi"] = read_by_mahimahi(scripts, directory)
        # Last, since it writes the directory's files again.
        with knowing(pantheon, directory / "config.yml"):
            found["pantheon"] = pantheon.whole(directory)
    text = json.dumps(found, indent=1, sort_keys=True) + "\n"
    machine.write_gzip(machine.RECORDED / "pantheon" / f"{name}.json.gz", text)


def main() -> None:
    cases = {**CASES, "real": REAL}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pantheon", type=pathlib.Path, required=True)
    parser.add_argument("--python2", required=True)
    parser.add_argument("--mahimahi", type=pathlib.Path, required=True)
    parser.add_argument("--commit", default="23e738c", help="of Pantheon")
    parser.add_argument("--scripts", default="ravinet/mahimahi @ae477d4, scripts", help="which mahimahi's are")
    parser.add_argument("--cases", nargs="*", default=list(cases), help="those to record (default: all)")
    given = parser.parse_args()
    pantheon = Pantheon(given.pantheon, given.python2, given.commit)
    made = {
        "date_utc": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        **pantheon.describe(),
        "mahimahi": given.scripts,
        "gnuplot": machine.output_of("gnuplot", "--version"),
    }
    for name in given.cases:
        record(name, cases[name], pantheon, given.mahimahi, made)


if __name__ == "__main__":
    main()
