"""Command-line programs: only argument parsing; other packages do the work.

May import ``training`` and the packages below it in ``ARCHITECTURE.md``.
"""
