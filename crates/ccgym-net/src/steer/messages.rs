//! Messages of `proto/control.proto` and their framing in a stream.

use ccgym_run::episode;
use prost::Message;

use crate::error::{Error, Result};

#[rustfmt::skip]
#[allow(clippy::pedantic, clippy::derive_partial_eq_without_eq)]
#[allow(missing_docs)]
mod control {
    include!("control_pb.rs");
}

pub use control::{from_sender, to_sender, Action, Ended, FromSender, Hello, Interval, Stop, Summary, ToSender};

/// Version of the protocol.
pub const VERSION: u32 = 1;

/// Max bytes of a message; longer ones are errors.
const MAX_MESSAGE: usize = 1 << 20;

/// Append a message with a length prefix.
pub fn frame(message: &impl Message, out: &mut Vec<u8>) {
    // Writing to a vector cannot fail.
    let _ = message.encode_length_delimited(out);
}

/// Splits the bytes of a stream into messages.
#[derive(Debug, Default)]
pub struct Unframer {
    bytes: Vec<u8>,
    /// Offset of the next message.
    at: usize,
}

impl Unframer {
    /// Append received bytes.
    pub fn extend(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.at);
        self.at = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// Return the next message, if it is complete.
    pub fn message<M: Message + Default>(&mut self) -> Result<Option<M>> {
        let rest = &self.bytes[self.at..];
        let Some((length, prefix)) = length(rest)? else { return Ok(None) };
        let Some(body) = rest.get(prefix..prefix + length) else { return Ok(None) };
        let message = M::decode(body).map_err(unreadable)?;
        self.at += prefix + length;
        Ok(Some(message))
    }
}

/// Return the length of the message at the start of `bytes` and of its prefix; `None` if the prefix is incomplete.
fn length(bytes: &[u8]) -> Result<Option<(usize, usize)>> {
    let Some(last) = bytes.iter().position(|&byte| byte < 0x80).filter(|&last| last < 4) else {
        return if bytes.len() < 4 { Ok(None) } else { Err(too_long()) };
    };
    match prost::decode_length_delimiter(&bytes[..=last]).map_err(unreadable)? {
        length @ 0..=MAX_MESSAGE => Ok(Some((length, last + 1))),
        _ => Err(too_long()),
    }
}

fn too_long() -> Error {
    unreadable("a longer message").expected(format!("max {MAX_MESSAGE} bytes"))
}

fn unreadable(found: impl std::fmt::Display) -> Error {
    Error::of("protocol-error", "reading from the environment", found)
        .hint("is it the same version of ccgym at both ends?")
}

impl From<episode::Summary> for Summary {
    fn from(summary: episode::Summary) -> Self {
        Self {
            steps: summary.steps,
            duration_s: summary.duration_s,
            throughput_mbps: summary.throughput_mbps,
            delay_mean_ms: summary.delay_mean_ms,
            delay_p95_ms: summary.delay_p95_ms,
            rtt_p95_ms: summary.rtt_p95_ms,
            loss: summary.loss,
            sent_packets: summary.sent_packets,
            utilization: summary.utilization,
            fair_share_ratio: summary.fair_share_ratio,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn action(sequence: u64) -> ToSender {
        ToSender { body: Some(to_sender::Body::Action(Action { sequence, time_ns: 7, values: vec![0.5; 40] })) }
    }

    #[test]
    fn messages_come_out_as_they_went_in_however_they_are_cut() {
        let mut stream = Vec::new();
        for sequence in [0, 300, u64::MAX] {
            frame(&action(sequence), &mut stream);
        }
        for cut in [1, 2, 3, 7, 1000] {
            let (mut unframer, mut found) = (Unframer::default(), Vec::new());
            for bytes in stream.chunks(cut) {
                unframer.extend(bytes);
                while let Some(message) = unframer.message::<ToSender>().unwrap() {
                    found.push(message);
                }
            }
            assert_eq!(found, [action(0), action(300), action(u64::MAX)], "pieces of {cut}");
        }
    }

    #[test]
    fn a_summary_is_told_whole() {
        let summary = episode::Summary { fair_share_ratio: Some(0.5), utilization: Some(0.25), ..Default::default() };
        let told = Summary::from(summary);
        assert_eq!((told.utilization, told.fair_share_ratio), (Some(0.25), Some(0.5)));
    }

    #[test]
    fn what_is_no_message_is_refused() {
        for bytes in [&[0xff, 0xff, 0xff, 0xff, 0x0f][..], &[0xff, 0xff, 0x7f], &[0x03, 0x0a, 0x7f, 0x00]] {
            let mut unframer = Unframer::default();
            unframer.extend(bytes);
            let error = unframer.message::<ToSender>().unwrap_err();
            assert_eq!(error.code, "protocol-error", "{error}");
        }
        let mut unframer = Unframer::default();
        unframer.extend(&[0x80]);
        assert_eq!(unframer.message::<ToSender>().unwrap(), None);
    }
}
