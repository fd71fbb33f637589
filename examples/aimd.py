"""AIMD in Python, an example scheme: ``ccgym evaluate --trace 77.72mbps --schemes cubic,examples/aimd.py:AIMD``.

Additive increase, multiplicative decrease: the window grows by one packet per round trip and shrinks at a loss.
"""

from ccgym.schemes.events import Ack, Loss, Start, Timeout


class AIMD:
    """Slow start, then one more packet per round trip; after a loss, the window is multiplied by ``beta``."""

    def __init__(self, increase: float = 1.0, beta: float = 0.5) -> None:
        self.increase, self.beta = increase, beta
        self.cwnd = 10.0  # packets
        self.ssthresh = float("inf")

    def on_start(self, start: Start) -> None:
        self.cwnd = start.initial_window

    def on_ack(self, ack: Ack) -> None:
        if ack.in_recovery or not ack.cwnd_limited:
            return  # no growth during retransmissions or for an idle application
        slow_start = self.cwnd < self.ssthresh
        self.cwnd += ack.acked_packets if slow_start else self.increase * ack.acked_packets / self.cwnd

    def on_loss(self, loss: Loss) -> None:
        if loss.entered_recovery:  # once per round trip, for any number of lost packets
            self.ssthresh = self.cwnd = max(self.cwnd * self.beta, 2.0)

    def on_timeout(self, timeout: Timeout) -> None:
        if timeout.count == 1:
            self.ssthresh = max(self.cwnd * self.beta, 2.0)
        self.cwnd = 1.0
