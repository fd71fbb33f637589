//! The buffer between an application and its transport: data that was written and is not acknowledged.
//!
//! A greedy application writes whenever there is room. The time from then until the receiver can read it, in order, is
//! the applications' delay: mostly the wait in this buffer, if it is larger than the window.

use std::collections::VecDeque;

use ccgym_core::{Sender, TimeSpan, Timestamp};
use serde::{Deserialize, Serialize};

/// Data of the two applications of a flow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Application {
    /// Payload bytes written.
    pub written_bytes: u64,
    /// Payload bytes read, in order.
    pub read_bytes: u64,
    /// Time of the first read, …
    first_read: Timestamp,
    /// … of the last one, …
    last_read: Timestamp,
    /// … and the delay of that one since its write.
    delay: TimeSpan,
    /// Integral of that delay over the time from the first to the last read, square nanoseconds.
    delay_area: u128,
}

impl Application {
    /// Return the mean over time, from the first to the last read, of the delay from write to read; zero without.
    #[must_use]
    pub fn mean_delay(&self) -> TimeSpan {
        let time = self.last_read.since(self.first_read).0;
        TimeSpan(if time == 0 { self.delay.0 } else { (self.delay_area / u128::from(time)) as u64 })
    }
}

/// The send buffer of a flow with a greedy application.
#[derive(Clone, Debug)]
pub struct SendBuffer {
    segments: u64,
    mss: u64,
    /// Segments written together and not yet read: number, and time.
    unread: VecDeque<(u64, Timestamp)>,
    read: u64,
    application: Application,
}

impl SendBuffer {
    /// Make a buffer of `bytes`, at least one segment of `mss`.
    #[must_use]
    pub fn new(bytes: u64, mss: u32) -> Self {
        let mss = u64::from(mss);
        let segments = (bytes / mss).max(1);
        Self { segments, mss, unread: VecDeque::new(), read: 0, application: Application::default() }
    }

    /// Write as much as there is room for.
    pub fn fill(&mut self, now: Timestamp, sender: &mut Sender) {
        let room = (sender.acknowledged() + self.segments).saturating_sub(sender.written());
        if room > 0 {
            sender.write(room);
            self.unread.push_back((room, now));
            self.application.written_bytes += room * self.mss;
        }
    }

    /// Read the `segments` that the receiver has in order at `at`.
    pub fn read(&mut self, at: Timestamp, segments: u64) {
        let mut delay = None;
        while self.read < segments {
            let Some((count, written)) = self.unread.front_mut() else { break };
            let taken = (segments - self.read).min(*count);
            delay = Some(at.since(*written));
            self.read += taken;
            *count -= taken;
            if *count == 0 {
                self.unread.pop_front();
            }
        }
        let Some(delay) = delay else { return };
        let app = &mut self.application;
        if app.read_bytes == 0 {
            (app.first_read, app.last_read) = (at, at);
        }
        app.delay_area += u128::from(app.delay.0) * u128::from(at.since(app.last_read).0);
        (app.last_read, app.delay) = (at, delay);
        app.read_bytes = self.read * self.mss;
    }

    /// Return the data written and read so far.
    #[must_use]
    pub const fn application(&self) -> Application {
        self.application
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_mean_delay_is_one_over_time_not_over_segments() {
        let mut buffer = SendBuffer::new(10_000, 1000);
        buffer.unread.extend([(4, Timestamp(0)), (4, Timestamp(100))]);
        assert_eq!(buffer.application().mean_delay(), TimeSpan::ZERO);
        buffer.read(Timestamp(50), 1);
        assert_eq!(buffer.application().mean_delay(), TimeSpan(50));
        // Three at once, and nothing for a while.
        buffer.read(Timestamp(60), 4);
        buffer.read(Timestamp(110), 5);
        buffer.read(Timestamp(110), 4);
        let application = buffer.application();
        assert_eq!(application.read_bytes, 5000);
        assert_eq!(application.mean_delay(), TimeSpan((50 * 10 + 60 * 50) / 60));
    }
}
