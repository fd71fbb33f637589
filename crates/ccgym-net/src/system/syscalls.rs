//! System calls that our dependencies do not wrap safely. The unsafe code of `system` is here and in `supervise::init`.
#![allow(unsafe_code)] // ioctl, setsockopt and sched_setscheduler take raw pointers to plain structures.

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

use nix::sys::signal::{sigaction, SaFlags, SigAction, SigHandler, SigSet, Signal};
use nix::sys::socket::{socket, AddressFamily, SockFlag, SockType};

nix::ioctl_write_ptr_bad!(tunsetiff, libc::TUNSETIFF, libc::ifreq);
nix::ioctl_write_int_bad!(tunsetoffload, libc::TUNSETOFFLOAD);

/// Attach the open `/dev/net/tun` to a new device called `name` (a `%d` becomes a number); return its name.
pub(super) fn attach_tun(fd: BorrowedFd<'_>, name: &str, flags: i32) -> io::Result<String> {
    // SAFETY: all bytes zero are a valid ifreq.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (to, from) in request.ifr_name.iter_mut().take(libc::IFNAMSIZ - 1).zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = flags as libc::c_short;
    // SAFETY: the request is a valid ifreq that outlives the call. The kernel writes the device's name back into it.
    unsafe { tunsetiff(fd.as_raw_fd(), std::ptr::from_mut(&mut request)) }?;
    Ok(request.ifr_name.iter().take_while(|&&c| c != 0).map(|&c| char::from(c as u8)).collect())
}

/// Set the offloads that the reader of a TUN device supports.
pub(super) fn set_tun_offload(fd: BorrowedFd<'_>, offloads: u32) -> io::Result<()> {
    // SAFETY: the argument is an integer.
    unsafe { tunsetoffload(fd.as_raw_fd(), offloads as libc::c_int) }?;
    Ok(())
}

/// Open a non-blocking raw packet socket in this thread's namespace, without binding it.
pub(super) fn packet_socket() -> nix::Result<OwnedFd> {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    socket(AddressFamily::Packet, SockType::Raw, flags, None)
}

/// Bind a packet socket to the packets of `protocol` (as in the Ethernet header) that device `index` receives.
pub(super) fn bind_packet_socket(fd: BorrowedFd<'_>, index: u32, protocol: u16) -> io::Result<()> {
    // SAFETY: all bytes zero are a valid sockaddr_ll.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = protocol.to_be();
    address.sll_ifindex = index as i32;
    let size = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the address is a valid sockaddr_ll of the length given.
    check(unsafe { libc::bind(fd.as_raw_fd(), std::ptr::from_ref(&address).cast(), size) })
}

/// Set an integer option of a socket.
pub fn set_option(fd: BorrowedFd<'_>, level: i32, option: i32, value: i32) -> io::Result<()> {
    let size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the option is an integer, and so is the value of the length given.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, std::ptr::from_ref(&value).cast(), size) })
}

/// Read an option of a socket into `buffer`; return the part that the kernel filled, which may depend on its version.
pub(crate) fn get_option<'a>(
    fd: BorrowedFd<'_>,
    level: i32,
    option: i32,
    buffer: &'a mut [u8],
) -> io::Result<&'a [u8]> {
    let mut size = buffer.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes, the length of the buffer, and any bytes are valid.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), level, option, buffer.as_mut_ptr().cast(), &mut size) })?;
    Ok(&buffer[..buffer.len().min(size as usize)])
}

/// Return the packets for which a packet socket had no room since the last call.
pub(super) fn packet_socket_drops(fd: BorrowedFd<'_>) -> io::Result<u32> {
    // `struct tpacket_stats`: packets, drops.
    let mut stats = [0; 8];
    get_option(fd, libc::SOL_PACKET, libc::PACKET_STATISTICS, &mut stats)?;
    Ok(u32::from_ne_bytes([stats[4], stats[5], stats[6], stats[7]]))
}

/// Schedule this thread round-robin in real time, at the lowest priority.
pub(super) fn schedule_in_real_time() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 1 };
    // Children of this thread have the ordinary policy.
    let policy = libc::SCHED_RR | libc::SCHED_RESET_ON_FORK;
    // SAFETY: 0 is this thread; the parameters are a valid structure.
    check(unsafe { libc::sched_setscheduler(0, policy, &parameters) })
}

/// Schedule this thread only when no other thread can run.
pub(super) fn schedule_when_idle() -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is this thread; the parameters are a valid structure.
    check(unsafe { libc::sched_setscheduler(0, libc::SCHED_IDLE, &parameters) })
}

/// Schedule this thread as an ordinary one with this `nice` value and slices of `slice_ns` (kernels before 6.12 ignore
/// them): short slices let it run soon after it wakes up.
pub(super) fn schedule_in_slices(nice: i32, slice_ns: u64) -> io::Result<()> {
    // SAFETY: all bytes zero are a valid sched_attr.
    let mut attributes: libc::sched_attr = unsafe { std::mem::zeroed() };
    attributes.size = size_of::<libc::sched_attr>() as u32;
    attributes.sched_policy = libc::SCHED_OTHER as u32;
    attributes.sched_nice = nice;
    attributes.sched_runtime = slice_ns;
    // SAFETY: 0 is this thread; the attributes are a valid structure of the size that they state.
    let status = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, std::ptr::from_ref(&attributes), 0) };
    check(status as libc::c_int)
}

/// Restore the default action of a signal.
pub(super) fn reset(signal: Signal) -> nix::Result<()> {
    let action = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
    // SAFETY: no handler is installed that could run at a bad moment.
    unsafe { sigaction(signal, &action) }.map(|_| ())
}

/// Convert the status of a system call to a result.
pub(super) fn check(status: libc::c_int) -> io::Result<()> {
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
