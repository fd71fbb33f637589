"""Tables, figures and pages of results.

=======================  ===============================================================
``table``                one ``Table`` for terminal, Markdown, CSV and pages
``differences_table``    which scheme is better, pair by pair
``evaluation_table``     the table of an evaluation
``ranking_table``        columns and rows of all rankings
``figures``              the figures, one per file, and their registry
``style``                fonts, colors and sizes for screen and paper; saving of figures
``layout``               titles, margins, legends and marks of schemes
``run_plot``             throughput and delay of one run in one figure: ``run.plot()``
``pantheon_words``       texts of Pantheon's report, in its words and order
``coordinates``          coordinates and metrics on axes
``page``                 the contents of a report as blocks; its HTML and Markdown
``pdf``                  a page as PDF: ``pantheon_report.pdf``
``cells``                parts of all heat maps
``operating_figures``    parts of all figures of operating points
``drawing_process``      a second process that draws figures
``run_figures``          figures of all runs, drawn by several processes
``figure_cache``         record of the figures that are up to date
``explore``              ``explore.html``, the interactive page of an evaluation
``evaluation_report``    the report of an evaluation
``scorecard_report``     the report on a scorecard
``experiment_report``    the report on experiments
``gap_report``           the report on a gap
``league_report``        the report on a league
``adversary_report``     the report on paths that an adversary found
``requirements_report``  the report on a document's requirements
``site``                 the static site of experiments, and its database
=======================  ===============================================================

Only this package and the pictures of environments import matplotlib.

May import ``experiments`` and the packages below it in ``ARCHITECTURE.md``.
"""
