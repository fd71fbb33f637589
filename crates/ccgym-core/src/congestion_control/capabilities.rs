//! Requirements of a CCA on its host.

use crate::packet::Ecn;

/// Requirements of a CCA on its host: data, calls and services.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Capabilities {
    /// Fill [`super::AckEvent::rate_sample`] (costs time).
    pub rate_samples: bool,
    /// Fill [`super::AckEvent::acked`] and call [`super::CongestionControl::on_packet_sent`] (costs time).
    pub packet_events: bool,
    /// Ask [`super::CongestionControl::next_timer`] after each event.
    pub timers: bool,
    /// During fast recovery the transport limits sending by Proportional Rate Reduction (RFC 9937) toward the window
    /// the CCA chose at the loss. Schemes with their own recovery rule (BBR) set `false`.
    pub prr: bool,
    /// The scheme does not work without pacing; a host that cannot pace rejects it.
    pub pacing_required: bool,
    /// Give [`super::InitContext::path`]: only for `oracle` and experts.
    pub knows_path: bool,
    /// ECN codepoint of its data packets: ECT(1) for a scheme that reacts to marks as L4S requires (RFC 9331).
    pub ecn: Ecn,
    /// Its window or its rate has a bound of its own, on any path. Other schemes grow until they fill the path, and
    /// need one that can be filled.
    pub bounded: bool,
    /// If the window has room for less than a full packet, a shorter one is sent, or a full one at the application's
    /// end or for a retransmission.
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
