//! Steps between fork and exec of a supervised program.
#![allow(unsafe_code)] // `pre_exec` and `fork` are unsafe: only system calls may follow, and only they follow here.

use std::ffi::{CStr, CString};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::process::CommandExt;
use std::process::Command;

use nix::sys::signal::SigSet;

use crate::system::syscalls::check;

/// User that a program runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum User {
    /// User of this process.
    Ours,
    /// Another user of the machine.
    Other {
        /// User.
        uid: u32,
        /// Main group.
        gid: u32,
        /// Other groups.
        groups: Vec<u32>,
    },
    /// User and group of this process before it entered a user namespace, in which it appears as root.
    Before(u32, u32),
}

/// Processes with which a program gets signals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Group {
    /// Process group of this process.
    Ours,
    /// Process group of its own, in the foreground of the terminal that is its standard input.
    Foreground,
    /// Session of its own.
    Session,
}

/// Settings for the start of a program.
pub(super) struct Start {
    pub user: User,
    pub group: Group,
    /// True if `/proc` has only the processes of the namespace, where the kernel permits this mount.
    pub own_proc: bool,
    /// Descriptors that it keeps.
    pub kept: Vec<RawFd>,
    /// Signals that are blocked for it; `None`: as in this thread.
    pub mask: Option<SigSet>,
    /// Pipe that gets a byte each time a program in the foreground stops; closed when the first process ends.
    pub stops: OwnedFd,
}

/// Request to the first process: end the program's process group, then itself when no process is left.
pub(super) const ASK: libc::c_int = libc::SIGUSR2;
/// Request to it: give the program the terminal, and let it continue.
pub(super) const RESUME: libc::c_int = libc::SIGUSR1;
/// Signals that it waits for: these two, the end of a process, and those that it forwards to the program.
const AWAITED: [libc::c_int; 8] =
    [libc::SIGCHLD, ASK, RESUME, libc::SIGTERM, libc::SIGINT, libc::SIGHUP, libc::SIGQUIT, libc::SIGCONT];
/// Descriptor of [`Start::stops`] in the first process.
const STOPS: RawFd = 3;

/// Put a first process above the program that `command` starts: `spawn` then returns the first process.
///
/// The first process waits for all others. It ends when the program ends, with its status (128 + signal if a signal
/// ended it), and when the thread that started it ends. If it is the first process of its PID namespace, no process of
/// the namespace survives it. It forwards signals from outside the namespace.
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
    // SAFETY: system calls on integers, on lists that outlive them, and on local values.
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
                // If the terminal is gone, the program gets the error.
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
                // If the outer user namespace denies it already, it stays denied.
                let _ = write(c"/proc/self/setgroups", c"deny");
                write(c"/proc/self/uid_map", &maps[0])?;
                write(c"/proc/self/gid_map", &maps[1])?;
            }
        }
        // Rust and Python ignore these signals; programs expect the default actions.
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
        libc::signal(libc::SIGXFSZ, libc::SIG_DFL);
        if let Some(mask) = &start.mask {
            check(libc::sigprocmask(libc::SIG_SETMASK, mask.as_ref(), std::ptr::null_mut()))?;
        }
    }
    Ok(())
}

fn write(path: &CStr, text: &CStr) -> io::Result<()> {
    // SAFETY: system calls on strings that outlive them; a descriptor that is left open vanishes with the next exec.
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
        // Blocked signals wait until they are fetched, including those that a first process would otherwise never get.
        let mut awaited = std::mem::zeroed();
        libc::sigemptyset(&mut awaited);
        for signal in AWAITED {
            libc::sigaddset(&mut awaited, signal);
        }
        let mut blocked = awaited;
        // Blocked, so that it may give the terminal away from the background.
        libc::sigaddset(&mut blocked, libc::SIGTTOU);
        libc::sigprocmask(libc::SIG_SETMASK, &blocked, std::ptr::null_mut());
        // If it is ignored, as some parents leave it, waiting for children fails.
        libc::signal(libc::SIGCHLD, libc::SIG_DFL);
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_NAME, c"ccgym-init".as_ptr());
        // Close all others, including the pipe that reports the exec to the starter: only the program may hold it now.
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
            // Processes that were asked to end with the program may take longer.
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
                // The terminal itself signals all processes of its foreground group.
                signal if info.si_code == libc::SI_USER => {
                    libc::kill(if group == Group::Ours { program } else { -program }, signal);
                }
                _ => {}
            }
        }
    }
}
