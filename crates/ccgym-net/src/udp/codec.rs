//! Datagrams to bytes and back, by hand for the kinds that every packet needs.
//!
//! The format is protobuf's as `proto/datagram.proto` describes it; [`super::datagram`] is the same in code that is
//! generated, and tests hold the two against each other. By hand it costs a fraction and allocates nothing: padding
//! is never looked at, and a foreign datagram is refused after its first bytes.

use ccgym_core::feedback::{MAX_ARRIVALS, MAX_FEEDBACK_RANGES, MAX_MESSAGE};
use ccgym_core::packet::{AckRange, MAX_ACK_RANGES};
use ccgym_core::sender::HANDSHAKE;
use ccgym_core::{Ack, Feedback, Packet, Timestamp};
use prost::Message as _;

use super::datagram;
pub use super::wire::Refusal;
use super::wire::{varint_length, Fields, Reader, Wire};
use crate::error::{NetError, Result};

/// Version of the protocol.
pub const VERSION: u32 = 3;

/// Max bytes of a scheme's name in a Hello …
pub(super) const MAX_SCHEME: usize = 64;
/// … and of its parameters.
pub(super) const MAX_PARAMETERS: usize = 1024;

/// Packet numbers lie below this.
pub const NUMBERS: u64 = 1 << 62;

/// 128 random bits that name a flow in each of its datagrams.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Token(pub [u8; 16]);

impl Token {
    /// A new one, from the kernel's random source.
    pub fn random() -> Result<Self> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes)
            .map_err(|error| NetError::new("drawing the token of a flow", error).coded("system-call-failed"))?;
        Ok(Self(bytes))
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(secret)")
    }
}

/// Numbers of the kinds on the wire.
pub(super) mod kind {
    pub const HELLO: u32 = 1;
    pub const HELLO_ACK: u32 = 2;
    pub const CONNECT: u32 = 3;
    pub const CONNECT_ACK: u32 = 4;
    pub const DATA: u32 = 5;
    pub const ACK: u32 = 6;
    pub const FEEDBACK: u32 = 8;
}

/// Number of the padding field in every kind that has one.
const PADDING: u32 = 15;

/// What a datagram says.
#[derive(Clone, PartialEq, Debug)]
pub enum Message {
    /// A flow asks to be served.
    Hello(Token, Box<datagram::Hello>),
    /// It is, or why not.
    HelloAck(Token, Box<datagram::HelloAck>),
    /// One packet, the transport's handshake included. Flow and ECN bits are for the caller to fill in.
    Data(Token, Packet),
    /// What arrived. The flow is for the caller to fill in.
    Ack(Token, Ack),
    /// What arrived, by the scheme's half at the receiver. The flow is for the caller to fill in.
    Feedback(Token, Box<Feedback>),
    /// The flow is over.
    Close(Token, datagram::Close),
}

/// Read a datagram that came with `overhead` bytes of IP and UDP headers.
///
/// # Errors
/// Why it is refused. What [`Refusal::Malformed`] says, every protobuf decoder says; the rest is stricter.
#[inline]
pub fn decode(bytes: &[u8], overhead: u32) -> Result<Message, Refusal> {
    let mut reader = Reader::new(bytes);
    if bytes.is_empty() {
        return Err(Refusal::Kinds);
    }
    let (number, wire) = reader.key()?;
    if !(kind::HELLO..=kind::FEEDBACK).contains(&number) {
        return Err(Refusal::Kinds);
    }
    if wire != Wire::Bytes {
        return Err(Refusal::Malformed);
    }
    let body = reader.bytes()?;
    if !reader.is_empty() {
        return Err(Refusal::Kinds);
    }
    let size = (bytes.len() as u32).saturating_add(overhead);
    match number {
        kind::DATA => decode_data(body, size),
        kind::ACK => decode_ack(body, size),
        kind::FEEDBACK => decode_feedback(body, size),
        _ => decode_rare(number, body, size),
    }
}

