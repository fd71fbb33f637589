//! External programs for tests: this binary.

use std::net::UdpSocket;
use std::thread::sleep;
use std::time::Duration;

use super::{helper, joined};

/// Bytes of payload that the programs send, and of their IP packets.
pub const PAYLOAD: usize = 972;
pub const PACKET: u32 = 1000;

/// Return a script that becomes a program of the tests of programs.
pub fn becoming(name: &str) -> String {
    format!("PORT={{port}} ADDRESS={{address}} exec {}", joined(&helper(&format!("common::programs::{name}"))))
}

fn variable(name: &str) -> String {
    std::env::var(name).unwrap()
}

#[test]
#[ignore = "a program for the other tests"]
fn sink() {
    let socket = UdpSocket::bind(("0.0.0.0", variable("PORT").parse().unwrap())).unwrap();
    println!("listening");
    while socket.recv(&mut [0; 2000]).is_ok() {}
}

/// Send one packet per millisecond.
fn send(socket: &UdpSocket) {
    println!("sending");
    loop {
        let _ = socket.send(&[7; PAYLOAD]);
        sleep(Duration::from_millis(1));
    }
}

#[test]
#[ignore = "a program for the other tests"]
fn source() {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect(format!("{}:{}", variable("ADDRESS"), variable("PORT"))).unwrap();
    send(&socket);
}

#[test]
#[ignore = "a program for the other tests"]
fn source_that_listens() {
    let socket = UdpSocket::bind(("0.0.0.0", variable("PORT").parse().unwrap())).unwrap();
    let (_, from) = socket.recv_from(&mut [0; 2000]).unwrap();
    socket.connect(from).unwrap();
    send(&socket);
}

#[test]
#[ignore = "a program for the other tests"]
fn sink_that_asks() {
    let socket = UdpSocket::bind("0.0.0.0:0").unwrap();
    socket.connect(format!("{}:{}", variable("ADDRESS"), variable("PORT"))).unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    loop {
        let _ = socket.send(b"send");
        while socket.recv(&mut [0; 2000]).is_ok() {}
    }
}
