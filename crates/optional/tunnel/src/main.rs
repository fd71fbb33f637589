//! Native part of the tunnel without Python, for its tests: `ccgym-tunnel JOB`, where JOB is a JSON document.

use ccgym_net::run::Host;

fn main() {
    let job = std::env::args().nth(1).unwrap_or_default();
    let host = Host { backends: &[ccgym_tunnel::REMOTE], ..Host::ALONE };
    std::process::exit(ccgym_net::job::run(&job, &host));
}