#[cold]
fn decode_rare(number: u32, body: &[u8], size: u32) -> Result<Message, Refusal> {
    fn whole<M: prost::Message + Default>(body: &[u8]) -> Result<M, Refusal> {
        M::decode(body).map_err(|_| Refusal::Malformed)
    }
    match number {
        kind::HELLO => {
            let hello: datagram::Hello = whole(body)?;
            let token = token_of(&hello.token)?;
            let fits = hello.ack_every > 0
                && hello.header_bytes <= hello.packet_bytes
                && (1..=65_535).contains(&hello.packet_bytes)
                && hello.ack_bytes <= 1500
                && hello.scheme.len() <= MAX_SCHEME
                && hello.parameters.len() <= MAX_PARAMETERS;
            if fits {
                Ok(Message::Hello(token, Box::new(hello)))
            } else {
                Err(Refusal::Range)
            }
        }
        kind::HELLO_ACK => {
            let answer: datagram::HelloAck = whole(body)?;
            Ok(Message::HelloAck(token_of(&answer.token)?, Box::new(answer)))
        }
        kind::CONNECT => {
            let connect: datagram::Connect = whole(body)?;
            let sent = Timestamp(connect.sent_ns);
            let packet = Packet { number: HANDSHAKE, sent, size, ..Packet::default() };
            Ok(Message::Data(token_of(&connect.token)?, packet))
        }
        kind::CONNECT_ACK => {
            let answer: datagram::ConnectAck = whole(body)?;
            let trigger = Packet { number: HANDSHAKE, ..Packet::default() };
            let ack = Ack::new(HANDSHAKE, &trigger, Timestamp(answer.received_ns), size);
            Ok(Message::Ack(token_of(&answer.token)?, ack))
        }
        _ => {
            let close: datagram::Close = whole(body)?;
            Ok(Message::Close(token_of(&close.token)?, close))
        }
    }
}

fn token_of(bytes: &[u8]) -> Result<Token, Refusal> {
    bytes.try_into().map(Token).map_err(|_| Refusal::Token)
}

#[inline]
fn decode_data(body: &[u8], whole: u32) -> Result<Message, Refusal> {
    let mut reader = Reader::new(body);
    let mut token: &[u8] = &[];
    let (mut unsettled_below, mut size) = (0, 0);
    let mut packet = Packet::default();
    while !reader.is_empty() {
        match reader.key()? {
            (1, Wire::Bytes) => token = reader.bytes()?,
            (2, Wire::Varint) => packet.number = reader.varint()?,
            (3, Wire::Varint) => packet.segment = reader.varint()?,
            (4, Wire::Fixed64) => packet.sent = Timestamp(reader.fixed64()?),
            (5, Wire::Varint) => unsettled_below = reader.varint()?,
            (7, Wire::Varint) => packet.retransmission = reader.varint()? != 0,
            (8, Wire::Varint) => size = reader.varint()? as u32,
            (9, Wire::Varint) => packet.header = reader.varint()? as u32,
            (PADDING, Wire::Bytes) => drop(reader.bytes()?),
            (1..=5 | 7..=9 | PADDING, _) => return Err(Refusal::Malformed),
            (_, wire) => reader.skip(wire)?,
        }
    }
    let token = token_of(token)?;
    if packet.number >= NUMBERS || packet.segment > packet.number || unsettled_below > packet.number || size > whole {
        return Err(Refusal::Range);
    }
    packet.least_unsettled = packet.number - unsettled_below;
    packet.size = if size == 0 { whole } else { size };
    Ok(Message::Data(token, packet))
}

/// By hand as the frequent kinds: nothing is allocated for what is then refused.
fn decode_feedback(body: &[u8], size: u32) -> Result<Message, Refusal> {
    let (mut token, mut message): (&[u8], &[u8]) = (&[], &[]);
    let mut feedback = Feedback { size, ..Feedback::default() };
    let (mut ranges, mut arrivals) =
        (Values::<{ 2 * MAX_FEEDBACK_RANGES }>::new(), Values::<{ 2 * MAX_ARRIVALS }>::new());
    let mut reader = Reader::new(body);
    while !reader.is_empty() {
        match reader.key()? {
            (1, Wire::Bytes) => token = reader.bytes()?,
            (2, Wire::Fixed64) => feedback.sent = Timestamp(reader.fixed64()?),
            (3, Wire::Bytes) => ranges.add_packed(reader.bytes()?)?,
            (3, Wire::Varint) => ranges.add(reader.varint()?),
            (4, Wire::Bytes) => arrivals.add_packed(reader.bytes()?)?,
            (4, Wire::Varint) => arrivals.add(reader.varint()?),
            (5, Wire::Varint) => feedback.ce_total = reader.varint()? as u32,
            (6, Wire::Bytes) => message = reader.bytes()?,
            (PADDING, Wire::Bytes) => drop(reader.bytes()?),
            (1..=6 | PADDING, _) => return Err(Refusal::Malformed),
            (_, wire) => reader.skip(wire)?,
        }
    }
    let token = token_of(token)?;
    let ranges = ranges.pairs().is_some_and(|mut pairs| pairs.all(|(last, length)| feedback.push_range(last, length)));
    let arrivals =
        ranges && arrivals.pairs().is_some_and(|mut pairs| pairs.all(|(number, at)| feedback.push_arrival(number, at)));
    if !arrivals || message.len() > MAX_MESSAGE {
        return Err(Refusal::Range);
    }
    feedback.message = message.to_vec();
    Ok(Message::Feedback(token, Box::new(feedback)))
}

