"""Command-line programs: argument parsing only; the work is done by the packages they call.

May import ``training`` and what stands below it in ``ARCHITECTURE.md``.
"""
