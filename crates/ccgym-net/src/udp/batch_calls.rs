//! System calls without a safe wrapper: many datagrams at once, with the kernel's control messages for each.
//!
//! `nix` has `recvmmsg` and `sendmmsg`, but one set of control messages for all datagrams of a call; here every batch
//! has its own segment size, and headers are kept between calls.
#![allow(unsafe_code)]

use std::io;
use std::mem::{size_of, zeroed};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};

use socket2::{SockAddr, SockAddrStorage};

/// Bytes for control messages: a time stamp, a segment size and the ECN bits take 72.
const CONTROL: usize = 128;

/// Buffer for control messages, with the alignment that the kernel expects.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL]);

/// One datagram, or several of equal size that the kernel coalesced (GRO).
#[derive(Clone, Copy, Debug)]
pub struct Incoming<'a> {
    /// Payload.
    pub bytes: &'a [u8],
    /// Bytes of each datagram in `bytes`; the last may be shorter.
    pub segment: usize,
    /// Address of the sender.
    pub from: SocketAddr,
    /// `CLOCK_REALTIME` at arrival, nanoseconds; 0 if unknown.
    pub arrived_ns: u64,
    /// Traffic class of the IP header: its low two bits are ECN.
    pub class: u8,
}

impl Incoming<'_> {
    /// Return each datagram, empty ones included.
    pub fn datagrams(&self) -> impl Iterator<Item = &[u8]> {
        let empty = self.bytes.is_empty().then_some(self.bytes);
        self.bytes.chunks(self.segment).chain(empty)
    }
}

/// Buffers for many datagrams.
pub struct Inbox {
    /// Memory that `headers` point to, as to `_vectors`, `names` and `controls`. Never reallocated.
    storage: Box<[u8]>,
    slot: usize,
    headers: Box<[libc::mmsghdr]>,
    _vectors: Box<[libc::iovec]>,
    names: Box<[SockAddrStorage]>,
    controls: Box<[Control]>,
    filled: usize,
}

// SAFETY: the pointers point to boxes that the struct owns and that move with it.
unsafe impl Send for Inbox {}

impl Inbox {
    /// Allocate buffers for `count` datagrams of up to `slot` bytes.
    pub fn new(count: usize, slot: usize) -> Self {
        // SAFETY: this C struct is plain data for which all zeros is a valid value.
        let header: libc::mmsghdr = unsafe { zeroed() };
        let mut storage = vec![0u8; count * slot].into_boxed_slice();
        let mut names: Box<[_]> = (0..count).map(|_| SockAddrStorage::zeroed()).collect();
        let mut controls = vec![Control([0; CONTROL]); count].into_boxed_slice();
        let mut vectors: Box<[libc::iovec]> = storage
            .chunks_exact_mut(slot)
            .map(|chunk| libc::iovec { iov_base: chunk.as_mut_ptr().cast(), iov_len: slot })
            .collect();
        let mut headers = vec![header; count].into_boxed_slice();
        for (i, header) in headers.iter_mut().enumerate() {
            header.msg_hdr.msg_iov = &mut vectors[i];
            header.msg_hdr.msg_iovlen = 1;
            header.msg_hdr.msg_name = std::ptr::from_mut(&mut names[i]).cast();
            header.msg_hdr.msg_control = controls[i].0.as_mut_ptr().cast();
            header.msg_hdr.msg_namelen = size_of::<SockAddrStorage>() as u32;
            header.msg_hdr.msg_controllen = CONTROL as _;
        }
        Self { storage, slot, headers, _vectors: vectors, names, controls, filled: 0 }
    }

    /// Receive without waiting. Return the number of datagrams or batches.
    pub fn receive(&mut self, socket: BorrowedFd<'_>) -> io::Result<usize> {
        // Reset the fields that the kernel overwrote.
        for header in &mut self.headers[..self.filled] {
            header.msg_hdr.msg_flags = 0;
            header.msg_hdr.msg_namelen = size_of::<SockAddrStorage>() as u32;
            header.msg_hdr.msg_controllen = CONTROL as _;
        }
        self.filled = 0;
        // SAFETY: every header points to a name, a vector and a control buffer of this struct with their true sizes.
        let count = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.headers.as_mut_ptr(),
                self.headers.len() as u32,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        if count < 0 {
            return Err(io::Error::last_os_error());
        }
        self.filled = count as usize;
        Ok(self.filled)
    }

    /// Return datagram `index` of the last call.
    pub fn get(&self, index: usize) -> Option<Incoming<'_>> {
        let header = self.headers[..self.filled].get(index)?;
        let start = index * self.slot;
        let bytes = self.storage.get(start..start + header.msg_len as usize)?;
        // SAFETY: the kernel wrote the name and its length, and any bytes are a valid storage.
        let from = unsafe { SockAddr::new(std::ptr::read(&self.names[index]), header.msg_hdr.msg_namelen) };
        let from = from.as_socket()?;
        let mut incoming = Incoming { bytes, segment: bytes.len().max(1), from, arrived_ns: 0, class: 0 };
        if header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0 {
            incoming.bytes = &[];
        }
        read_control(&header.msg_hdr, &self.controls[index], &mut incoming);
        Some(incoming)
    }
}

