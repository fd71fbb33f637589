//! `ccgym-quic`: one end of a flow `quic:NAME`, started by a run with real packets. `ccgym-quic --version` says what it is.
#![allow(clippy::print_stdout)] // Its version is for people.

fn main() {
    if std::env::args().nth(1).as_deref() == Some("--version") {
        println!("ccgym-quic {} with quinn 0.11", env!("CARGO_PKG_VERSION"));
        return;
    }
    std::process::exit(ccgym_quic::job::run());
}
