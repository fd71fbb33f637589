#!/usr/bin/env python3
"""Have Pantheon's and mahimahi's own, unchanged programs read directories of ours, and keep what they say.

  record_pantheon.py --pantheon DIR --python2 COMMAND --mahimahi DIR

DIR of Pantheon is a clone of StanfordSNR/pantheon, whose src/config.yml is replaced meanwhile; COMMAND is a Python 2.7
that has numpy 1.16, matplotlib 2.2 and PyYAML; DIR of mahimahi holds mm-throughput-graph and mm-delay-graph, which need
perl and gnuplot (those of release 0.98 compute the same, but gnuplot 5 refuses to draw for them).
Writes recorded/pantheon/NAME.json.
"""

import argparse
import datetime
import hashlib
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile

import machine

sys.path.insert(0, str(machine.RECORDED.parents[2]))

from tests.differential.pantheon_cases import CASES, link_log, statistics

TABLE = """
import sys
sys.path.insert(0, sys.argv[1])
sys.argv[1:] = ['--data-dir', sys.argv[2]]
import arg_parser, report
print report.Report(arg_parser.parse_report()).summary_table()
"""
"""Prints the table of report.py, which goes into LaTeX otherwise."""


def call(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True)


def read_by_pantheon(python2: list[str], pantheon: pathlib.Path, directory: pathlib.Path) -> dict:
    analysis, config = pantheon / "src" / "analysis", pantheon / "src" / "config.yml"
    before = config.read_bytes()
    config.write_bytes((directory / "config.yml").read_bytes())
    try:
        call(*python2, str(analysis / "plot.py"), "--data-dir", str(directory))
        table = call(*python2, "-c", TABLE, str(analysis), str(directory)).stdout
    finally:
        config.write_bytes(before)
    rows = [line.removesuffix(" \\\\").split(" & ") for line in table.splitlines() if line.endswith(" \\\\")]
    return {
        "perf": json.loads((directory / "pantheon_perf.json").read_text()),
        "statistics": statistics(directory),
        "table": rows[2:],
        "figures": sorted(file.name for file in directory.glob("pantheon_summary*")),
    }


def read_by_mahimahi(scripts: pathlib.Path, directory: pathlib.Path) -> dict:
    log = str(directory / "cubic_mm_datalink_run1.log")
    throughput = call(str(scripts / "mm-throughput-graph"), "500", log)
    delay = call(str(scripts / "mm-delay-graph"), log)
    return {
        "events_sha256": hashlib.sha256("\n".join(link_log(directory)).encode()).hexdigest(),
        "mm-throughput-graph 500": throughput.stderr.splitlines(),
        "mm-delay-graph": delay.stderr.splitlines(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pantheon", type=pathlib.Path, required=True)
    parser.add_argument("--python2", required=True)
    parser.add_argument("--mahimahi", type=pathlib.Path, required=True)
    parser.add_argument("--commit", default="23e738c", help="of Pantheon")
    parser.add_argument("--scripts", default="ravinet/mahimahi @ae477d4, scripts", help="which mahimahi's are")
    given = parser.parse_args()
    python2 = shlex.split(given.python2)
    made = {
        "date_utc": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "pantheon": f"StanfordSNR/pantheon @{given.commit}, src/analysis/plot.py and report.py, unchanged",
        "python2": call(
            *python2, "-c", "import sys, numpy; print sys.version.split()[0], 'numpy', numpy.__version__"
        ).stdout.strip(),
        "mahimahi": given.scripts,
        "gnuplot": machine.output_of("gnuplot", "--version"),
    }
    folder = machine.RECORDED / "pantheon"
    folder.mkdir(exist_ok=True)
    for name, case in CASES.items():
        with tempfile.TemporaryDirectory() as place:
            directory = pathlib.Path(place)
            results = case.run(directory)
            found = {"made": made, "trajectory_hash": results.trajectory_hash}
            if name == "trace":
                found["mahimahi"] = read_by_mahimahi(given.mahimahi, directory)
            # Last, since it writes the directory's files anew.
            found["pantheon"] = read_by_pantheon(python2, given.pantheon.resolve(), directory)
        (folder / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
