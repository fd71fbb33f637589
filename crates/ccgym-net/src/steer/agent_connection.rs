//! The flow's end of the socket to its environment.

use std::io::{ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use ccgym_agent::AgentSpec;
use ccgym_core::{Sender, Timestamp};
use ccgym_run::columns::{COLUMNS, TRUTH_COLUMNS};

use super::episode_tracker::{EpisodeTracker, LiveGroundTruth};
use super::messages::{frame, from_sender, to_sender, Action, Ended, FromSender, Hello, ToSender, Unframer, VERSION};
use crate::error::{Context, Error, Result};

/// Max wait for an environment that does not read.
const PATIENCE: Duration = Duration::from_secs(1);

/// Data of a learning flow for its environment.
pub struct AgentConnection<'a> {
    /// Index of the flow.
    pub flow: u32,
    /// Its agent.
    pub agent: &'a AgentSpec,
    /// Ground truth about its path.
    pub truth: LiveGroundTruth,
    /// Set when the environment stops the flow or disconnects: the flow then ends.
    pub halt: Arc<AtomicBool>,
}

/// Connection to an environment that decides for one flow (scheme `learned` without a policy: `decided_outside`), over a
/// Unix stream socket (`proto/control.proto`).
///
/// After each event the sender checks if its scheme awaits a decision. If so it calls
/// [`Steering::interval_closed`], then `sender.hold_decision()`, and continues with its last decision. Nothing here waits
/// for the environment while the flow runs. Unread intervals stay in the socket; when that is full, the
/// newest interval waits here for space, and older ones are dropped.
pub struct Steering {
    stream: UnixStream,
    account: EpisodeTracker,
    halt: Arc<AtomicBool>,
    incoming: Unframer,
    /// Bytes to write, from `written` on.
    outgoing: Vec<u8>,
    written: usize,
    /// The newest interval, while the socket is full.
    waiting: Vec<u8>,
    /// True if the environment stopped the flow or disconnected.
    over: bool,
}

impl Steering {
    /// Connect to the environment that listens at `path`, and send the Hello.
    ///
    /// # Errors
    /// No environment listens there.
    pub fn connect(path: &Path, connection: AgentConnection<'_>) -> Result<Self> {
        let stream = UnixStream::connect(path).map_err(|error| {
            let place = format!("connecting flow {} to its environment at {}", connection.flow, path.display());
            Error::of("socket-failed", place, error).expected("an environment that listens there")
        })?;
        Self::over(stream, connection)
    }

    /// Like [`Steering::connect`], over a connected stream.
    pub fn over(stream: UnixStream, connection: AgentConnection<'_>) -> Result<Self> {
        stream.set_nonblocking(true).context(|| "preparing the environment's socket".to_owned())?;
        let hello = Hello {
            version: VERSION,
            flow: connection.flow,
            agent: connection.agent.name.clone(),
            observation_size: connection.agent.observation_size() as u32,
            action_size: connection.agent.action_kind().size() as u32,
            reward_terms: connection.agent.reward.terms.len() as u32,
            statistics: COLUMNS.len() as u32,
            truth: TRUTH_COLUMNS.len() as u32,
        };
        let mut steering = Self {
            stream,
            account: EpisodeTracker::new(connection.flow as usize, connection.truth),
            halt: connection.halt,
            incoming: Unframer::default(),
            outgoing: Vec::new(),
            written: 0,
            waiting: Vec::new(),
            over: false,
        };
        append_message(from_sender::Body::Hello(hello), &mut steering.outgoing);
        steering.flush()?;
        Ok(steering)
    }

    /// End the flow: the environment stopped it or disconnected.
    fn end(&mut self) {
        self.over = true;
        self.halt.store(true, Ordering::Relaxed);
    }