/// At most `N` whole numbers of a field.
struct Values<const N: usize> {
    values: [u64; N],
    count: usize,
}

impl<const N: usize> Values<N> {
    const fn new() -> Self {
        Self { values: [0; N], count: 0 }
    }

    fn add(&mut self, value: u64) {
        if let Some(slot) = self.values.get_mut(self.count) {
            *slot = value;
        }
        self.count += 1;
    }

    fn add_packed(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let mut packed = Reader::new(bytes);
        while !packed.is_empty() {
            self.add(packed.varint()?);
        }
        Ok(())
    }

    /// The numbers two by two; `None` if there are too many, or one is left over.
    fn pairs(&self) -> Option<impl Iterator<Item = (u64, u64)> + '_> {
        let values = self.values.get(..self.count).filter(|values| values.len() % 2 == 0)?;
        Some(values.chunks(2).map(|pair| (pair[0], pair[1])))
    }
}

#[inline]
fn decode_ack(body: &[u8], whole: u32) -> Result<Message, Refusal> {
    let mut reader = Reader::new(body);
    let mut token: &[u8] = &[];
    let (mut largest, mut trigger_below, mut received) = (0, 0, Timestamp::ZERO);
    let (mut delay_ns, mut ce_total) = (0, 0);
    let mut ends = [0; 2 * MAX_ACK_RANGES];
    let mut count = 0;
    let mut add = |value: u64| {
        if let Some(slot) = ends.get_mut(count) {
            *slot = u64::from(value as u32);
        }
        count += 1;
    };
    while !reader.is_empty() {
        match reader.key()? {
            (1, Wire::Bytes) => token = reader.bytes()?,
            (2, Wire::Varint) => largest = reader.varint()?,
            (3, Wire::Varint) => trigger_below = reader.varint()?,
            (4, Wire::Fixed64) => received = Timestamp(reader.fixed64()?),
            (5, Wire::Bytes) => {
                let mut packed = Reader::new(reader.bytes()?);
                while !packed.is_empty() {
                    add(packed.varint()?);
                }
            }
            (5, Wire::Varint) => add(reader.varint()?),
            (6, Wire::Varint) => delay_ns = reader.varint()? as u32,
            (7, Wire::Varint) => ce_total = reader.varint()? as u32,
            (PADDING, Wire::Bytes) => drop(reader.bytes()?),
            (1..=7 | PADDING, _) => return Err(Refusal::Malformed),
            (_, wire) => reader.skip(wire)?,
        }
    }
    let token = token_of(token)?;
    let paired = count % 2 == 0 && (2..=2 * MAX_ACK_RANGES).contains(&count);
    if !paired || largest >= NUMBERS || trigger_below > largest {
        return Err(Refusal::Range);
    }
    let trigger = Packet { number: largest - trigger_below, ..Packet::default() };
    let mut ack = Ack::new(largest, &trigger, received, whole);
    for pair in ends[..count].chunks_exact(2) {
        if pair[0] > largest || pair[1] > pair[0] {
            return Err(Refusal::Range);
        }
        ack.push_range(AckRange { first: largest - pair[0], last: largest - pair[1] });
    }
    ack.delay_ns = delay_ns;
    ack.ce_total = ce_total;
    Ok(Message::Ack(token, ack))
}

/// Append the datagram of a packet: as long as its wire bytes less `overhead`, or as its fields need if that is more.
#[inline]
pub fn encode_packet(out: &mut Vec<u8>, token: Token, packet: &Packet, overhead: u32) {
    let target = packet.size.saturating_sub(overhead) as usize;
    let mut fields = Fields::new();
    fields.bytes(1, &token.0);
    if packet.number == HANDSHAKE {
        fields.fixed64(2, packet.sent.0);
        return frame(out, kind::CONNECT, fields.done(), target);
    }
    fields.varint(2, packet.number);
    fields.varint(3, packet.segment);
    fields.fixed64(4, packet.sent.0);
    fields.varint(5, packet.number - packet.least_unsettled.min(packet.number));
    fields.varint(7, u64::from(packet.retransmission));
    fields.varint(9, u64::from(packet.header));
    if natural(fields.done().len()) > target {
        fields.varint(8, u64::from(packet.size));
    }
    frame(out, kind::DATA, fields.done(), target);
}

