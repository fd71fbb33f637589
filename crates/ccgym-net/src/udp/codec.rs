//! Encode and decode datagrams: `proto/datagram.proto`, with checks of value ranges.
//!
//! `fast` encodes and decodes the two frequent kinds.

use ccgym_core::packet::AckRange;
use ccgym_core::sender::HANDSHAKE;
use ccgym_core::{feedback::MAX_MESSAGE, Ack, Feedback, Packet, Timestamp};
use prost::Message as _;

use super::datagram::{self, datagram::Kind, Datagram};
use super::fast::{self, Plain};
use crate::error::{Error, Result};

/// Version of the protocol.
pub const VERSION: u32 = 4;

/// Max bytes of a scheme's name in a Hello.
const MAX_SCHEME: usize = 64;
/// Max bytes of a scheme's parameters in a Hello.
const MAX_PARAMETERS: usize = 1024;

/// Limit of packet numbers, exclusive.
pub const NUMBERS: u64 = 1 << 62;

/// 128 random bits that identify a flow in each of its datagrams.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token(pub u128);

impl Token {
    /// Draw a new token from the kernel's random source.
    pub fn random() -> Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| Error::of("system-call-failed", "drawing the token of a flow", error))?;
        Ok(Self(u128::from_ne_bytes(bytes)))
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(secret)")
    }
}

/// Reason to refuse a datagram.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Not protobuf of this schema, or without a kind.
    Malformed,
    /// A value out of its range.
    Range,
}

/// A decoded datagram.
#[derive(Clone, PartialEq, Debug)]
pub enum Message {
    /// Request of a sender to serve a flow.
    Hello(Box<datagram::Hello>),
    /// Answer to a Hello; a refusal gives its reason.
    HelloAck(Box<datagram::HelloAck>),
    /// One packet, the transport's handshake included. The caller sets flow and ECN bits.
    Data(Packet),
    /// An acknowledgement. The caller sets the flow.
    Ack(Ack),
    /// Feedback of the scheme's receiver side. The caller sets the flow.
    Feedback(Box<Feedback>),
    /// End of the flow.
    Close(datagram::Close),
}

/// Decode a datagram that came with `overhead` bytes of IP and UDP headers: the flow's token and the message.
///
/// # Errors
/// A malformed datagram; a value out of range.
#[inline]
pub fn decode(bytes: &[u8], overhead: u32) -> Result<(Token, Message), Refusal> {
    let whole = (bytes.len() as u32).saturating_add(overhead);
    match fast::read(bytes) {
        Some((token, plain)) => Ok((token, message(&plain, whole)?)),
        None => decode_generated(bytes, whole),
    }
}

#[cold]
fn decode_generated(bytes: &[u8], whole: u32) -> Result<(Token, Message), Refusal> {
    let read = Datagram::decode_length_delimited(bytes).map_err(|_| Refusal::Malformed)?;
    let token = Token((u128::from(read.token_high) << 64) | u128::from(read.token_low));
    let message = match read.kind.ok_or(Refusal::Malformed)? {
        Kind::Data(data) => {
            let datagram::Data { number, segment, sent_ns, unsettled_below, retransmission, size, header } = data;
            let [again, size, header] = [retransmission.into(), size.into(), header.into()];
            let fields = [0, number, segment, sent_ns, unsettled_below, again, size, header];
            message(&Plain { fields, ..Plain::default() }, whole)?
        }
        Kind::Ack(ack) => {
            let (delay, marks) = (ack.delay_ns.into(), ack.ce_total.into());
            let fields = [0, ack.largest, ack.trigger_below, ack.received_ns, 0, delay, marks, 0];
            let mut plain = Plain { is_ack: true, fields, range_values: ack.ranges.len(), ..Plain::default() };
            plain.ranges.get_mut(..ack.ranges.len()).ok_or(Refusal::Range)?.copy_from_slice(&ack.ranges);
            message(&plain, whole)?
        }
        Kind::Feedback(read) => Message::Feedback(Box::new(feedback(*read, whole)?)),
        Kind::Connect(datagram::Connect { sent_ns }) => {
            Message::Data(Packet { number: HANDSHAKE, sent: Timestamp(sent_ns), size: whole, ..Packet::default() })
        }
        Kind::ConnectAck(datagram::ConnectAck { received_ns }) => {
            let trigger = Packet { number: HANDSHAKE, ..Packet::default() };
            Message::Ack(Ack::new(HANDSHAKE, &trigger, Timestamp(received_ns), whole))
        }
        Kind::Hello(hello) => {
            let fits = hello.ack_every > 0
                && hello.header_bytes <= hello.packet_bytes
                && (1..=65_535).contains(&hello.packet_bytes)
                && hello.ack_bytes <= 1500
                && hello.scheme.len() <= MAX_SCHEME
                && hello.parameters.len() <= MAX_PARAMETERS;
            Message::Hello(fits.then_some(hello).ok_or(Refusal::Range)?)
        }
        Kind::HelloAck(answer) => Message::HelloAck(answer),
        Kind::Close(close) => Message::Close(close),
    };
    Ok((token, message))
}

