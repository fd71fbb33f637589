//! What happens between fork and exec of a supervised program.
#![allow(unsafe_code)] // `pre_exec` and `fork` are unsafe: only system calls may follow, and here only such follow.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::SigSet;

use crate::system::syscalls::check;

/// The user that a program runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum User {
    /// As this process.
    Ours,
    /// Another user of the machine.
    Other {
        /// User.
        uid: u32,
        /// Its main group.
        gid: u32,
        /// Its other groups.
        groups: Vec<u32>,
    },
    /// The user and group that this process had before it entered a user namespace, in which it appears as root.
    Before(u32, u32),
}

/// The processes with which a program gets signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Those of this process.
    Ours,
    /// A process group of its own, in the foreground of the terminal that is its standard input.
    Foreground,
    /// A session of its own.
    Session,
}

/// How a program is started.
pub(super) struct Start {
    pub user: User,
    pub group: Group,
    /// Whether `/proc` shows it the processes of the namespace alone, where the kernel lets that be mounted.
    pub own_proc: bool,
    /// Descriptors that it keeps.
    pub kept: Vec<RawFd>,
    /// Signals that are blocked for it; `None`: as in this thread.
    pub mask: Option<SigSet>,
    /// Gets a byte each time that a program in the foreground stops, and is closed when the first process ends.
    pub stops: OwnedFd,
}

/// Asks the first process to end the program's process group, and to end itself once no process is left.
pub(super) const ASK: libc::c_int = libc::SIGUSR2;
/// Asks it to give the program the terminal, and to let it go on.
pub(super) const RESUME: libc::c_int = libc::SIGUSR1;
/// What it waits for: these two, the end of a process, and what it passes on to the program.
const AWAITED: [libc::c_int; 8] =
    [libc::SIGCHLD, ASK, RESUME, libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGCONT];
/// Where the first process has [`Start::stops`].
const STOPS: RawFd = 3;

/// Let the program that `command` starts have a first process above it: `spawn` then returns that one.
///
/// The first process waits for all others. It ends when the program ends, with its status (128 + signal, if it died of
/// one), and when the thread that started it ends. If it is the first process of its PID namespace, nothing in there
/// survives it. Signals that come from outside of the namespace it passes on.
pub(super) fn start_under_init(command: &mut Command, start: Start) {
    let proc_text = |text: String| CString::new(text).unwrap_or_default();
    let maps = match start.user {
        User::Before(uid, gid) => [format!("{uid} 0 1"), format!("{gid} 0 1")].map(proc_text),
        _ => Default::default(),
    };
    // SAFETY: the closure makes system calls on plain values, and allocates, frees and locks nothing.
    unsafe {
        command.pre_exec(move || {
            if start.own_proc {
                let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
                libc::mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), flags, std::ptr::null());
            }
            match libc::fork() {
                -1 => Err(io::Error::last_os_error()),
                0 => become_the_program(&start, &maps),
                program => first_process(program, start.group, start.stops.as_raw_fd()),
            }
        });
    }
}

fn become_the_program(start: &Start, maps: &[CString; 2]) -> io::Result<()> {
    // SAFETY: system calls on integers, on lists that live on, and on local values.
    unsafe {
        match start.group {
            Group::Ours => {}
            Group::Session => check(libc::setsid())?,
            Group::Foreground => {
                check(libc::setpgid(0, 0))?;
                let mut quiet = std::mem::zeroed();
                libc::sigemptyset(&mut quiet);
                libc::sigaddset(&mut quiet, libc::SIGTTOU);
                libc::sigprocmask(libc::SIG_BLOCK, &quiet, std::ptr::null_mut());
                // If the terminal is gone, the program will notice.
                libc::tcsetpgrp(0, libc::getpid());
                libc::sigprocmask(libc::SIG_UNBLOCK, &quiet, std::ptr::null_mut());
            }
        }
        for &fd in &start.kept {
            check(libc::fcntl(fd, libc::F_SETFD, 0))?;
        }
        match &start.user {
            User::Ours => {}
            User::Other { uid, gid, groups } => {
                check(libc::setgroups(groups.len(), groups.as_ptr()))?;
                check(libc::setresgid(*gid, *gid, *gid))?;
                check(libc::setresuid(*uid, *uid, *uid))?;
            }
            User::Before(..) => {
                check(libc::unshare(libc::CLONE_NEWUSER))?;
                // Where the outer user namespace denies it already, it stays denied.
                let _ = write(c"/proc/self/setgroups", c"deny");
                write(c"/proc/self/uid_map", &maps[0])?;
                write(c"/proc/self/gid_map", &maps[1])?;
            }
        }
        // Rust and Python ignore these; programs that they start expect them to be as they were.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
        if let Some(mask) = &start.mask {
            check(libc::sigprocmask(libc::SIG_SETMASK, mask.as_ref(), std::ptr::null_mut()))?;
        }
    }
    Ok(())
}

