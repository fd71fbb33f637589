//! Reading the wire format of protocol buffers: as much of it as a rule table needs, and no more than is there.

use thiserror::Error;

/// What is wrong with a message.
#[derive(Debug, Error, Clone, Copy, PartialEq, Eq)]
pub enum WireError {
    /// It ends within a field.
    #[error("it ends within a field")]
    Truncated,
    /// A number of more than 64 bits.
    #[error("a number of more than 64 bits")]
    LongNumber,
    /// A field number or a wire type that does not exist.
    #[error("a field of a kind that does not exist")]
    UnknownKind,
}

/// What a field holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum FieldValue<'a> {
    /// A number of variable length.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// A length and as many bytes: text or a message.
    Bytes(&'a [u8]),
    /// Four bytes.
    Fixed32,
}

impl FieldValue<'_> {
    /// The double that eight bytes are.
    pub fn double(self) -> Option<f64> {
        match self {
            Self::Fixed64(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }
    /// The signed number that a variable-length one is by zigzag: 0, −1, 1, −2, …
    pub fn zigzag(self) -> Option<i64> {
        match self {
            Self::Varint(n) => Some((n >> 1) as i64 ^ -((n & 1) as i64)),
            _ => None,
        }
    }
}

/// The fields of a message in order, each with its number. Nothing comes after an error.
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn take(&mut self, count: usize) -> Result<&'a [u8], WireError> {
        if count > self.rest.len() {
            return Err(WireError::Truncated);
        }
        let (taken, rest) = self.rest.split_at(count);
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, WireError> {
        let mut value = 0;
        for place in 0..10 {
            let byte = self.take(1)?[0];
            let digits = u64::from(byte & 0x7f);
            if place == 9 && digits > 1 {
                return Err(WireError::LongNumber);
            }
            value |= digits << (7 * place);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(WireError::LongNumber)
    }

    fn field(&mut self) -> Result<(u64, FieldValue<'a>), WireError> {
        let key = self.varint()?;
        let value = match key & 7 {
            0 => FieldValue::Varint(self.varint()?),
            1 => {
                let bytes = self.take(8)?;
                FieldValue::Fixed64(bytes.iter().rev().fold(0, |bits, &byte| bits << 8 | u64::from(byte)))
            }
            2 => {
                let length = usize::try_from(self.varint()?).map_err(|_| WireError::Truncated)?;
                FieldValue::Bytes(self.take(length)?)
            }
            5 => {
                self.take(4)?;
                FieldValue::Fixed32
            }
            _ => return Err(WireError::UnknownKind),
        };
        if key >> 3 == 0 {
            return Err(WireError::UnknownKind);
        }
        Ok((key >> 3, value))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, FieldValue<'a>), WireError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(message: &[u8]) -> Result<(u64, FieldValue<'_>), WireError> {
        Fields::of(message).next().unwrap()
    }

    /// Examples of the encoding guide of protocol buffers: 150 is 96 01.
    #[test]
    fn fields() {
        assert_eq!(first(&[0x08, 0x96, 0x01]), Ok((1, FieldValue::Varint(150))));
        assert_eq!(first(&[0x12, 2, 7, 8]), Ok((2, FieldValue::Bytes(&[7, 8]))));
        assert_eq!(first(&[0x0d, 1, 2, 3, 4]), Ok((1, FieldValue::Fixed32)));
        let (number, value) = first(&[0x81, 0x02, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]).unwrap();
        assert_eq!((number, value.double(), value.zigzag()), (32, Some(1.0), None));
        for (n, signed) in [(0, 0), (1, -1), (2, 1), (3, -2), (u64::MAX, i64::MIN), (u64::MAX - 1, i64::MAX)] {
            assert_eq!(FieldValue::Varint(n).zigzag(), Some(signed));
        }
        assert_eq!(Fields::of(&[]).count(), 0);
        assert_eq!(Fields::of(&[0x08, 1, 0x10, 2]).count(), 2);
    }

    #[test]
    fn damage() {
        for (message, expected) in [
            (&[0x08u8][..], WireError::Truncated),
            (&[0x12, 3, 1, 2], WireError::Truncated),
            (&[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], WireError::Truncated),
            (&[0x09, 1, 2, 3], WireError::Truncated),
            (&[0x0d, 1, 2, 3], WireError::Truncated),
            (&[0x0b], WireError::UnknownKind),
            (&[0x00, 0x01], WireError::UnknownKind),
            (&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], WireError::LongNumber),
            (&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02], WireError::LongNumber),
        ] {
            let mut fields = Fields::of(message);
            assert_eq!(fields.next(), Some(Err(expected)), "{message:?}");
            assert_eq!(fields.next(), None);
        }
    }
}
