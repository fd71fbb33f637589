//! The native part without Python, for tests and benchmarks: `ccgym-net JOB`, where JOB is a JSON document.

fn main() {
    let job = std::env::args().nth(1).unwrap_or_default();
    std::process::exit(ccgym_net::job::run(&job, &ccgym_net::run::Host::ALONE));
}