fn write(path: &CStr, text: &CStr) -> io::Result<()> {
    // SAFETY: system calls on strings that live on; what is not closed vanishes with the next exec.
    unsafe {
        let fd = libc::open(path.as_ptr(), libc::O_WRONLY | libc::O_CLOEXEC);
        check(fd)?;
        check(libc::write(fd, text.as_ptr().cast(), text.count_bytes()) as libc::c_int)
    }
}

fn first_process(program: libc::pid_t, group: Group, stops: RawFd) -> ! {
    // SAFETY: system calls on integers, on a string of this program and on local values. This process has no other
    // thread, and nothing of it runs after this function.
    unsafe {
        // Blocked signals wait to be fetched, also those that a first process would otherwise never see.
        let mut awaited = std::mem::zeroed();
        libc::sigemptyset(&mut awaited);
        for signal in AWAITED {
            libc::sigaddset(&mut awaited, signal);
        }
        let mut blocked = awaited;
        // So that it may give the terminal away from the background.
        libc::sigaddset(&mut blocked, libc::SIGTTOU);
        libc::sigprocmask(libc::SIG_SETMASK, &blocked, std::ptr::null_mut());
        // Where it is ignored, as some parents leave it, waiting for children fails.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_NAME, c"ccgym-init".as_ptr());
        // Also the pipe that tells the starter that the program was executed: only the program may hold it now.
        libc::dup2(stops, STOPS);
        libc::syscall(libc::SYS_close_range, u32::from(group == Group::Foreground), STOPS - 1, 0);
        libc::syscall(libc::SYS_close_range, STOPS + 1, libc::c_uint::MAX, 0);
        libc::chdir(c"/".as_ptr());
        let (mut asked, mut code) = (false, 127);
        loop {
            let mut status = 0;
            let changed = libc::waitpid(-1, &mut status, libc::WNOHANG | libc::WUNTRACED);
            if changed > 0 && libc::WIFSTOPPED(status) {
                if changed == program && group == Group::Foreground {
                    libc::write(STOPS, c"s".as_ptr().cast(), 1);
                }
                continue;
            }
            if changed == program {
                let signal = libc::WTERMSIG(status);
                code = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + signal };
            }
            let none_is_left = changed < 0 && *libc::__errno_location() != libc::EINTR;
            // Those that were asked to end with the program may take longer for it.
            if none_is_left || (changed == program && !asked) {
                libc::_exit(code);
            }
            if changed != 0 {
                continue;
            }
            let mut info: libc::siginfo_t = std::mem::zeroed();
            match libc::sigwaitinfo(&awaited, &mut info) {
                libc::SIGCHLD | -1 => {}
                ASK => {
                    asked = true;
                    for signal in [libc::SIGTERM, libc::SIGCONT] {
                        if libc::kill(-program, signal) < 0 {
                            libc::kill(program, signal);
                        }
                    }
                }
                RESUME => {
                    libc::tcsetpgrp(0, program);
                    libc::kill(-program, libc::SIGCONT);
                }
                // The terminal tells all processes of its foreground group itself.
                signal if info.si_code == libc::SI_USER => {
                    libc::kill(if group == Group::Ours { program } else { -program }, signal);
                }
                _ => {}
            }
        }
    }
}