    /// Write as much as fits in the socket.
    fn flush(&mut self) -> Result<()> {
        loop {
            if self.written == self.outgoing.len() {
                self.outgoing.clear();
                self.written = 0;
                std::mem::swap(&mut self.outgoing, &mut self.waiting);
                if self.outgoing.is_empty() {
                    return Ok(());
                }
            }
            match self.stream.write(&self.outgoing[self.written..]) {
                Ok(bytes) => self.written += bytes,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_gone(&error) => break,
                Err(error) => return Err(error).context(|| "telling the environment".to_owned()),
            }
        }
        self.end();
        Ok(())
    }

    /// Send the last message; wait up to [`PATIENCE`] for the environment.
    fn send_last(&mut self, ended: Ended) -> Result<()> {
        self.over = true;
        let mut bytes = self.outgoing.split_off(self.written);
        self.written = 0;
        self.outgoing.clear();
        bytes.append(&mut self.waiting);
        append_message(from_sender::Body::Ended(ended), &mut bytes);
        let stream = &mut self.stream;
        let patiently = stream.set_nonblocking(false).and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
        match patiently.and_then(|()| stream.write_all(&bytes)) {
            // If the environment disconnected, it does not need the message.
            Err(error) if !is_gone(&error) => {
                Err(error).context(|| "telling the environment that the flow has ended".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Read all available data.
    fn receive(&mut self) -> Result<()> {
        let mut bytes = [0; 4096];
        loop {
            match self.stream.read(&mut bytes) {
                Ok(0) => break,
                Ok(count) => self.incoming.extend(&bytes[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_gone(&error) => break,
                Err(error) => return Err(error).context(|| "reading from the environment".to_owned()),
            }
        }
        self.end();
        Ok(())
    }

    /// Return the file descriptor to poll in addition to the sender's own socket; `None` at the end.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.over).then(|| self.stream.as_fd())
    }

    /// Close an interval at `now` and send it, for a decision of the agent.
    pub fn interval_closed(&mut self, now: Timestamp, sender: &Sender) -> Result<()> {
        let Some(interval) = self.account.close(now, sender, true) else { return Ok(()) };
        if self.over {
            return Ok(());
        }
        self.waiting.clear();
        append_message(from_sender::Body::Interval(interval), &mut self.waiting);
        self.flush()
    }

    /// Call when the file descriptor is readable. Write the newest complete action to `action`; true if there is one.
    /// Then the sender must call `sender.decide(now, &action)` and transmit.
    ///
    /// # Errors
    /// A message that is not an action.
    pub fn take_action(&mut self, now: Timestamp, action: &mut Vec<f32>) -> Result<bool> {
        if self.over {
            return Ok(false);
        }
        self.receive()?;
        let mut newest: Option<Action> = None;
        while let Some(message) = self.incoming.message::<ToSender>()? {
            match message.body {
                Some(to_sender::Body::Action(one)) => newest = Some(one),
                Some(to_sender::Body::Stop(_)) => {
                    self.end();
                    self.send_last(Ended { interval: None, summary: Some(self.account.summary()) })?;
                    return Ok(false);
                }
                None => {}
            }
        }
        let Some(newest) = newest.filter(|_| !self.over) else { return Ok(false) };
        self.account.apply(now, newest.sequence, Timestamp(newest.time_ns));
        *action = newest.values;
        Ok(true)
    }

    /// End the flow at `now`: close its last interval and send it.
    pub fn flow_ended(&mut self, now: Timestamp, sender: &mut Sender) -> Result<()> {
        if self.over {
            return Ok(());
        }
        let mut interval = None;
        if self.account.has_begun() {
            sender.end_interval(now);
            interval = self.account.close(now, sender, false);
        }
        self.send_last(Ended { interval, summary: Some(self.account.summary()) })
    }
}

fn is_gone(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::BrokenPipe | ErrorKind::ConnectionReset)
}

fn append_message(body: from_sender::Body, out: &mut Vec<u8>) {
    frame(&FromSender { body: Some(body) }, out);
}