fn read_control(header: &libc::msghdr, control: &Control, into: &mut Incoming<'_>) {
    // Each control message: a header of length, level and type, then its data, aligned.
    const HEADER: usize = size_of::<libc::cmsghdr>();
    let filled = &control.0[..header.msg_controllen.min(CONTROL)];
    let int = |at: usize| filled.get(at..at + 4).and_then(|b| b.try_into().ok()).map(i32::from_ne_bytes);
    let long = |at: usize| filled.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_ne_bytes);
    let mut at = 0;
    while let (Some(length), Some(level), Some(kind)) = (long(at), int(at + 8), int(at + 12)) {
        let data = at + HEADER;
        match (level, kind) {
            (libc::SOL_SOCKET, libc::SO_TIMESTAMPNS) => {
                let (seconds, nanos) = (long(data).unwrap_or(0), long(data + 8).unwrap_or(0));
                into.arrived_ns = seconds.wrapping_mul(1_000_000_000).wrapping_add(nanos);
            }
            (libc::SOL_UDP, libc::UDP_GRO) => into.segment = int(data).map_or(into.segment, |n| n.max(1) as usize),
            (libc::IPPROTO_IP, libc::IP_TOS) => into.class = filled.get(data).copied().unwrap_or(0),
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => into.class = int(data).unwrap_or(0) as u8,
            _ => {}
        }
        if (length as usize) < HEADER {
            return;
        }
        at += (length as usize).next_multiple_of(size_of::<usize>());
    }
}

/// Datagrams of equal size (the last may be shorter) to one address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GsoBatch {
    /// Index of the first byte.
    pub start: usize,
    /// Index after the last byte.
    pub end: usize,
    /// Bytes of one datagram.
    pub segment: usize,
    /// Destination; `None` on a connected socket.
    pub to: Option<SocketAddr>,
}

/// Max batches that one call sends.
const MAX_BATCHES: usize = 32;

/// Headers for [`Outgoing::send`].
pub struct Outgoing {
    headers: Box<[libc::mmsghdr]>,
    vectors: Box<[libc::iovec]>,
    names: Vec<SockAddr>,
    controls: Box<[Control]>,
}

// SAFETY: each call sets the pointers; they point into the struct and the arguments of the call.
unsafe impl Send for Outgoing {}

impl Outgoing {
    /// Allocate headers for [`MAX_BATCHES`] batches.
    pub fn new() -> Self {
        // SAFETY: these C structs are plain data for which all zeros is a valid value.
        let (header, vector): (libc::mmsghdr, libc::iovec) = unsafe { (zeroed(), zeroed()) };
        Self {
            headers: vec![header; MAX_BATCHES].into(),
            vectors: vec![vector; MAX_BATCHES].into(),
            names: Vec::with_capacity(MAX_BATCHES),
            controls: vec![Control([0; CONTROL]); MAX_BATCHES].into(),
        }
    }

    /// Send the first batches without waiting. Return the number that the kernel took, one or more.
    pub fn send(&mut self, socket: BorrowedFd<'_>, bytes: &[u8], batches: &[GsoBatch]) -> io::Result<usize> {
        let count = batches.len().min(MAX_BATCHES);
        self.names.clear();
        self.names.extend(batches[..count].iter().filter_map(|batch| batch.to).map(SockAddr::from));
        let mut names = self.names.iter();
        for (i, batch) in batches[..count].iter().enumerate() {
            let payload = bytes.get(batch.start..batch.end).unwrap_or_default();
            // The kernel only reads what this points to.
            self.vectors[i] = libc::iovec { iov_base: payload.as_ptr().cast_mut().cast(), iov_len: payload.len() };
            let header = &mut self.headers[i].msg_hdr;
            header.msg_iov = &mut self.vectors[i];
            header.msg_iovlen = 1;
            (header.msg_name, header.msg_namelen) = (std::ptr::null_mut(), 0);
            (header.msg_control, header.msg_controllen) = (std::ptr::null_mut(), 0);
            if let Some(name) = batch.to.and_then(|_| names.next()) {
                header.msg_namelen = name.len();
                header.msg_name = name.as_ptr().cast_mut().cast();
            }
            if payload.len() > batch.segment {
                let space = segment_control(&mut self.controls[i], batch.segment);
                header.msg_control = self.controls[i].0.as_mut_ptr().cast();
                header.msg_controllen = space as _;
            }
        }
        // SAFETY: the first `count` headers point to live memory of the stated sizes.
        let sent =
            unsafe { libc::sendmmsg(socket.as_raw_fd(), self.headers.as_mut_ptr(), count as u32, libc::MSG_DONTWAIT) };
        if sent < 0 {
            return Err(io::Error::last_os_error());
        }
        Ok(sent as usize)
    }
}

/// Write the control message with the segment size of a batch. Return its length.
fn segment_control(control: &mut Control, segment: usize) -> usize {
    const HEADER: usize = size_of::<libc::cmsghdr>();
    control.0[..8].copy_from_slice(&((HEADER + 2) as u64).to_ne_bytes());
    control.0[8..12].copy_from_slice(&libc::SOL_UDP.to_ne_bytes());
    control.0[12..16].copy_from_slice(&libc::UDP_SEGMENT.to_ne_bytes());
    control.0[HEADER..HEADER + 2].copy_from_slice(&(segment as u16).to_ne_bytes());
    HEADER + 8
}
