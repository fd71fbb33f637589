//! Check that a program listens, by the tables of the kernel.

use std::fs;

/// Return true if a TCP socket listens, or a UDP socket is bound, at a port of this thread's namespace.
pub(crate) fn is_listened_on(port: u16) -> bool {
    const TCP_LISTEN: &str = "0A";
    ["tcp", "tcp6", "udp", "udp6"].iter().any(|kind| {
        let table = fs::read_to_string(format!("/proc/thread-self/net/{kind}")).unwrap_or_default();
        table.lines().skip(1).any(|line| {
            let mut fields = line.split_ascii_whitespace().skip(1);
            let (local, state) = (fields.next().unwrap_or(""), fields.nth(1).unwrap_or(""));
            let here = local.rsplit(':').next().is_some_and(|hex| u16::from_str_radix(hex, 16) == Ok(port));
            here && (kind.starts_with("udp") || state == TCP_LISTEN)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listening_sockets_are_found() {
        let (tcp, udp) = (listener(), std::net::UdpSocket::bind("127.0.0.1:0").unwrap());
        let (tcp_port, udp_port) = (tcp.local_addr().unwrap().port(), udp.local_addr().unwrap().port());
        // Reading the table may miss a line while other tests change it.
        let is_seen = |port| (0..20).any(|_| is_listened_on(port));
        assert!(is_seen(tcp_port) && is_seen(udp_port));
        // Another test may take a port as soon as it is free: try several.
        let closed_port = || listener().local_addr().unwrap().port();
        assert!((0..20).any(|_| !is_listened_on(closed_port())));
    }

    fn listener() -> std::net::TcpListener {
        std::net::TcpListener::bind("127.0.0.1:0").unwrap()
    }
}
