"""Command-line programs: argument parsing only; the work is done by the packages they call."""
