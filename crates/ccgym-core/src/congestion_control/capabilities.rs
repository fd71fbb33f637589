//! What a CCA needs from its host.

use crate::packet::Ecn;

/// What a CCA needs from its host, and what the host should do for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// Fill [`super::AckEvent::rate_sample`] (costs time).
    pub rate_samples: bool,
    /// Fill [`super::AckEvent::acked`] and call [`super::CongestionControl::on_packet_sent`] (costs time).
    pub packet_events: bool,
    /// Ask [`super::CongestionControl::next_timer`] after each event.
    pub timers: bool,
    /// During fast recovery the transport meters sending by Proportional Rate Reduction (RFC 9937) toward the
    /// window the CCA chose at the loss. Schemes with their own recovery rule (BBR) say `false`.
    pub prr: bool,
    /// The scheme is meaningless without pacing; a host that cannot pace refuses it.
    pub pacing_required: bool,
    /// Give [`super::InitContext::path`]: only for `oracle` and experts.
    pub knows_path: bool,
    /// The ECN codepoint of its data packets: ECT(0), or ECT(1) for a scheme that reacts to marks as L4S asks (RFC 9331).
    pub ecn: Ecn,
    /// Its window or its rate has a bound of its own, whatever the path. Others grow until they fill the path, and need
    /// one that can be filled.
    pub bounded: bool,
    /// What a window leaves for less than a full packet goes in a shorter one, or in a full one where the application ends
    /// or what was lost is sent again.
    pub short_packets: bool,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            rate_samples: false,
            packet_events: false,
            timers: false,
            prr: true,
            pacing_required: false,
            knows_path: false,
            ecn: Ecn::NotEct,
            bounded: false,
            short_packets: false,
        }
    }
}
