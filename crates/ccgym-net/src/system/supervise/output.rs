//! Output of a program, kept within bounds.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use crate::error::{Context, Result};

/// First and last bytes that were written into a pipe. A thread reads the pipe, so that no writer waits for long.
#[derive(Debug)]
pub struct KeptOutput {
    kept: Arc<Mutex<Kept>>,
    reader: JoinHandle<()>,
}

#[derive(Debug)]
struct Kept {
    first: Vec<u8>,
    last: VecDeque<u8>,
    max_first: usize,
    max_last: usize,
    /// Bytes between the first and the last ones.
    left_out: u64,
}

impl Kept {
    fn add(&mut self, bytes: &[u8]) {
        let room = self.max_first - self.first.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.first.extend_from_slice(first);
        self.last.extend(rest);
        let surplus = self.last.len().saturating_sub(self.max_last);
        self.last.drain(..surplus);
        self.left_out += surplus as u64;
    }

    fn text(&self) -> String {
        let first = String::from_utf8_lossy(&self.first);
        let last: Vec<u8> = self.last.iter().copied().collect();
        let last = String::from_utf8_lossy(&last);
        if self.left_out == 0 || self.max_first == 0 {
            return format!("{first}{last}");
        }
        format!("{first}\n[… {} bytes left out …]\n{last}", self.left_out)
    }
}

impl KeptOutput {
    /// Keep the first and the last bytes that are written into the pipe, max this many of each.
    pub fn listen(pipe: OwnedFd, max_first: usize, max_last: usize) -> Result<Self> {
        let (first, last) = (Vec::new(), VecDeque::new());
        let kept = Arc::new(Mutex::new(Kept { first, last, max_first, max_last, left_out: 0 }));
        let reader = {
            let kept = Arc::clone(&kept);
            let read = move || {
                let mut pipe = File::from(pipe);
                let mut buffer = [0; 1 << 16];
                while let Ok(length @ 1..) = pipe.read(&mut buffer) {
                    kept.lock().unwrap_or_else(PoisonError::into_inner).add(&buffer[..length]);
                }
            };
            thread::Builder::new().name("ccgym-output".into()).spawn(read).context(|| "starting a thread".into())?
        };
        Ok(Self { kept, reader })
    }

    /// Return the text so far.
    pub fn text(&self) -> String {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner).text()
    }

    /// Wait until every writer has closed the pipe and all is read, max `patience`.
    pub fn wait(&self, patience: Duration) {
        let limit = Instant::now() + patience;
        while !self.reader.is_finished() && Instant::now() < limit {
            thread::sleep(Duration::from_millis(1));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn kept(max_first: usize, max_last: usize, written: &[&str]) -> String {
        let (reading, writing) = nix::unistd::pipe().unwrap();
        let output = KeptOutput::listen(reading, max_first, max_last).unwrap();
        let mut pipe = File::from(writing);
        for text in written {
            pipe.write_all(text.as_bytes()).unwrap();
        }
        drop(pipe);
        output.wait(Duration::from_secs(10));
        output.text()
    }

    #[test]
    fn beginning_and_end_are_kept() {
        assert_eq!(kept(4, 4, &["ab", "cd"]), "abcd");
        assert_eq!(kept(4, 4, &["abcde", "fgh"]), "abcdefgh");
        assert_eq!(kept(4, 4, &["abcdefghijk"]), "abcd\n[… 3 bytes left out …]\nhijk");
        assert_eq!(kept(0, 4, &["abcdefgh", "ijk"]), "hijk", "of the end alone");
    }

    #[test]
    fn a_flood_uses_bounded_memory() {
        let line = "x".repeat(100_000);
        let text = kept(10, 10, &vec![line.as_str(); 200]);
        assert_eq!(text, format!("{0}\n[… 19999980 bytes left out …]\n{0}", "x".repeat(10)));
    }
}
