//! The utility of an interval (`CalculateUtility` in `pcc_monitor_interval_queue.cpp`).

use crate::monitor_interval::step::even_hundredths;

/// Size of the program's megabit, bits.
pub const MEBIBIT: f64 = 1_048_576.0;
const EXPONENT: f64 = 0.9;
/// Weight of one byte of an interval whose RTTs grow.
const LATENCY_COEFFICIENT: f64 = 11_330.0;
/// Max share of lost packets with a weight of one.
const LIGHT_LOSS: f64 = 0.03;
const LIGHT_LOSS_WEIGHT: f64 = 1.0;

/// Factors of the two penalties.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Weights {
    pub latency: f64,
    pub loss: f64,
}

/// Measurements of an interval.
#[derive(Clone, Copy, Debug)]
pub struct Outcome {
    pub packets: u64,
    pub bytes: u64,
    /// Share of packets lost.
    pub loss: f64,
    /// Time from the first packet to the last, seconds.
    pub seconds: f64,
    /// Sums of the RTTs of the first and second half of the acknowledgements.
    pub rtt_halves: (f64, f64),
}

/// Return the throughput to the power of 0.9, less penalties for loss and for RTTs that grow within the interval. The
/// latter counts bytes where the former counts packets, so any growth of 2 % and more outweighs all else.
pub fn utility(w: &Weights, o: &Outcome) -> f64 {
    let rate = o.bytes as f64 * 8.0 / o.seconds.max(1e-6) / MEBIBIT;
    let (first, second) = o.rtt_halves;
    let growth = if first + second > 0.0 { 2.0 * (second - first) / (first + second) } else { 0.0 };
    let latency = w.latency * LATENCY_COEFFICIENT * o.bytes as f64 * even_hundredths(growth);
    let packets = o.packets.max(1) as f64;
    let weight = if o.loss <= LIGHT_LOSS { LIGHT_LOSS_WEIGHT.min(w.loss) } else { w.loss };
    rate.powf(EXPONENT) - (packets * weight * o.loss + latency) * rate / packets
}
