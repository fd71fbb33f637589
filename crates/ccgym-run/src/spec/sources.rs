//! Applications of flows, as data.

use ccgym_core::units::{Rate, TimeSpan};
use ccgym_core::{schema, Error};
use ccgym_path::Param;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Profile, SizeSpec};

/// The application of a flow.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
#[schemars(rename = "Source")]
pub enum SourceSpec {
    /// Always has data: a bulk transfer without an end.
    #[default]
    Greedy,
    /// A transfer of a number of payload bytes, all there from the start.
    Bytes {
        /// Payload bytes.
        #[schemars(range(min = 1), extend("format" = "bytes"))]
        bytes: u64,
    },
    /// Alternates between always and never having data; exponentially distributed periods, starts on.
    OnOff {
        /// Mean on period.
        #[schemars(range(min = 1))]
        mean_on: TimeSpan,
        /// Mean off period.
        #[schemars(range(min = 1))]
        mean_off: TimeSpan,
    },
    /// An application that produces full segments at a rate: application-limited.
    Rate {
        /// Payload rate; in steps, times are since the beginning of the run.
        rate: Param<Rate>,
        /// Payload bytes after which it ends, in whole segments; absent: it does not.
        #[serde(default)]
        #[schemars(range(min = 1), extend("format" = "bytes"))]
        bytes: Option<u64>,
    },
    /// Full segments, or transfers with sizes, that arrive as a Poisson process, independent of earlier ones.
    Poisson {
        /// Mean payload rate.
        #[schemars(range(min = 1))]
        rate: Rate,
        /// Payload of a transfer; absent: each is a full segment. Needs a reliable transport.
        #[serde(default)]
        size: Option<SizeSpec>,
        /// Payload bytes after which it ends, in whole segments or transfers; absent: it does not.
        #[serde(default)]
        #[schemars(range(min = 1), extend("format" = "bytes"))]
        bytes: Option<u64>,
    },
    /// A server that answers requests one after the other, each when the response before it was acknowledged in full and
    /// the client has thought: request and response, or web pages over one connection.
    Requests(RequestsSpec),
    /// A live video encoder, which follows the scheme's target rate. Needs the profile `udp`.
    Media(MediaSpec),
}

impl SourceSpec {
    /// Check constraints that the schema does not express.
    pub(super) fn validate(&self, at: &dyn Fn(&str) -> String, profile: Profile) -> Result<(), Error> {
        schema::check(&at("source"), self)?;
        match self {
            SourceSpec::Poisson { size: Some(size), .. } => {
                size.validate(&at("source.size"))?;
                let reliable = profile != Profile::Udp;
                Error::ensure(reliable, &at("source.size"), "transfers over udp", "the profile tcp or ns3")
            }
            SourceSpec::Requests(requests) => requests.size.validate(&at("source.size")),
            SourceSpec::Rate { rate, .. } => {
                let positive = rate.steps().iter().any(|(_, rate)| *rate > Rate::ZERO);
                Error::ensure(positive, &at("source.rate"), 0, "a positive rate")
            }
            SourceSpec::Media(media) => media.validate(at, profile),
            _ => Ok(()),
        }
    }
}

/// Requests to a server, and the sizes of its responses.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestsSpec {
    /// Payload of a response; a size alone is always the same.
    pub size: SizeSpec,
    /// Mean time from the end of a response to the next request, exponentially distributed.
    #[serde(default)]
    pub think: TimeSpan,
    /// Number of responses; absent: until the flow stops.
    #[serde(default)]
    #[schemars(range(min = 1))]
    pub count: Option<u64>,
    /// Number of a group of flows that are asked at the same time, once all of them have answered (incast).
    #[serde(default)]
    pub group: Option<u32>,
}

/// A video encoder: frames of equal size but for key frames, at a rate that follows the scheme's. After the synthetic
/// encoder of RFC 8593 §5, without its randomness.
#[derive(Clone, Copy, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MediaSpec {
    /// Frames per second.
    #[schemars(range(min = 1.0, max = 240.0))]
    pub frame_rate: f64,
    /// Minimum payload rate of the encoder, at any target of the scheme.
    #[schemars(range(min = 1))]
    pub min_rate: Rate,
    /// Maximum payload rate of the encoder.
    pub max_rate: Rate,
    /// Minimum time between two changes of its rate: what the scheme says meanwhile waits.
    pub reaction: TimeSpan,
    /// Time between key frames; 0: there are none.
    pub key_interval: TimeSpan,
    /// Size of a key frame over that of the others; the mean rate stays.
    #[schemars(range(min = 1.0, max = 100.0))]
    pub key_factor: f64,
    /// While a frame waits in the sender for longer than this, further ones are skipped.
    #[schemars(range(min = 1))]
    pub max_wait: TimeSpan,
    /// Start of a pause, from the start of the flow.
    pub pause: TimeSpan,
    /// End of the pause; not after `pause`: no pause.
    pub resume: TimeSpan,
}

impl Default for MediaSpec {
    /// Pantheon's video call: 30 frames per second, at most 2.5 Mbit/s. The reaction is that of RFC 8593 §5.2.
    fn default() -> Self {
        Self {
            frame_rate: 30.0,
            min_rate: Rate(50_000),
            max_rate: Rate(2_500_000),
            reaction: TimeSpan::from_millis(200),
            key_interval: TimeSpan::ZERO,
            key_factor: 4.0,
            max_wait: TimeSpan::from_millis(500),
            pause: TimeSpan::ZERO,
            resume: TimeSpan::ZERO,
        }
    }
}

impl MediaSpec {
    fn validate(&self, at: &dyn Fn(&str) -> String, profile: Profile) -> Result<(), Error> {
        let found = format!("{profile:?}").to_lowercase();
        Error::ensure(profile == Profile::Udp, &at("source"), format!("media over {found}"), "the profile udp")?;
        let ordered = self.min_rate <= self.max_rate && self.max_rate <= MAX_MEDIA_RATE;
        let found = format!("{} bit/s", self.max_rate.0);
        Error::ensure(ordered, &at("source.max_rate"), found, "from min_rate to 10 Gbit/s")
    }
}

/// More than uncompressed video of today's largest formats.
const MAX_MEDIA_RATE: Rate = Rate(10_000_000_000);
