//! A flow's request to its receiver, and the handshake.

use std::io::ErrorKind;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Duration;

use ccgym_core::receiver::AckPolicy;
use ccgym_core::{FeedbackHost, ReceiverConfig, TimeSpan};
use ccgym_run::spec::Profile;
use ccgym_run::FlowSpec;
use ccgym_schemes::create;
use serde_json::{Map, Value};

use super::codec::{decode, encode, Message, Token, VERSION};
use super::datagram::{self, datagram::Kind};
use super::socket::{is_refusal, overhead, prepare, wait};
use crate::error::{Context, Error, Result};
use crate::Clock;

/// Min bytes of a Hello: no less than its answer with a refusal.
const HELLO_BYTES: usize = 240;
/// Max bytes of a refusal.
pub(super) const REFUSAL_BYTES: usize = 120;
/// Time until the first repetition of a Hello; it doubles each time.
const FIRST_WAIT: Duration = Duration::from_millis(100);
/// Max time until a repetition.
const MAX_WAIT: Duration = Duration::from_millis(1600);

/// Encode the Hello of flow `flow` with the settings that `spec` requests of the receiver.
fn hello(spec: &FlowSpec, flow: u32, token: Token, cookie: Vec<u8>) -> Vec<u8> {
    let mut message = datagram::Hello {
        version: VERSION,
        flow,
        ack_every: spec.ack_every,
        ack_delay_ns: spec.ack_delay.0,
        quick_acks: spec.quick_acks,
        reliable: spec.profile != Profile::Udp,
        header_bytes: spec.header,
        packet_bytes: spec.mss + spec.header,
        ack_bytes: spec.ack_size,
        scheme: String::new(),
        parameters: String::new(),
        cookie,
    };
    // A scheme that the registry does not know has no receiver side.
    if create(&spec.scheme, &spec.params).is_ok_and(|mut cca| cca.receiver_side().is_some()) {
        message.scheme.clone_from(&spec.scheme);
        message.parameters = Value::Object(spec.params.clone()).to_string();
    }
    let mut out = Vec::new();
    encode(&mut out, token, Kind::Hello(Box::new(message)), HELLO_BYTES);
    out
}

/// Return the receiver configuration of a Hello.
pub(super) const fn receiver_config(hello: &datagram::Hello) -> ReceiverConfig {
    ReceiverConfig {
        policy: AckPolicy { every: hello.ack_every, max_delay: TimeSpan(hello.ack_delay_ns) },
        ack_size: hello.ack_bytes,
        quick_acks: hello.quick_acks,
        reliable: hello.reliable,
    }
}

/// Make the receiver side of the scheme in a Hello, if it names one; else an error text.
pub(super) fn feedback_host(hello: &datagram::Hello) -> std::result::Result<Option<Box<FeedbackHost>>, String> {
    if hello.scheme.is_empty() {
        return Ok(None);
    }
    let parameters = match hello.parameters.as_str() {
        "" => Ok(Map::new()),
        text => serde_json::from_str(text).map_err(|_| "the scheme's parameters are no JSON object".to_owned()),
    };
    let mut cca = create(&hello.scheme, &parameters?).map_err(|error| error.to_string())?;
    let scheme = cca.receiver_side().ok_or_else(|| format!("{} has no part at the receiver", hello.scheme))?;
    Ok(Some(Box::new(FeedbackHost::new(scheme.receiver(), u64::from(hello.packet_bytes)))))
}

/// Check for settings that work only in the simulator, on flows that [`ccgym_run::RunSpec::validate`] accepts.
///
/// # Errors
/// A key of the flow and its reason.
pub fn check(spec: &FlowSpec) -> Result<()> {
    let error = |key: &str, found: String, expected: &str| {
        Error::of("out-of-range", format!("a flow of scheme {}, {key}", spec.scheme), found).expected(expected)
    };
    if spec.extra_rtt != TimeSpan::ZERO {
        let found = format!("{} ms", spec.extra_rtt.as_millis_f64());
        return Err(error("extra_rtt", found, "0: real endpoints cannot add propagation of their own")
            .coded("backend-unsuitable")
            .hint("put the delay into the path, or run this in the simulator"));
    }
    if spec.ack_size > 1500 {
        return Err(error("ack_size", spec.ack_size.to_string(), "max 1500 bytes"));
    }
    Ok(())
}

