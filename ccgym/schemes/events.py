"""What the methods of a scheme in Python are given, for type checkers; ``docs/guides/write-a-cca.md`` explains it."""

from ccgym._core import Ack, Interval, Loss, Start, Timeout

__all__ = ["Ack", "Interval", "Loss", "Start", "Timeout"]
