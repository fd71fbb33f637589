//! What happens between fork and exec of a program in isolation.
#![allow(unsafe_code)] // `pre_exec` and `fork` are unsafe: only system calls may follow, and here only such follow.

use std::io;
use std::os::fd::RawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use serde::{Deserialize, Serialize};

/// An ordinary user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// User.
    pub uid: u32,
    /// Its group.
    pub gid: u32,
}

/// Let the program that `command` starts have a first process above it: `spawn` then returns that one.
///
/// The first process waits for all others. It ends when the program ends, with its status (128 + signal, if it died of
/// one), and when the thread that started it ends. If it is the first process of its PID namespace, nothing in there
/// survives it. SIGTERM it passes on to the program's process group; then it ends when no process is left.
///
/// The program itself leads a session of its own, is `user`, and keeps the descriptors `kept`. With `own_proc`, `/proc`
/// shows it the processes of the namespace alone, where the kernel lets that be mounted.
pub(super) fn start_under_init(command: &mut Command, user: Option<User>, own_proc: bool, kept: Vec<RawFd>) {
    // SAFETY: the closure makes system calls on plain values, and allocates, frees and locks nothing.
    unsafe {
        command.pre_exec(move || {
            if own_proc {
                let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
                libc::mount(c"proc".as_ptr(), c"/proc".as_ptr(), c"proc".as_ptr(), flags, std::ptr::null());
            }
            match libc::fork() {
                -1 => Err(io::Error::last_os_error()),
                0 => become_the_program(user, &kept),
                program => first_process(program),
            }
        });
    }
}

fn become_the_program(user: Option<User>, kept: &[RawFd]) -> io::Result<()> {
    let check = |status: libc::c_int| if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
    // SAFETY: system calls on integers; the list of groups is empty.
    unsafe {
        check(libc::setsid())?;
        for &fd in kept {
            check(libc::fcntl(fd, libc::F_SETFD, 0))?;
        }
        if let Some(User { uid, gid }) = user {
            check(libc::setgroups(0, std::ptr::null()))?;
            check(libc::setresgid(gid, gid, gid))?;
            check(libc::setresuid(uid, uid, uid))?;
        }
    }
    Ok(())
}

fn first_process(program: libc::pid_t) -> ! {
    // SAFETY: system calls on integers, on a string of this program and on local values. This process has no other
    // thread, and nothing of it runs after this function.
    unsafe {
        // Blocked signals wait to be fetched, also those that a first process would otherwise never see.
        let mut awaited = std::mem::zeroed();
        libc::sigemptyset(&mut awaited);
        libc::sigaddset(&mut awaited, libc::SIGCHLD);
        libc::sigaddset(&mut awaited, libc::SIGTERM);
        libc::sigprocmask(libc::SIG_SETMASK, &awaited, std::ptr::null_mut());
        libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
        libc::prctl(libc::PR_SET_NAME, c"ccgym-init".as_ptr());
        // Also the pipe that tells the starter that the program was executed: only the program may hold it now.
        libc::syscall(libc::SYS_close_range, 0, libc::c_uint::MAX, 0);
        libc::chdir(c"/".as_ptr());
        let (mut asked, mut code) = (false, 127);
        loop {
            let mut status = 0;
            let ended = libc::waitpid(-1, &mut status, libc::WNOHANG);
            if ended == program {
                let signal = libc::WTERMSIG(status);
                code = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + signal };
            }
            let nobody_is_left = ended < 0 && *libc::__errno_location() != libc::EINTR;
            // Those that were asked to end with the program may take longer for it.
            if nobody_is_left || (ended == program && !asked) {
                libc::_exit(code);
            }
            if ended == 0 && libc::sigwaitinfo(&awaited, std::ptr::null_mut()) == libc::SIGTERM {
                asked = true;
                libc::kill(-program, libc::SIGTERM);
            }
        }
    }
}
