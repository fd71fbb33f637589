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

/// How long the end of a flow waits for an environment that does not read.
const PATIENCE: Duration = Duration::from_secs(1);

/// A learning flow, as its environment is told of it.
pub struct AgentConnection<'a> {
    /// Index of the flow.
    pub flow: u32,
    /// Its agent.
    pub agent: &'a AgentSpec,
    /// What is known of its path.
    pub truth: LiveGroundTruth,
    /// Set when the environment wants no more of the flow, or is gone: the flow then ends.
    pub halt: Arc<AtomicBool>,
}

/// An environment that decides for one flow (scheme `learned` without a policy, which says `decided_outside`), behind a
/// Unix stream socket (`proto/control.proto`).
///
/// The sender asks after each event whether its scheme awaits a decision. If so it calls
/// [`Steering::interval_closed`], then `sender.hold_decision()`, and goes on under its last decision. Nothing here waits
/// for the environment while the flow runs. What it does not read in time stays in the socket; when that is full, the
/// newest interval waits here for room, and those before it are never told.
pub struct Steering {
    stream: UnixStream,
    account: EpisodeTracker,
    halt: Arc<AtomicBool>,
    incoming: Unframer,
    /// What is being written, from `written` on.
    outgoing: Vec<u8>,
    written: usize,
    /// The newest interval, while there is no room for it.
    waiting: Vec<u8>,
    /// Whether the environment has said that it is enough, or has gone.
    over: bool,
}

impl Steering {
    /// Connect to the environment that listens at `path`, and say hello.
    ///
    /// # Errors
    /// Nothing listens there.
    pub fn connect(path: &Path, connection: AgentConnection<'_>) -> Result<Self> {
        let stream = UnixStream::connect(path).map_err(|error| {
            let place = format!("connecting flow {} to its environment at {}", connection.flow, path.display());
            Error::of("socket-failed", place, error).expected("an environment that listens there")
        })?;
        Self::over(stream, connection)
    }

    /// The same over a stream that is connected.
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
        tell(from_sender::Body::Hello(hello), &mut steering.outgoing);
        steering.flush()?;
        Ok(steering)
    }

    /// The environment is gone, or has had enough.
    fn end(&mut self) {
        self.over = true;
        self.halt.store(true, Ordering::Relaxed);
    }

    /// Write what there is room for.
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

    /// Send the last message. That may wait for the environment, for a limited time.
    fn send_last(&mut self, ended: Ended) -> Result<()> {
        self.over = true;
        let mut bytes = self.outgoing.split_off(self.written);
        self.written = 0;
        self.outgoing.clear();
        bytes.append(&mut self.waiting);
        tell(from_sender::Body::Ended(ended), &mut bytes);
        let stream = &mut self.stream;
        let patiently = stream.set_nonblocking(false).and_then(|()| stream.set_write_timeout(Some(PATIENCE)));
        match patiently.and_then(|()| stream.write_all(&bytes)) {
            // The environment has gone and does not need it.
            Err(error) if !is_gone(&error) => {
                Err(error).context(|| "telling the environment that the flow has ended".to_owned())
            }
            _ => Ok(()),
        }
    }

    /// Read all that has come.
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

    /// The file descriptor to poll in addition to the sender's own socket; `None` if there is nothing to wait for any
    /// more.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        (!self.over).then(|| self.stream.as_fd())
    }

    /// An interval closed at `now`, and the agent is to be asked.
    pub fn interval_closed(&mut self, now: Timestamp, sender: &Sender) -> Result<()> {
        let Some(interval) = self.account.close(now, sender, true) else { return Ok(()) };
        if self.over {
            return Ok(());
        }
        self.waiting.clear();
        tell(from_sender::Body::Interval(interval), &mut self.waiting);
        self.flush()
    }

    /// The file descriptor is readable: write the newest action to `action` if a whole one has come, and say whether.
    /// The sender applies it at once with `sender.decide(now, &action)`, and transmits.
    ///
    /// # Errors
    /// What came is not an action.
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

    /// The flow ended at `now`: its last interval is closed and told.
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

fn tell(body: from_sender::Body, out: &mut Vec<u8>) {
    frame(&FromSender { body: Some(body) }, out);
}
