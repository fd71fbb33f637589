//! The size of bursts sent back to back.

use ccgym_core::Rate;

/// A burst lasts about 1/1024 s at the pacing rate (`sk_pacing_shift` of 10).
const BURST_SHIFT: u32 = 10;
/// Rate below which packets leave one by one.
const SINGLE_PACKET_BELOW: Rate = Rate(1_200_000);
/// Max bytes in a burst: one 64 KiB segmentation-offload frame less Linux' room for headers.
const MAX_BURST_BYTES: u64 = 65_536 - 1 - 320;
/// Max packets in a burst.
const MAX_BURST_PACKETS: u64 = 127;
/// IPv4, TCP and timestamp headers: Linux counts a burst in payload, the window here in wire bytes.
const HEADER_BYTES: u64 = 52;

/// Return the packets that leave back to back at `rate`: about a millisecond's worth, at least two (one on slow links).
pub fn quantum_packets(rate: Rate, mss: u64) -> u64 {
    let payload = mss.saturating_sub(HEADER_BYTES).max(1);
    let bytes = ((rate.0 / 8) >> BURST_SHIFT).min(MAX_BURST_BYTES);
    let min = if rate < SINGLE_PACKET_BELOW { 1 } else { 2 };
    (bytes / payload).clamp(min, MAX_BURST_PACKETS)
}

/// Return `packets` plus room for bursts at sender, path and receiver: three quanta, rounded up to even (delayed
/// acknowledgements come in pairs), and two more while probing so that even a tiny pipe has more in flight.
#[inline]
pub const fn quantized(packets: u64, quantum: u64, probing_up: bool) -> u64 {
    let packets = (packets + 3 * quantum + 1) & !1;
    if probing_up {
        packets + 2
    } else {
        packets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantum() {
        for (mbps, packets) in [
            (0.5, 1),     // below 1.2 Mbit/s
            (1.2, 2),     // the floor
            (12.0, 2),    // 1464 B: one packet, floored
            (40.0, 3),    // 4882 B
            (77.72, 6),   // 9487 B
            (1000.0, 45), // one 64 KiB frame
            (100_000.0, 45),
        ] {
            assert_eq!(quantum_packets(Rate::from_mbps(mbps), 1500), packets, "{mbps} Mbit/s");
        }
        assert_eq!(quantum_packets(Rate::from_mbps(10_000.0), 300), 127, "small packets");
    }

    #[test]
    fn quantization_budget() {
        for (packets, quantum, probing, expected) in
            [(40, 2, false, 46), (41, 2, false, 48), (40, 1, false, 44), (40, 2, true, 48), (0, 1, false, 4)]
        {
            assert_eq!(quantized(packets, quantum, probing), expected, "{packets} {quantum} {probing}");
        }
    }
}
