//! Protobuf's encoding: keys, variable-length integers, lengths.

/// Why a datagram was refused.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// It is not protobuf of this schema.
    Malformed,
    /// Not exactly one kind, first and alone.
    Kinds,
    /// It uses protobuf's groups.
    Group,
    /// The token is not 16 bytes.
    Token,
    /// A value lies outside its range.
    Range,
}

/// How a field is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wire {
    /// Seven bits a byte.
    Varint,
    /// Eight bytes, little end first.
    Fixed64,
    /// A length, and as many bytes.
    Bytes,
    /// Four bytes.
    Fixed32,
}

/// Bytes that `value` takes.
#[inline]
pub const fn varint_length(value: u64) -> usize {
    (70 - (value | 1).leading_zeros() as usize) / 7
}

/// Reads fields one after another.
pub struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    /// A reader of `bytes`.
    #[inline]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// Whether all is read.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A variable-length integer of at most 64 bits.
    #[inline]
    pub fn varint(&mut self) -> Result<u64, Refusal> {
        let mut value = 0;
        for (i, &byte) in self.0.iter().take(10).enumerate() {
            value |= u64::from(byte & 0x7f) << (7 * i);
            if byte < 0x80 {
                if i == 9 && byte > 1 {
                    break;
                }
                self.0 = &self.0[i + 1..];
                return Ok(value);
            }
        }
        Err(Refusal::Malformed)
    }

    /// A field's number and how it is written.
    #[inline]
    pub fn key(&mut self) -> Result<(u32, Wire), Refusal> {
        let key = u32::try_from(self.varint()?).map_err(|_| Refusal::Malformed)?;
        let wire = match key & 7 {
            0 => Wire::Varint,
            1 => Wire::Fixed64,
            2 => Wire::Bytes,
            5 => Wire::Fixed32,
            3 | 4 => return Err(Refusal::Group),
            _ => return Err(Refusal::Malformed),
        };
        match key >> 3 {
            0 => Err(Refusal::Malformed),
            number => Ok((number, wire)),
        }
    }

    #[inline]
    fn take(&mut self, count: usize) -> Result<&'a [u8], Refusal> {
        if count > self.0.len() {
            return Err(Refusal::Malformed);
        }
        let (taken, rest) = self.0.split_at(count);
        self.0 = rest;
        Ok(taken)
    }

    /// A length and that many bytes.
    #[inline]
    pub fn bytes(&mut self) -> Result<&'a [u8], Refusal> {
        let length = usize::try_from(self.varint()?).map_err(|_| Refusal::Malformed)?;
        self.take(length)
    }

    /// Eight bytes.
    #[inline]
    pub fn fixed64(&mut self) -> Result<u64, Refusal> {
        let bytes = self.take(8)?;
        bytes.try_into().map(u64::from_le_bytes).map_err(|_| Refusal::Malformed)
    }

    /// Pass over a field.
    pub fn skip(&mut self, wire: Wire) -> Result<(), Refusal> {
        match wire {
            Wire::Varint => self.varint().map(drop),
            Wire::Fixed64 => self.take(8).map(drop),
            Wire::Fixed32 => self.take(4).map(drop),
            Wire::Bytes => self.bytes().map(drop),
        }
    }
}

/// Room for all fields of a kind but those of free length: an acknowledgement's take 110 bytes at most.
const ROOM: usize = 128;

/// Writes fields one after another. What has the value zero is left out, as protobuf wants it.
pub struct Fields {
    bytes: [u8; ROOM],
    used: usize,
}

impl Fields {
    /// No fields.
    #[inline]
    pub const fn new() -> Self {
        Self { bytes: [0; ROOM], used: 0 }
    }

    /// What was written.
    #[inline]
    pub fn done(&self) -> &[u8] {
        &self.bytes[..self.used]
    }

    #[inline]
    fn push(&mut self, bytes: &[u8]) {
        self.bytes[self.used..self.used + bytes.len()].copy_from_slice(bytes);
        self.used += bytes.len();
    }

    /// A number of `width` bytes, even if fewer would do.
    #[inline]
    pub fn raw_varint(&mut self, mut value: u64, width: usize) {
        for _ in 1..width {
            self.push(&[value as u8 | 0x80]);
            value >>= 7;
        }
        self.push(&[value as u8 & 0x7f]);
    }

    /// A field's number and how it is written.
    #[inline]
    pub fn key(&mut self, number: u32, wire: Wire) {
        let wire = match wire {
            Wire::Varint => 0,
            Wire::Fixed64 => 1,
            Wire::Bytes => 2,
            Wire::Fixed32 => 5,
        };
        self.push(&[((number << 3) | wire) as u8]);
    }

    /// A whole number.
    #[inline]
    pub fn varint(&mut self, number: u32, value: u64) {
        if value != 0 {
            self.key(number, Wire::Varint);
            self.raw_varint(value, varint_length(value));
        }
    }

    /// Eight bytes.
    #[inline]
    pub fn fixed64(&mut self, number: u32, value: u64) {
        if value != 0 {
            self.key(number, Wire::Fixed64);
            self.push(&value.to_le_bytes());
        }
    }

    /// At most 127 bytes.
    #[inline]
    pub fn bytes(&mut self, number: u32, value: &[u8]) {
        self.key(number, Wire::Bytes);
        self.push(&[value.len() as u8]);
        self.push(value);
    }

    /// Whole numbers in one field, of at most 127 bytes.
    #[inline]
    pub fn packed(&mut self, number: u32, values: impl Iterator<Item = u64>) {
        self.key(number, Wire::Bytes);
        let length = self.used;
        self.push(&[0]);
        for value in values {
            self.raw_varint(value, varint_length(value));
        }
        match self.used - length - 1 {
            0 => self.used = length - 1,
            n => self.bytes[length] = n as u8,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_varint_has_at_most_64_bits() {
        let read = |last: u8| Reader::new(&[[0xff; 9].as_slice(), &[last]].concat()).varint();
        assert_eq!(read(1), Ok(u64::MAX));
        assert_eq!(read(2), Err(Refusal::Malformed));
    }
}
