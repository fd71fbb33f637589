//! What the ends of a tunnel say to each other. Every message carries the secret of the run: who does not know it is not
//! heard.

use serde::{Deserialize, Serialize};

use super::header;

/// What only the ends of one run know.
pub type Secret = [u8; 16];

/// A message. Times are nanoseconds of the clock of the end that says so, since that end began.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Message {
    /// Here I am: from the end that knows where the other one is.
    Hello,
    /// The answer.
    Welcome,
    /// What time is it there? Sent at.
    Ping(u64),
    /// The answer: the time of the question, when it came, and when this leaves.
    Pong(u64, u64, u64),
    /// The run's time zero by the senders' clock.
    Zero(u64),
    /// The answer: the receivers are ready.
    Listening,
}

#[derive(Serialize, Deserialize)]
struct Sealed {
    secret: Secret,
    message: Message,
}

/// The datagram of a message.
#[must_use]
pub fn datagram(secret: &Secret, message: Message) -> Vec<u8> {
    // A vector never runs out of room.
    header::message(&postcard::to_stdvec(&Sealed { secret: *secret, message }).unwrap_or_default())
}

/// Read what a datagram holds behind its number; `None` without the secret.
#[must_use]
pub fn read(secret: &Secret, bytes: &[u8]) -> Option<Message> {
    let sealed: Sealed = postcard::from_bytes(bytes).ok()?;
    (sealed.secret == *secret).then_some(sealed.message)
}

/// A secret from 32 hexadecimal digits.
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
    fn only_who_knows_the_secret_is_heard() {
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
