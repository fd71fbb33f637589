"""Pantheon's own, unchanged programs: run on a directory, and what they say and draw."""

import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile

import machine

sys.path.insert(0, str(machine.RECORDED.parents[2]))

from tests.differential.pantheon_cases import statistics

TABLE = """
import sys
sys.path.insert(0, sys.argv[1])
sys.argv[1:] = ['--data-dir', sys.argv[2]]
import arg_parser, report
print report.Report(arg_parser.parse_report()).summary_table()
"""
"""Prints the table of report.py, which goes into LaTeX otherwise."""

RAW = re.compile(r"(.+_(?:datalink|acklink)_run\d+)_flow(\d+)_uid.+\.log\.ingress")


class Pantheon:
    """A clone of StanfordSNR/pantheon, and a Python 2.7 that has numpy 1.16, matplotlib 2.2 and PyYAML."""

    def __init__(self, clone: pathlib.Path, python2: str, commit: str) -> None:
        self.source = clone.resolve() / "src"
        self.python2 = shlex.split(python2)
        self.commit = commit

    def describe(self) -> dict[str, str]:
        versions = "import sys, numpy, matplotlib; print sys.version.split()[0], 'numpy', numpy.__version__,"
        return {
            "pantheon": f"StanfordSNR/pantheon @{self.commit}, src/analysis and src/experiments, unchanged",
            "python2": self.call("-c", f"{versions} 'matplotlib', matplotlib.__version__").stdout.strip(),
            "pdflatex": machine.output_of("pdflatex", "--version").splitlines()[0],
        }

    def call(self, *words: str, may_fail: bool = False) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
        done = subprocess.run([*self.python2, *words], capture_output=True, text=True, check=False, env=environment)
        if done.returncode and not may_fail:
            sys.exit(f"{shlex.join(words)} ended with {done.returncode}:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done

    def analysis(self, program: str, directory: pathlib.Path, *options: str) -> None:
        self.call(str(self.source / "analysis" / program), "--data-dir", str(directory), *options)

    def read(self, directory: pathlib.Path) -> dict:
        """What all programs of its analysis make of a directory, whose files they write again."""
        before = {file.name for file in directory.iterdir()}
        metadata = json.loads((directory / "pantheon_metadata.json").read_text())
        self.analysis("plot.py", directory, "--include-acklink")
        self.analysis("plot_over_time.py", directory)
        found = {
            "perf": json.loads((directory / "pantheon_perf.json").read_text()),
            "statistics": statistics(directory),
        }
        if metadata["flows"]:  # its report.py writes a table without columns for -f 0, which LaTeX refuses
            self.analysis("report.py", directory, "--include-acklink")
            table = self.call("-c", TABLE, str(self.source / "analysis"), str(directory)).stdout
            rows = [line.removesuffix(" \\\\").split(" & ") for line in table.splitlines() if line.endswith(" \\\\")]
            pages = machine.output_of("pdfinfo", str(directory / "pantheon_report.pdf"))
            found |= {"table": rows[2:], "report_pages": int(re.search(r"Pages: +(\d+)", pages)[1])}
        found["drawn"] = sorted({file.name for file in directory.iterdir()} - before)
        found["acknowledgements"] = {log.name: self.graph(log) for log in sorted(directory.glob("*_acklink_run*.log"))}
        return found

    def graph(self, log: pathlib.Path) -> list[str]:
        """What tunnel_graph.py says about a log."""
        return self.call(str(self.source / "analysis" / "tunnel_graph.py"), str(log)).stderr.splitlines()

    def merge(self, directory: pathlib.Path, out: pathlib.Path) -> dict[str, list[str]]:
        """Merge the raw logs of a directory as test.py does; the statistics that plot.py then writes."""
        flows: dict[str, dict[int, pathlib.Path]] = {}
        for file in directory.glob("*.ingress"):
            link, flow = RAW.fullmatch(file.name).groups()
            flows.setdefault(link, {})[int(flow)] = file
        merge = str(self.source / "experiments" / "merge_tunnel_logs.py")
        for link, ends in flows.items():
            singles = []
            for flow, ingress in sorted(ends.items()):
                singles.append(str(out / f"{link}_flow{flow}.merged"))
                self.call(
                    merge, "single", "-i", str(ingress), "-e", str(ingress.with_suffix(".egress")), "-o", singles[-1]
                )
            of_link = directory / f"{link.replace('_acklink', '_mm_acklink').replace('_datalink', '_mm_datalink')}.log"
            options = ["--link-log", str(of_link)] if of_link.exists() else []
            # It gives up on a flow of which nothing was logged; test.py goes on.
            self.call(merge, "multiple", "-o", str(out / f"{link}.log"), *options, *singles, may_fail=True)
        for file in (*directory.glob("*_stats_run*.log"), directory / "pantheon_metadata.json"):
            shutil.copy(file, out)
        self.analysis("plot.py", out, "--no-graphs")
        return dict(statistics(out))

    def whole(self, directory: pathlib.Path) -> dict:
        """Both: a directory read, and what its raw logs, merged, say otherwise."""
        with tempfile.TemporaryDirectory() as place:
            merged = self.merge(directory, pathlib.Path(place))
        found = self.read(directory)
        found["merged_otherwise"] = {name: said for name, said in merged.items() if said != found["statistics"][name]}
        return found
