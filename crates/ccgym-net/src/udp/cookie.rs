//! Proof that a sender receives at its source address.
//!
//! The receiver computes a cookie from address, token, time and a secret, and keeps no state. Only a host that receives at
//! the address can return it. QUIC's Retry works the same way (RFC 9000, section 8.1.2).

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

use ccgym_core::{TimeSpan, Timestamp};

use super::codec::Token;

/// Unit of a cookie's lifetime: it is valid for one to two periods.
const PERIOD: TimeSpan = TimeSpan::from_millis(10_000);

/// Makes and checks cookies.
pub(super) struct Cookies {
    /// SipHash of the standard library, with a key from the kernel's random source.
    secret: RandomState,
}

impl Cookies {
    pub fn new() -> Self {
        Self { secret: RandomState::new() }
    }

    /// Return the cookie for a Hello from `from` at `now`.
    pub fn make(&self, from: SocketAddr, token: Token, now: Timestamp) -> [u8; 8] {
        self.of_period(from, token, now.0 / PERIOD.0)
    }

    /// True if `cookie` was made for this address and token in this period or the one before.
    pub fn prove(&self, cookie: &[u8], from: SocketAddr, token: Token, now: Timestamp) -> bool {
        let period = now.0 / PERIOD.0;
        [period, period.saturating_sub(1)].iter().any(|&p| self.of_period(from, token, p) == cookie)
    }

    fn of_period(&self, from: SocketAddr, token: Token, period: u64) -> [u8; 8] {
        self.secret.hash_one((from, token.0, period)).to_le_bytes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cookie_is_good_for_one_address_one_token_and_a_short_time() {
        let (ours, others) = (Cookies::new(), Cookies::new());
        let (from, token): (SocketAddr, _) = (([10, 0, 0, 1], 4000).into(), Token(7));
        let made = Timestamp::from_millis(9_000);
        let cookie = ours.make(from, token, made);
        for (later, good) in [(0, true), (999, true), (10_999, true), (11_000, false), (60_000, false)] {
            let now = made + TimeSpan::from_millis(later);
            assert_eq!(ours.prove(&cookie, from, token, now), good, "{later} ms later");
        }
        assert!(!ours.prove(&cookie, ([10, 0, 0, 2], 4000).into(), token, made));
        assert!(!ours.prove(&cookie, ([10, 0, 0, 1], 4001).into(), token, made));
        assert!(!ours.prove(&cookie, from, Token(8), made));
        assert!(!ours.prove(&cookie[..7], from, token, made) && !ours.prove(&[], from, token, made));
        assert!(!others.prove(&cookie, from, token, made), "each receiver has a secret of its own");
    }
}