/// Return the packet or acknowledgement of a datagram of `whole` wire bytes.
#[inline]
fn message(plain: &Plain, whole: u32) -> Result<Message, Refusal> {
    if plain.is_ack {
        let [_, largest, below, received, _, delay, marks, _] = plain.fields;
        if plain.range_values % 2 != 0 || plain.range_values == 0 || largest >= NUMBERS || below > largest {
            return Err(Refusal::Range);
        }
        let trigger = Packet { number: largest - below, ..Packet::default() };
        let mut ack = Ack::new(largest, &trigger, Timestamp(received), whole);
        for pair in plain.ranges[..plain.range_values].chunks_exact(2) {
            let (first, last) = (u64::from(pair[0]), u64::from(pair[1]));
            if first > largest || last > first {
                return Err(Refusal::Range);
            }
            ack.push_range(AckRange { first: largest - first, last: largest - last });
        }
        (ack.delay_ns, ack.ce_total) = (delay as u32, marks as u32);
        return Ok(Message::Ack(ack));
    }
    let [_, number, segment, sent, unsettled_below, again, size, header] = plain.fields;
    let (size, header) = (size as u32, header as u32);
    if number >= NUMBERS || segment > number || unsettled_below > number || size > whole {
        return Err(Refusal::Range);
    }
    let (sent, least_unsettled) = (Timestamp(sent), number - unsettled_below);
    let (size, retransmission) = (if size == 0 { whole } else { size }, again != 0);
    Ok(Message::Data(Packet {
        number,
        segment,
        sent,
        least_unsettled,
        retransmission,
        size,
        header,
        ..Packet::default()
    }))
}

fn feedback(read: datagram::Feedback, whole: u32) -> Result<Feedback, Refusal> {
    let mut feedback =
        Feedback { sent: Timestamp(read.sent_ns), ce_total: read.ce_total, size: whole, ..Feedback::default() };
    let fits = read.ranges.len() % 2 == 0
        && read.arrivals.len() % 2 == 0
        && read.ranges.chunks_exact(2).all(|pair| feedback.push_range(pair[0], pair[1]))
        && read.arrivals.chunks_exact(2).all(|pair| feedback.push_arrival(pair[0], pair[1]))
        && read.message.len() <= MAX_MESSAGE;
    feedback.message = read.message;
    fits.then_some(feedback).ok_or(Refusal::Range)
}

/// Append a datagram of `kind`, and zeros up to a length of `target` bytes.
pub fn encode(out: &mut Vec<u8>, token: Token, kind: Kind, target: usize) {
    let end = out.len() + target;
    let datagram = Datagram { token_high: (token.0 >> 64) as u64, token_low: token.0 as u64, kind: Some(kind) };
    // Writing to a vector cannot fail.
    let _ = datagram.encode_length_delimited(out);
    out.resize(out.len().max(end), 0);
}

/// Append the datagram of a packet: its wire bytes less `overhead`, or longer if its fields need more.
#[inline]
pub fn encode_packet(out: &mut Vec<u8>, token: Token, packet: &Packet, overhead: u32) {
    let (start, target) = (out.len(), packet.size.saturating_sub(overhead) as usize);
    if packet.number == HANDSHAKE {
        return encode(out, token, Kind::Connect(datagram::Connect { sent_ns: packet.sent.0 }), target);
    }
    let below = packet.number - packet.least_unsettled.min(packet.number);
    let again = u64::from(packet.retransmission);
    let fields = [0, packet.number, packet.segment, packet.sent.0, below, again, 0, packet.header.into()];
    let mut plain = Plain { fields, ..Plain::default() };
    fast::write(out, token, &plain);
    if out.len() - start > target {
        out.truncate(start);
        plain.fields[6] = packet.size.into();
        fast::write(out, token, &plain);
    }
    out.resize(out.len().max(start + target), 0);
}

/// Append the datagram of an acknowledgement, padded to its wire bytes less `overhead` if its fields leave room.
#[inline]
pub fn encode_ack(out: &mut Vec<u8>, token: Token, ack: &Ack, overhead: u32) {
    let (start, target) = (out.len(), ack.size.saturating_sub(overhead) as usize);
    if ack.trigger == HANDSHAKE {
        return encode(out, token, Kind::ConnectAck(datagram::ConnectAck { received_ns: ack.received.0 }), target);
    }
    let below = ack.largest - ack.trigger.min(ack.largest);
    let fields = [0, ack.largest, below, ack.received.0, 0, ack.delay_ns.into(), ack.ce_total.into(), 0];
    let mut plain = Plain { is_ack: true, fields, range_values: 2 * ack.range_count(), ..Plain::default() };
    for (i, pair) in plain.ranges.chunks_exact_mut(2).take(ack.range_count()).enumerate() {
        let range = ack.range(i);
        (pair[0], pair[1]) = ((ack.largest - range.first) as u32, (ack.largest - range.last) as u32);
    }
    fast::write(out, token, &plain);
    out.resize(out.len().max(start + target), 0);
}

/// Append the datagram of a feedback, padded to its wire bytes less `overhead` if its fields leave room.
pub fn encode_feedback(out: &mut Vec<u8>, token: Token, feedback: &Feedback, overhead: u32) {
    let message = datagram::Feedback {
        sent_ns: feedback.sent.0,
        ranges: feedback.range_values().collect(),
        arrivals: feedback.arrival_values().collect(),
        ce_total: feedback.ce_total,
        message: feedback.message.clone(),
    };
    encode(out, token, Kind::Feedback(Box::new(message)), feedback.size.saturating_sub(overhead) as usize);
}

#[cfg(test)]
mod tests;
