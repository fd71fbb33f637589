//! `ccgym-quic`: one end of a flow `quic:NAME`, started by a run with real packets. `ccgym-quic --help` has the usage.
#![allow(clippy::print_stdout, clippy::print_stderr)] // Answers on the command line are text.

use ccgym_net::job::STATUS_ERROR;
use ccgym_quic::library::CONTROLLERS;

const USAGE: &str = "\
ccgym-quic: one end of a QUIC flow over a real path. ccgym starts it:

    ccgym evaluate --trace 12mbps --backend emulated --schemes quic:cubic,cubic

Without an option it reads a job, a line of JSON, from its standard input, and writes the result to its standard output.

    --controllers  the congestion controllers: name, and label, a line each
    --version      its version, and the library's
    --help         this text

docs/guides/quic.md says how a controller of your own gets in.";

fn main() {
    let arguments: Vec<String> = std::env::args_os().skip(1).map(|one| one.to_string_lossy().into_owned()).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => std::process::exit(ccgym_quic::job::run()),
        ["--help" | "-h"] => println!("{USAGE}"),
        ["--version"] => println!("ccgym-quic {} with quinn 0.11", env!("CARGO_PKG_VERSION")),
        ["--controllers"] => CONTROLLERS.iter().for_each(|(name, label, _)| println!("{name} {label}")),
        _ => {
            eprintln!("found {arguments:?}, expected one option or none\n\n{USAGE}");
            std::process::exit(STATUS_ERROR);
        }
    }
}