/// Append the datagram of an acknowledgement, padded to its wire bytes less `overhead` if its fields leave room.
#[inline]
pub fn encode_ack(out: &mut Vec<u8>, token: Token, ack: &Ack, overhead: u32) {
    let target = ack.size.saturating_sub(overhead) as usize;
    let mut fields = Fields::new();
    fields.bytes(1, &token.0);
    if ack.trigger == HANDSHAKE {
        fields.fixed64(2, ack.received.0);
        return frame(out, kind::CONNECT_ACK, fields.done(), target);
    }
    fields.varint(2, ack.largest);
    fields.varint(3, ack.largest - ack.trigger.min(ack.largest));
    fields.fixed64(4, ack.received.0);
    fields.packed(
        5,
        (0..ack.range_count()).map(|i| ack.range(i)).flat_map(|r| [ack.largest - r.first, ack.largest - r.last]),
    );
    fields.varint(6, u64::from(ack.delay_ns));
    fields.varint(7, u64::from(ack.ce_total));
    frame(out, kind::ACK, fields.done(), target);
}

/// Append the datagram of a feedback, padded to its wire bytes less `overhead` if its fields leave room.
pub fn encode_feedback(out: &mut Vec<u8>, token: Token, feedback: &Feedback, overhead: u32) {
    let mut message = datagram::Feedback {
        token: token.0.to_vec(),
        sent_ns: feedback.sent.0,
        ranges: feedback.range_values().collect(),
        arrivals: feedback.arrival_values().collect(),
        ce_total: feedback.ce_total,
        message: feedback.message.clone(),
        padding: Vec::new(),
    };
    let target = feedback.size.saturating_sub(overhead) as usize;
    let filled = message.encoded_len();
    if natural(filled) < target {
        if let (_, Some((_, zeros))) = fill(filled, target) {
            message.padding = vec![0; zeros];
        }
    }
    encode_rare(out, datagram::datagram::Kind::Feedback(message));
}

/// Append one of the rare kinds.
pub fn encode_rare(out: &mut Vec<u8>, kind: datagram::datagram::Kind) {
    let whole = datagram::Datagram { kind: Some(kind) };
    out.reserve(whole.encoded_len());
    // A vector never runs out of room.
    let _ = whole.encode(out);
}

/// Length of a datagram whose kind has `fields` bytes.
const fn natural(fields: usize) -> usize {
    1 + varint_length(fields as u64) + fields
}

/// Append a datagram of `kind`: its fields, and zeros up to a length of `target` bytes.
#[inline]
fn frame(out: &mut Vec<u8>, kind: u32, fields: &[u8], target: usize) {
    let filled = fields.len();
    let (width, padding) =
        if natural(filled) < target { fill(filled, target) } else { (varint_length(filled as u64), None) };
    let mut head = Fields::new();
    head.key(kind, Wire::Bytes);
    head.raw_varint((filled + padding.map_or(0, |(inner, n)| 1 + inner + n)) as u64, width);
    out.extend_from_slice(head.done());
    out.extend_from_slice(fields);
    if let Some((inner, n)) = padding {
        let mut tail = Fields::new();
        tail.key(PADDING, Wire::Bytes);
        tail.raw_varint(n as u64, inner);
        out.extend_from_slice(tail.done());
        out.resize(out.len() + n, 0);
    }
}

/// How to come to `target` bytes with `filled` bytes of fields, which fit: in how many bytes the length is written;
/// and of the padding field, if one is needed, the same and its length. Lengths are no longer than they must be: but
/// a single byte left over is not a field, and makes the length a byte longer.
#[inline]
fn fill(filled: usize, target: usize) -> (usize, Option<(usize, usize)>) {
    let mut width = varint_length(filled as u64);
    loop {
        let body = target - 1 - width;
        let rest = body - filled;
        if varint_length(body as u64) > width || rest == 1 {
            width += 1;
            continue;
        }
        if rest == 0 {
            return (width, None);
        }
        let mut inner = 1;
        while varint_length((rest - 1 - inner) as u64) > inner {
            inner += 1;
        }
        return (width, Some((inner, rest - 1 - inner)));
    }
}

#[cfg(test)]
mod tests;
