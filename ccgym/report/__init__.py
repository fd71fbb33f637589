"""Figures, tables and reports of an evaluation: one file per figure or table.

=====================  ========================================================================
``throughput_figure``  throughput over time of one run
``delay_figure``       per-packet delay of one run
``run_plot``           both in one figure: ``run.plot()``
``summary_figure``     throughput against delay, all runs or means
``table``              the table, for terminal, Markdown and CSV
``terminal``           tables that fit the screen
``run_figures``        the figures of all runs, drawn by several processes
``drawn``              what has been drawn already
``html_report``        ``pantheon_report.html``
``pdf_report``         ``pantheon_report.pdf``
``heat_map_figure``    the scores of a scorecard, path by scheme
``ranking_figure``     its rankings, with intervals
``scorecard_report``   its tables; ``scorecard_page``: ``scorecard.html``
``build``              all of it, in order
``style``              fonts, colors, sizes for screen and paper, saving
=====================  ========================================================================

This is the only part of ccgym that imports matplotlib.
"""
