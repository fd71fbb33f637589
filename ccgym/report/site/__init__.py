"""``ccgym report site``: results of experiments as a static site without a server, and a database of its numbers.

============  ==========================================================================================
``results``   reads results: of experiments, and results with their own report
``shapes``    required keys and types of documents
``pages``     writes the pages: overview with scoreboard and search, one page per experiment and scheme
``database``  the same numbers as Parquet files, with a SQLite registry
============  ==========================================================================================

An experiment's page has ccperf's order: text, parameters, command, flows, metrics with the best in bold, figures,
comparison of schemes. The numbers of each condition are in a separate script (``data/``). The page loads this script
when the user selects the condition: a page opened from a disk may load scripts, but no other files.
"""

from ccgym.report.site.database import write_database
from ccgym.report.site.pages import write_site
from ccgym.report.site.results import StoredExperiments, StoredReport, find_results, load_results

__all__ = ["StoredExperiments", "StoredReport", "find_results", "load_results", "write_database", "write_site"]
