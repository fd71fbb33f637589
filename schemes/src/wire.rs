//! Writes messages of Protocol Buffers for tests of what reads them.

/// A whole number.
pub fn varint(value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    prost::encoding::encode_varint(value, &mut bytes);
    bytes
}

/// A field of bytes: text, packed numbers, or a message.
pub fn field(number: u64, message: &[u8]) -> Vec<u8> {
    [varint((number << 3) | 2), varint(message.len() as u64), message.to_vec()].concat()
}
