//! Messages between the ends of a tunnel. Each carries the secret of the run; messages without it are ignored.

use serde::{Deserialize, Serialize};

use super::header;

/// Secret that both ends of a run know.
pub type Secret = [u8; 16];

/// Message. Times are ns since the sender's end started, by its clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Request to meet, from the end that knows the other one's address.
    Hello,
    /// Answer to it.
    Welcome,
    /// Time request: send time.
    Ping(u64),
    /// Answer to it: send time of the request, its arrival time, send time of the answer.
    Pong(u64, u64, u64),
    /// The run's time zero by the senders' clock.
    Zero(u64),
    /// Answer to it: the receivers are ready.
    Listening,
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    secret: Secret,
    message: Message,
}

/// Make the datagram of a message.
#[must_use]
pub fn datagram(secret: &Secret, message: Message) -> Vec<u8> {
    // Writing to a vector cannot fail.
    header::message(&postcard::to_stdvec(&Sealed { secret: *secret, message }).unwrap_or_default())
}

/// Read the message after a datagram's number; `None` without the secret.
#[must_use]
pub fn read(secret: &Secret, bytes: &[u8]) -> Option<Message> {
    let sealed: Sealed = postcard::from_bytes(bytes).ok()?;
    (sealed.secret == *secret).then_some(sealed.message)
}

/// Read a secret of 32 hexadecimal digits.
#[must_use]
pub fn secret(text: &str) -> Option<Secret> {
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|d| d as u8)).collect();
    let bytes: Vec<u8> = digits?.chunks_exact(2).map(|pair| (pair[0] << 4) | pair[1]).collect();
    (text.len() == 32).then(|| bytes.try_into().ok())?
}

#[cfg(test)]
mod tests {
    use super::super::header::{read as content, Content};
    use super::*;

    #[test]
    fn messages_without_the_secret_are_ignored() {
        let ours = secret("000102030405060708090a0b0c0d0e0f").unwrap();
        assert_eq!((ours[0], ours[15]), (0, 15));
        for message in [Message::Hello, Message::Ping(u64::MAX), Message::Pong(1, 2, 3), Message::Zero(7)] {
            let sent = datagram(&ours, message);
            let Some(Content::Message(bytes)) = content(&sent) else { panic!() };
            assert_eq!(read(&ours, bytes), Some(message));
            assert_eq!(read(&[7; 16], bytes), None);
            for cut in 0..bytes.len() {
                assert_eq!(read(&ours, &bytes[..cut]), None);
            }
        }
        assert!(secret("00").is_none() && secret(&"g".repeat(32)).is_none() && secret(&"é".repeat(16)).is_none());
    }
}
