//! Which flow a packet belongs to: flow i is received on port `FIRST_PORT` + i, of UDP or TCP.

use super::offload::Layout;

/// Port of the first flow's receiver.
pub const FIRST_PORT: u16 = 5001;
/// Flow of a packet that belongs to none.
pub const NO_FLOW: u32 = u32::MAX;

/// Tells the flows of one direction apart.
#[derive(Clone, Copy, Debug)]
pub struct FlowTable {
    flows: u32,
    /// Whether packets go to the receivers: their destination port counts then, else their source port.
    uplink: bool,
}

impl FlowTable {
    /// For this number of flows; for 0, all packets are of flow 0.
    #[must_use]
    pub const fn new(flows: u32, uplink: bool) -> Self {
        Self { flows, uplink }
    }

    /// Flow of a packet; [`NO_FLOW`] if it is none of ours.
    #[must_use]
    pub fn flow(&self, packet: &[u8], layout: &Layout) -> u32 {
        if self.flows == 0 {
            return 0;
        }
        let Some((source, destination)) = layout.ports(packet) else { return NO_FLOW };
        let port = if self.uplink { destination } else { source };
        match port.checked_sub(FIRST_PORT) {
            Some(flow) if u32::from(flow) < self.flows => u32::from(flow),
            _ => NO_FLOW,
        }
    }
}