/// Return the refusal of the receiver at `peer`, if the answer has one.
pub(super) fn refusal(peer: SocketAddr, answer: &datagram::HelloAck) -> Option<Error> {
    let found = || format!("the receiver refuses: {}", printable(&answer.refusal));
    (!answer.refusal.is_empty()).then(|| Error::of("receiver-refuses", format!("handshake with {peer}"), found()))
}

/// Escape unprintable characters in a peer's text, so that a terminal can show it.
pub(super) fn printable(text: &str) -> String {
    let quotes = |c: &char| matches!(c, '"' | '\'' | '\\');
    text.chars().map(|c| if quotes(&c) { c.to_string() } else { c.escape_debug().to_string() }).collect()
}

/// Socket of a flow after the handshake.
#[derive(Debug)]
pub struct Connection {
    pub(super) socket: UdpSocket,
    pub(super) token: Token,
    /// Bytes of IP and UDP headers.
    pub(super) overhead: u32,
    /// Number of refused datagrams.
    pub(super) rejected: u64,
    pub(super) peer: SocketAddr,
}

impl Connection {
    /// Connect `socket`, bound to an address of the path, to the receiver at `peer`, for flow number `flow` of the run, which
    /// `spec` describes. Repeat the Hello until an answer or `deadline`.
    ///
    /// # Errors
    /// As [`check`]; a failed step with its reason; a refusal of the receiver.
    pub fn open(socket: UdpSocket, peer: SocketAddr, spec: &FlowSpec, flow: u32, deadline: Duration) -> Result<Self> {
        check(spec)?;
        let step = || format!("handshake with {peer}");
        socket.connect(peer).context(|| format!("{}: finding the way", step()))?;
        prepare(&socket)?;
        let token = Token::random()?;
        let mut bytes = hello(spec, flow, token, Vec::new());
        let mut connection = Self { socket, token, overhead: overhead(&peer.ip()), rejected: 0, peer };
        let clock = Clock::start();
        let end = clock.now() + TimeSpan(deadline.as_nanos().min(u128::from(u64::MAX >> 1)) as u64);
        let (mut hellos, mut refusals, mut pause, mut proven) = (0, 0, FIRST_WAIT, false);
        let mut again = clock.now();
        while clock.now() < end {
            if again <= clock.now() {
                match connection.socket.send(&bytes) {
                    Ok(_) => {}
                    // The error answers an earlier Hello.
                    Err(e) if is_refusal(&e) => {
                        refusals += 1;
                        let _ = connection.socket.send(&bytes);
                    }
                    Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
                    Err(e) => return Err(e).context(|| format!("{}: sending hello", step())),
                }
                hellos += 1;
                again = clock.now() + TimeSpan(pause.as_nanos() as u64);
                pause = (pause * 2).min(MAX_WAIT);
            }
            wait(connection.socket.as_fd(), false, None, &clock, again.min(end))?;
            if let Some(answer) = connection.take_answer(&mut refusals)? {
                if answer.version != VERSION {
                    let found = format!("the receiver speaks version {}", answer.version);
                    return Err(Error::of("version-mismatch", step(), found)
                        .expected(format!("version {VERSION}"))
                        .hint("install the same ccgym at both ends"));
                }
                if let Some(error) = refusal(peer, &answer) {
                    return Err(error);
                }
                if !answer.cookie.is_empty() {
                    bytes = hello(spec, flow, token, answer.cookie);
                    // Send at once, but only once: a receiver that always sends cookies gets no more Hellos than a silent one.
                    if !proven {
                        (proven, again) = (true, clock.now());
                    }
                    continue;
                }
                return Ok(connection);
            }
        }
        let plural = if hellos == 1 { "" } else { "s" };
        let found = format!("no answer to {hellos} hello{plural} from {peer} within {:.3} s", deadline.as_secs_f64());
        let found = if refusals > 0 { format!("{found}; {peer} refuses: nothing listens on that port") } else { found };
        Err(Error::of("no-answer", step(), found)
            .expected("a receiver that answers")
            .hint(format!("start one there, of the same version: ccgym receiver --listen {peer}")))
    }

