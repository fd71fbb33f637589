//! Protocol Buffers' wire format, as far as ONNX files and rule tables need it: a message is a sequence of numbered fields.

use thiserror::Error;

/// One field of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Field<'a> {
    /// A whole number.
    Varint(u64),
    /// Text, packed numbers, or a message.
    Bytes(&'a [u8]),
    /// A float32 or a float64, or an integer of that width.
    Fixed(&'a [u8]),
}

impl Field<'_> {
    /// Return eight bytes as a float64.
    pub fn double(self) -> Option<f64> {
        match self {
            Self::Fixed(bytes) => Some(f64::from_le_bytes(bytes.try_into().ok()?)),
            _ => None,
        }
    }
    /// Decode a signed number by zigzag: 0, −1, 1, −2, …
    pub fn zigzag(self) -> Option<i64> {
        match self {
            Self::Varint(n) => Some((n >> 1) as i64 ^ -((n & 1) as i64)),
            _ => None,
        }
    }
}

/// Where and why a message cannot be read.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

/// Iterator over the fields of a message, with their numbers. Ends after the first error.
pub struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub fn of(message: &'a [u8]) -> Self {
        Self { rest: message }
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(length).ok().filter(|n| *n <= self.rest.len());
        let (taken, rest) = self.rest.split_at(length.ok_or(Malformed("it ends in the middle of a field"))?);
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, Malformed> {
        let (value, rest) = varint(self.rest)?;
        self.rest = rest;
        Ok(value)
    }

    fn field(&mut self) -> Result<(u64, Field<'a>), Malformed> {
        let key = self.varint()?;
        if key >> 3 == 0 {
            return Err(Malformed("it has a field without a number"));
        }
        let field = match key & 7 {
            0 => Field::Varint(self.varint()?),
            1 => Field::Fixed(self.take(8)?),
            2 => {
                let length = self.varint()?;
                Field::Bytes(self.take(length)?)
            }
            5 => Field::Fixed(self.take(4)?),
            _ => return Err(Malformed("it has a field of no known wire type")),
        };
        Ok((key >> 3, field))
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Field<'a>), Malformed>;

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

/// Split the number at the start of `bytes` from the rest.
fn varint(bytes: &[u8]) -> Result<(u64, &[u8]), Malformed> {
    let mut value = 0u64;
    for (i, byte) in bytes.iter().enumerate().take(10) {
        let digits = u64::from(byte & 0x7f);
        if i == 9 && digits > 1 {
            break;
        }
        value |= digits << (7 * i);
        if byte & 0x80 == 0 {
            return Ok((value, &bytes[i + 1..]));
        }
    }
    Err(Malformed(if bytes.len() < 10 {
        "it ends in the middle of a number"
    } else {
        "it has a number of more than 64 bits"
    }))
}

/// Return all numbers of a packed field.
pub fn packed(mut bytes: &[u8]) -> Result<Vec<u64>, Malformed> {
    let mut values = Vec::new();
    while !bytes.is_empty() {
        let (value, rest) = varint(bytes)?;
        values.push(value);
        bytes = rest;
    }
    Ok(values)
}

/// Writes messages for tests.
#[cfg(test)]
pub mod build {
    /// Encode a whole number.
    pub fn varint(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 128 {
            bytes.push(value as u8 | 128);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    /// Encode a field of bytes: text, packed numbers, or a message.
    pub fn field(number: u64, message: &[u8]) -> Vec<u8> {
        [varint((number << 3) | 2), varint(message.len() as u64), message.to_vec()].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(message: &[u8]) -> Result<(u64, Field<'_>), Malformed> {
        Fields::of(message).next().unwrap()
    }

    /// Examples of the encoding guide of protocol buffers: 150 is 96 01.
    #[test]
    fn fields() {
        assert_eq!(first(&[0x08, 0x96, 0x01]), Ok((1, Field::Varint(150))));
        assert_eq!(first(&[0x12, 2, 7, 8]), Ok((2, Field::Bytes(&[7, 8]))));
        assert_eq!(first(&[0x0d, 1, 2, 3, 4]), Ok((1, Field::Fixed(&[1, 2, 3, 4]))));
        let (number, value) = first(&[0x81, 0x02, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f]).unwrap();
        assert_eq!((number, value.double(), value.zigzag()), (32, Some(1.0), None));
        for (n, signed) in [(0, 0), (1, -1), (2, 1), (3, -2), (u64::MAX, i64::MIN), (u64::MAX - 1, i64::MAX)] {
            assert_eq!(Field::Varint(n).zigzag(), Some(signed));
        }
        assert_eq!(Fields::of(&[]).count(), 0);
        assert_eq!(Fields::of(&[0x08, 1, 0x10, 2]).count(), 2);
    }

    #[test]
    fn damage() {
        let (field, number) = ("it ends in the middle of a field", "it ends in the middle of a number");
        let (kind, unnumbered) = ("it has a field of no known wire type", "it has a field without a number");
        let long = "it has a number of more than 64 bits";
        for (message, expected) in [
            (&[0x08u8][..], number),
            (&[0x12, 3, 1, 2], field),
            (&[0x12, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], field),
            (&[0x09, 1, 2, 3], field),
            (&[0x0d, 1, 2, 3], field),
            (&[0x0b], kind),
            (&[0x00, 0x01], unnumbered),
            (&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01], long),
            (&[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02], long),
        ] {
            let mut fields = Fields::of(message);
            assert_eq!(fields.next(), Some(Err(Malformed(expected))), "{message:?}");
            assert_eq!(fields.next(), None);
        }
    }
}
