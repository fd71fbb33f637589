//! The native commands without Python: `ccgym-net COMMAND …`, as tests and benchmarks start them.

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    std::process::exit(ccgym_net::cli::run(&words));
}
