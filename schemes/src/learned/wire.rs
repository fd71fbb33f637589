//! Protocol Buffers' wire format, as far as an ONNX file needs it: a message is a sequence of numbered fields.

/// One field of a message.
#[derive(Clone, Copy, Debug)]
pub(super) enum Field<'a> {
    /// A whole number.
    Varint(u64),
    /// Text, packed numbers, or a message.
    Bytes(&'a [u8]),
    /// A float32 or a float64, or an integer of that width.
    Fixed(&'a [u8]),
}

/// Where and why a message cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Malformed(pub &'static str);

/// Iterator over the fields of a message, with their numbers. Ends after the first error.
pub(super) struct Fields<'a> {
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) fn of(message: &'a [u8]) -> Self {
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

/// The number at the start of `bytes`, and what follows it.
fn varint(bytes: &[u8]) -> Result<(u64, &[u8]), Malformed> {
    let mut value = 0u64;
    for (i, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Ok((value, &bytes[i + 1..]));
        }
    }
    Err(Malformed(if bytes.len() < 10 { "it ends in the middle of a number" } else { "it has an endless number" }))
}

/// All numbers of a packed field.
pub(super) fn packed(mut bytes: &[u8]) -> Result<Vec<u64>, Malformed> {
    let mut values = Vec::new();
    while !bytes.is_empty() {
        let (value, rest) = varint(bytes)?;
        values.push(value);
        bytes = rest;
    }
    Ok(values)
}
