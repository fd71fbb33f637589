"""Types of the arguments of a scheme's methods in Python; see ``docs/guides/write-a-cca.md``."""

from ccgym._core import Ack, Interval, Loss, Start, Timeout

__all__ = ["Ack", "Interval", "Loss", "Start", "Timeout"]
