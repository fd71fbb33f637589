//! Ground truth about the path, which no endpoint can measure: for rewards, experts and critics, never for a policy.

/// Ground truth over one interval of one flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GroundTruth {
    /// Mean rate of the bottleneck over the interval, bit/s.
    pub link_rate: f64,
    /// RTT without queueing, seconds.
    pub base_rtt: f64,
    /// Packets queued at the bottleneck at the end of the interval.
    pub backlog: f64,
    /// Packets that the queue holds; infinite without a limit.
    pub queue_limit: f64,
    /// Probability that the path loses a packet outside the queue, 0–1.
    pub loss: f64,
    /// Flows active at the bottleneck.
    pub flows: u32,
    /// This flow's fair share of the bottleneck, bit/s.
    pub fair_share: f64,
    /// Standard deviation over mean of the rates at which the active flows, this one included, were served in the
    /// interval; 0 for a flow alone, at most √(flows − 1). NaN if other flows' rates are unknown.
    pub rate_spread: f64,
}

impl Default for GroundTruth {
    fn default() -> Self {
        Self {
            link_rate: 0.0,
            base_rtt: 0.0,
            backlog: 0.0,
            queue_limit: f64::INFINITY,
            loss: 0.0,
            flows: 1,
            fair_share: 0.0,
            rate_spread: 0.0,
        }
    }
}
