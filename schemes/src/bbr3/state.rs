//! States of the flow, and phases of its acknowledgements.

/// The states of the draft's diagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Doubling the rate until the pipe is full.
    Startup,
    /// Emptying the queue that start-up built.
    Drain,
    /// Emptying the queue of a probe, down to the headroom.
    ProbeDown,
    /// Sending at the bandwidth, with headroom left for others.
    ProbeCruise,
    /// Filling the pipe for a round, so that the next probe starts from a full one.
    ProbeRefill,
    /// Sending faster to find more bandwidth.
    ProbeUp,
    /// Emptying the pipe to measure the propagation delay.
    ProbeRtt,
}

impl State {
    /// Return the name in the draft.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Startup => "Startup",
            Self::Drain => "Drain",
            Self::ProbeDown => "ProbeBW_DOWN",
            Self::ProbeCruise => "ProbeBW_CRUISE",
            Self::ProbeRefill => "ProbeBW_REFILL",
            Self::ProbeUp => "ProbeBW_UP",
            Self::ProbeRtt => "ProbeRTT",
        }
    }

    /// True if `next` may follow: the draft's diagram, and the returns after spurious losses.
    pub const fn may_become(self, next: Self) -> bool {
        match next {
            Self::Startup => !matches!(self, Self::Startup),
            Self::Drain => matches!(self, Self::Startup),
            Self::ProbeDown => matches!(self, Self::Drain | Self::ProbeUp | Self::ProbeRtt),
            Self::ProbeCruise => matches!(self, Self::ProbeDown),
            Self::ProbeRefill => matches!(self, Self::ProbeDown | Self::ProbeCruise | Self::ProbeRefill),
            Self::ProbeUp => matches!(self, Self::ProbeRefill),
            Self::ProbeRtt => !matches!(self, Self::ProbeRtt),
        }
    }

    /// True in the four states of PROBE_BW.
    pub const fn in_probe_bw(self) -> bool {
        matches!(self, Self::ProbeDown | Self::ProbeCruise | Self::ProbeRefill | Self::ProbeUp)
    }

    /// True if losses count as the result of a probe.
    pub const fn probing(self) -> bool {
        matches!(self, Self::Startup | Self::ProbeRefill | Self::ProbeUp)
    }
}

/// Relation of arriving acknowledgements to the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckPhase {
    /// No probe.
    Idle,
    /// The pipe is being filled.
    Refilling,
    /// The probe has begun, but the packets acknowledged were sent before it.
    Starting,
    /// They are for packets of the probe.
    Feedback,
    /// The probe is over, but they are still for its packets.
    Stopping,
}
