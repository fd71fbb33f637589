//! Hand-written code for the two frequent datagrams: the same bytes as generated code, without its
//! allocations (`make bench BENCH=udp_loopback`). It reads only the form that it writes; generated code reads the rest.

use ccgym_core::packet::MAX_ACK_RANGES;

use super::codec::Token;

/// Keys of the envelope's fields: field number and wire type.
const TOKEN_HIGH: u8 = (1 << 3) | 1;
const TOKEN_LOW: u8 = (2 << 3) | 1;
const DATA: u8 = (7 << 3) | 2;
const ACK: u8 = (8 << 3) | 2;
/// Offset of the kind's key, after the total length and the token; then the kind's length and fields.
const KIND: usize = 19;
const FIELDS: usize = KIND + 2;
/// Max bytes of a datagram: an Ack has at most 111, so each length fits in one byte.
const ROOM: usize = 127;
/// Field number of the ranges in an Ack.
const RANGES: usize = 4;

/// The fields of a Data or an Ack by their number in `proto/datagram.proto`.
#[derive(Clone, Copy, Default)]
pub(super) struct Plain {
    pub is_ack: bool,
    pub fields: [u64; 8],
    /// Field 4 of an Ack; `range_values` of them are used.
    pub ranges: [u32; 2 * MAX_ACK_RANGES],
    pub range_values: usize,
}

struct Writer([u8; ROOM], usize);

impl Writer {
    #[inline]
    fn byte(&mut self, byte: u8) {
        self.0[self.1] = byte;
        self.1 += 1;
    }

    #[inline]
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }
}

/// Append the datagram, without padding.
#[inline]
pub(super) fn write(out: &mut Vec<u8>, token: Token, plain: &Plain) {
    let mut writer = Writer([0; ROOM], FIELDS);
    for (number, &value) in plain.fields.iter().enumerate().skip(1) {
        if plain.is_ack && number == RANGES && plain.range_values > 0 {
            writer.byte(((RANGES as u8) << 3) | 2);
            let length_at = writer.1;
            writer.byte(0);
            plain.ranges.iter().take(plain.range_values).for_each(|&value| writer.varint(value.into()));
            writer.0[length_at] = (writer.1 - length_at - 1) as u8;
        } else if value != 0 {
            writer.byte((number as u8) << 3);
            writer.varint(value);
        }
    }
    let Writer(mut bytes, used) = writer;
    (bytes[0], bytes[1], bytes[10]) = ((used - 1) as u8, TOKEN_HIGH, TOKEN_LOW);
    bytes[2..10].copy_from_slice(&((token.0 >> 64) as u64).to_le_bytes());
    bytes[11..KIND].copy_from_slice(&(token.0 as u64).to_le_bytes());
    (bytes[KIND], bytes[KIND + 1]) = (if plain.is_ack { ACK } else { DATA }, (used - FIELDS) as u8);
    out.extend_from_slice(&bytes[..used]);
}

/// Decode a Data or an Ack; `None` if it is another kind or not in the form written here.
#[inline]
pub(super) fn read(bytes: &[u8]) -> Option<(Token, Plain)> {
    let length = usize::from(*bytes.first()?);
    let (head, mut rest) = bytes.get(..=length)?.split_at_checked(FIELDS)?;
    let envelope = (head[1], head[10], usize::from(head[KIND + 1]));
    if length > ROOM || envelope != (TOKEN_HIGH, TOKEN_LOW, rest.len()) || !matches!(head[KIND], DATA | ACK) {
        return None;
    }
    let half = |at: usize| head[at..].first_chunk().map_or(0, |half| u128::from(u64::from_le_bytes(*half)));
    let mut plain = Plain { is_ack: head[KIND] == ACK, ..Plain::default() };
    while let Some((&key, behind)) = rest.split_first() {
        rest = behind;
        let (number, value) = (usize::from(key >> 3), varint(&mut rest)?);
        match key & 7 {
            0 if number > 0 && !(plain.is_ack && number == RANGES) => *plain.fields.get_mut(number)? = value,
            2 if plain.is_ack && number == RANGES && plain.range_values == 0 => {
                let (mut packed, behind) = rest.split_at_checked(value as usize)?;
                rest = behind;
                while !packed.is_empty() {
                    *plain.ranges.get_mut(plain.range_values)? = varint(&mut packed)? as u32;
                    plain.range_values += 1;
                }
            }
            _ => return None,
        }
    }
    Some((Token((half(2) << 64) | half(11)), plain))
}

#[inline]
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for (i, &byte) in bytes.iter().take(9).enumerate() {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            *bytes = &bytes[i + 1..];
            return Some(value);
        }
    }
    None
}