    /// Read arrivals. Return the answer to our Hello if there is one.
    fn take_answer(&mut self, refusals: &mut u32) -> Result<Option<datagram::HelloAck>> {
        let mut room = [0; 2048];
        loop {
            match self.socket.recv(&mut room) {
                Ok(length) => match decode(&room[..length], self.overhead) {
                    Ok((token, Message::HelloAck(answer))) if token == self.token => return Ok(Some(*answer)),
                    _ => self.rejected += 1,
                },
                Err(e) if is_refusal(&e) => *refusals += 1,
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => return Ok(None),
                Err(e) => return Err(e).context(|| format!("handshake with {}: receiving", self.peer)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(json: &str) -> FlowSpec {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_hello_travels_whole_and_outweighs_its_answer() {
        let token = Token::random().unwrap();
        let spec = spec(r#"{"scheme": "cubic", "ack_every": 2, "quick_acks": 16}"#);
        let bytes = hello(&spec, 3, token, vec![1; 8]);
        let Ok((found, Message::Hello(message))) = decode(&bytes, 28) else { panic!() };
        assert_eq!((found, message.flow, message.packet_bytes, message.cookie.len()), (token, 3, 1500, 8));
        let config = receiver_config(&message);
        assert_eq!((config.policy.every, config.quick_acks, config.reliable), (2, 16, true));
        let mut answer = Vec::new();
        let longest = datagram::HelloAck {
            version: u32::MAX,
            refusal: "x".repeat(REFUSAL_BYTES),
            seen_from: "[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535".into(),
            clock_ns: u64::MAX,
            cookie: Vec::new(),
        };
        encode(&mut answer, token, Kind::HelloAck(Box::new(longest)), 0);
        assert!(answer.len() <= bytes.len(), "{} in answer to {}", answer.len(), bytes.len());
    }

    #[test]
    fn a_hello_names_the_scheme_whose_half_it_wants() {
        let token = Token::random().unwrap();
        let of = |json: &str| {
            let Ok((_, Message::Hello(message))) = decode(&hello(&spec(json), 0, token, Vec::new()), 28) else {
                panic!()
            };
            *message
        };
        let none = of(r#"{"scheme": "cubic", "params": {"beta": 0.8}}"#);
        assert_eq!((none.scheme.as_str(), none.parameters.as_str()), ("", ""));
        assert!(feedback_host(&none).unwrap().is_none());
        let sprout = of(r#"{"scheme": "sprout", "params": {"forecast": "ewma"}}"#);
        assert_eq!((sprout.scheme.as_str(), sprout.parameters.as_str()), ("sprout", r#"{"forecast":"ewma"}"#));
        assert!(feedback_host(&sprout).unwrap().is_some());
        // Requests that unknown senders can make.
        for (scheme, parameters) in [("cubic", ""), ("sprotu", ""), ("sprout", "[]"), ("sprout", r#"{"forecast": 3}"#)]
        {
            let hello = datagram::Hello { scheme: scheme.into(), parameters: parameters.into(), ..sprout.clone() };
            assert!(feedback_host(&hello).is_err(), "{scheme} {parameters}");
        }
    }

    #[test]
    fn nothing_of_a_refusal_reaches_a_terminal_as_a_command() {
        let refusal = "found \"x\"\u{1b}[2J\u{1b}]0;owned\u{7}\r\n\u{9b}31m\u{202e} Ж";
        let answer = datagram::HelloAck { refusal: refusal.into(), ..datagram::HelloAck::default() };
        let text = super::refusal(([127, 0, 0, 1], 9).into(), &answer).unwrap().to_string();
        assert!(text.contains(r#"found "x"\u{1b}[2J"#) && text.ends_with(r"\u{202e} Ж"), "{text}");
        assert!(!text.chars().any(|c| c.is_control() || c == '\u{202e}'), "{text}");
    }

    #[test]
    fn what_only_a_simulator_can_do_is_refused() {
        let error = check(&spec(r#"{"scheme": "cubic", "extra_rtt": 10000000}"#)).unwrap_err();
        assert_eq!(error.code, "backend-unsuitable");
        assert!(error.place.ends_with("extra_rtt"), "{error}");
        assert_eq!(check(&spec(r#"{"scheme": "cubic", "ack_size": 1501}"#)).unwrap_err().code, "out-of-range");
    }
}
