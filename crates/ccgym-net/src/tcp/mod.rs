//! The kernel's TCP as a flow: congestion control by name, and series of the kernel's data.

mod info;
mod receiver;
mod sampler;
mod sender;

use std::fs;
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use nix::unistd::geteuid;

pub use crate::udp::{ReceiverResult, ReceiverTask, SenderResult};
pub use receiver::run_receiver;
pub use sender::{run_sender, TcpSenderTask};

const AVAILABLE: &str = "/proc/sys/net/ipv4/tcp_available_congestion_control";

/// Return the available congestion controls, sorted. Root first loads the module of BBR if it exists.
pub fn available() -> Vec<String> {
    static LOADED: OnceLock<()> = OnceLock::new();
    let known = loaded();
    if known.iter().any(|name| name == "bbr") {
        return known;
    }
    LOADED.get_or_init(|| load("bbr"));
    loaded()
}

fn loaded() -> Vec<String> {
    let text = fs::read_to_string(AVAILABLE).unwrap_or_default();
    let mut names: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
    names.sort_unstable();
    names
}

/// Load the module of a congestion control, if this process is root and the module exists.
fn load(name: &str) {
    let plain = !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    if plain && geteuid().is_root() {
        // The kernel also tries to load it. Some machines have no modules or no modprobe: ignore errors.
        let quiet = || Stdio::null();
        let mut modprobe = Command::new("modprobe");
        let _ = modprobe.args(["-q", &format!("tcp_{name}")]).stdin(quiet()).stdout(quiet()).stderr(quiet()).status();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reno_is_always_there() {
        let available = available();
        assert!(available.iter().any(|name| name == "reno"), "{available:?}");
        assert!(available.windows(2).all(|pair| pair[0] < pair[1]));
    }
}
