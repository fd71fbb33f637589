//! What the flow is doing, and what its acknowledgements mean.

/// The states of the draft's diagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Doubling the rate until the pipe is full.
    Startup,
    /// Emptying the queue that start-up built.
    Drain,
    /// Emptying the queue that a probe built, down to the headroom.
    ProbeDown,
    /// Sending at the bandwidth, with headroom left for others.
    ProbeCruise,
    /// Filling the pipe for a round, so that the probe to come starts from a full one.
    ProbeRefill,
    /// Sending faster to find more bandwidth.
    ProbeUp,
    /// Emptying the pipe to see the propagation delay.
    ProbeRtt,
}

impl State {
    /// What the draft calls it.
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

    /// Whether `next` may follow: the draft's diagram, and the returns after losses that proved wrong.
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

    /// Whether it is one of the four of PROBE_BW.
    pub const fn in_probe_bw(self) -> bool {
        matches!(self, Self::ProbeDown | Self::ProbeCruise | Self::ProbeRefill | Self::ProbeUp)
    }

    /// Whether losses are taken for the answer to a probe.
    pub const fn probing(self) -> bool {
        matches!(self, Self::Startup | Self::ProbeRefill | Self::ProbeUp)
    }
}

/// What arriving acknowledgements tell about the probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckPhase {
    /// Nothing.
    Idle,
    /// The pipe is being filled.
    Refilling,
    /// The probe has begun, but they are still for what was sent before it.
    Starting,
    /// They answer the probe.
    Feedback,
    /// The probe is over, but they still answer it.
    Stopping,
}
