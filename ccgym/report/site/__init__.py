"""``ccgym report site``: results of experiments as a static site that needs no network, and a database behind it.

============  ==========================================================================================
``results``   reads results: of experiments, and those that have a report of their own
``shapes``    what documents must have to be shown
``pages``     writes the pages: overview with scoreboard and search, one page per experiment and scheme
``database``  the same numbers as Parquet, with a SQLite registry over them
============  ==========================================================================================

An experiment's page has ccperf's order: text, parameters, command, flows, metrics with the best in bold, figures,
comparison of schemes. Its numbers of a condition are in a script of their own (``data/``), which it loads when that
condition is chosen: a page opened from a disk may load scripts, but no other files.
"""

from ccgym.report.site.database import write_database
from ccgym.report.site.pages import write_site
from ccgym.report.site.results import StoredExperiments, StoredReport, find_results, load_results

__all__ = ["StoredExperiments", "StoredReport", "find_results", "load_results", "write_database", "write_site"]
