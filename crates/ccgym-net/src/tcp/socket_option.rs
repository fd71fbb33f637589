//! Socket options that are answered with a structure whose length depends on the kernel.
#![allow(unsafe_code)] // getsockopt takes a raw pointer, and no crate that we use reads these options at any length.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Read an option of TCP's level into `buffer`; the answer is what the kernel filled of it.
pub(super) fn tcp_option<'a>(socket: BorrowedFd<'_>, option: i32, buffer: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let mut length = libc::socklen_t::try_from(buffer.len()).unwrap_or(libc::socklen_t::MAX);
    // SAFETY: the kernel writes at most `length` bytes, which is no more than the buffer has, and any bytes are valid.
    let status = unsafe {
        let to = buffer.as_mut_ptr().cast();
        libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, option, to, &mut length)
    };
    if status < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(&buffer[..buffer.len().min(length as usize)])
}
