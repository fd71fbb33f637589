//! Log files of a path: mahimahi's link log, and the log of a tunnel over it that Pantheon's analysis reads.
//!
//! The text is written fast: half a minute at 80 Mbit/s has half a million lines. A file appears only when complete.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use ccgym_path::log::{write_events, LogHeader};
use ccgym_path::LinkEvent;
use nix::fcntl::{AtFlags, OFlag, AT_FDCWD};
use nix::unistd::linkat;

use crate::error::{Context, Error, Result};

/// Write mahimahi's link log; `comments`: further lines of the header.
pub fn write_link_log(
    out: &mut impl Write,
    header: &LogHeader,
    comments: &[String],
    events: &[LinkEvent],
) -> io::Result<()> {
    write!(out, "{header}")?;
    for comment in comments {
        writeln!(out, "# {comment}")?;
    }
    write_events(out, header.base_ms, events)
}

/// A file that gets its name when it is complete.
///
/// Until then it has no name, if the file system supports that: it disappears if the process ends, for any reason.
#[derive(Debug)]
pub struct LogFile {
    path: PathBuf,
    target: Target,
}

#[derive(Debug)]
enum Target {
    /// A file without name in the target's directory.
    Nameless(File),
    /// Without support for such files: a temporary name in the same directory, at the time of writing.
    Later,
    /// A device or pipe.
    Direct(File),
}

impl LogFile {
    /// Open the file, to detect errors early.
    pub fn create(path: &Path) -> Result<Self> {
        let step = || format!("making the log {}", path.display());
        // Follow links, so that their target is replaced.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        match fs::metadata(&path) {
            Ok(known) if known.is_dir() => {
                return Err(Error::of("file-unwritable", step(), "it is a directory").expected("the name of a file"))
            }
            Ok(known) if !known.is_file() => {
                let file = OpenOptions::new().write(true).open(&path).context(step)?;
                return Ok(Self { path, target: Target::Direct(file) });
            }
            _ => {}
        }
        let folder = folder(&path);
        let nameless = OFlag::O_TMPFILE.bits();
        let target = match OpenOptions::new().write(true).mode(0o666).custom_flags(nameless).open(&folder) {
            Ok(file) => Target::Nameless(file),
            Err(error) if error.kind() == io::ErrorKind::NotFound || !folder.is_dir() => {
                let hint = format!("make the directory {} first", folder.display());
                return Err(Error::of("file-unwritable", step(), error).hint(hint));
            }
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                return Err(Error::of("file-unwritable", step(), error))
            }
            Err(_) => Target::Later,
        };
        Ok(Self { path, target })
    }

    /// Write the content and give the file its name.
    pub fn write(self, content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<()> {
        let path = self.path.clone();
        self.try_write(content).context(|| format!("writing the log {}", path.display()))
    }

    fn try_write(self, content: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
        let temporary = || {
            let name = self.path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            folder(&self.path).join(format!(".{name}.{}.tmp", std::process::id()))
        };
        let fill = |file: File| {
            let mut out = BufWriter::with_capacity(1 << 20, file);
            content(&mut out)?;
            out.into_inner().map_err(io::IntoInnerError::into_error)
        };
        match self.target {
            Target::Direct(file) => fill(file).map(drop),
            Target::Nameless(file) => {
                let file = fill(file)?;
                let now = PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()));
                let name = |to: &Path| linkat(AT_FDCWD, &now, AT_FDCWD, to, AtFlags::AT_SYMLINK_FOLLOW);
                if name(&self.path).is_err() {
                    // Replace an existing file atomically.
                    name(&temporary())?;
                    replace(&temporary(), &self.path)?;
                }
                Ok(())
            }
            Target::Later => {
                fill(File::create(temporary())?).inspect_err(|_| drop(fs::remove_file(temporary())))?;
                replace(&temporary(), &self.path)
            }
        }
    }
}

fn replace(from: &Path, to: &Path) -> io::Result<()> {
    fs::rename(from, to).inspect_err(|_| drop(fs::remove_file(from)))
}

fn folder(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_owned(),
        _ => PathBuf::from("."),
    }
}

#[cfg(test)]
mod tests {
    use ccgym_core::units::Timestamp;
    use ccgym_path::log::{parse_log, LogLine};

    use super::*;

    fn ms(value: u64) -> Timestamp {
        Timestamp::from_millis(value)
    }

    #[test]
    fn a_link_log_reads_back() {
        let header = LogHeader {
            title: "mm-link (Uplink) [a.trace] > u.log".into(),
            command: "'mm-link' 'a.trace'".into(),
            queue: "droptail [packets=2]".into(),
            init_ms: 1_700_000_000_000,
            base_ms: 7,
            config: Some("[delay 20 ms] ".into()),
        };
        let events = [
            LinkEvent::Opportunity(ms(1), 1504),
            LinkEvent::Arrival(ms(2), 1504, 0),
            LinkEvent::Departure(ms(4), 1504, 0, ms(2)),
            LinkEvent::Drop(ms(5), 104, 0),
        ];
        let mut text = Vec::new();
        write_link_log(&mut text, &header, &["seed: 3".into()], &events).unwrap();
        let (read, lines) = parse_log(&text).unwrap();
        assert_eq!(read, header);
        assert_eq!(lines[2], LogLine::Departure { ms: 11, bytes: 1504, delay_ms: 2 });
        assert_eq!(lines[3], LogLine::Drop { ms: 12, packets: 1, bytes: 104 });
        let end = "# mahimahi config: [delay 20 ms] \n# seed: 3\n8 # 1504\n9 + 1504\n11 - 1504 2\n# 12 d 1 104\n";
        assert!(String::from_utf8(text).unwrap().ends_with(end));
    }

    #[test]
    fn a_file_appears_whole_or_not_at_all() {
        let folder = std::env::temp_dir().join(format!("ccgym-logs-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let names = || fs::read_dir(&folder).unwrap().count();
        let path = folder.join("a.log");
        let file = LogFile::create(&path).unwrap();
        assert_eq!(names(), 0);
        drop(file);
        assert_eq!(names(), 0);
        for text in ["one", "two"] {
            LogFile::create(&path).unwrap().write(|out| out.write_all(text.as_bytes())).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        let failed = LogFile::create(&path).unwrap().write(|_| Err(io::Error::other("full")));
        assert!(failed.unwrap_err().place.ends_with("a.log"));
        assert_eq!((fs::read_to_string(&path).unwrap().as_str(), names()), ("two", 1));
        LogFile::create(Path::new("/dev/null")).unwrap().write(|out| out.write_all(b"x")).unwrap();
        for place in [folder.join("none/a.log"), folder.clone()] {
            assert_eq!(LogFile::create(&place).unwrap_err().code, "file-unwritable", "{}", place.display());
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}
