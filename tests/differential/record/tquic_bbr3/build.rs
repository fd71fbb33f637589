//! Writes the module lines by which the recorder includes tquic's congestion controllers from where Cargo put its source,
//! and with the feature `cleared` a copy of its BBRv3 that clears the loss flag at the end of a round, as the draft does.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let cargo = env::var("CARGO").expect("Cargo sets it");
    let metadata =
        Command::new(cargo).args(["metadata", "--format-version", "1", "--locked"]).output().expect("cargo runs");
    let text = String::from_utf8(metadata.stdout).expect("JSON is text");
    // The only manifest of that name.
    let end = text.find("tquic-1.6.0/Cargo.toml").expect("tquic 1.6.0 among the dependencies") + "tquic-1.6.0".len();
    let start = text[..end].rfind('"').expect("a quoted path") + 1;
    let source: PathBuf = Path::new(&text[start..end]).join("src");
    let line = |name: &str, file: &str| format!("#[path = {:?}]\npub mod {name};\n", source.join(file));
    let out = PathBuf::from(env::var("OUT_DIR").expect("Cargo sets it"));
    fs::write(out.join("rtt.rs"), line("rtt", "connection/rtt.rs")).expect("writable");
    let modules = [("minmax", "minmax.rs"), ("delivery_rate", "delivery_rate.rs")];
    let mut lines: String = modules.map(|(name, file)| line(name, &format!("congestion_control/{file}"))).concat();
    let mut bbr3 = fs::read_to_string(source.join("congestion_control/bbr3.rs")).expect("tquic's BBRv3");
    if env::var("CARGO_FEATURE_CLEARED").is_ok() {
        let (set, cleared) = (
            "from_congestion();\n        self.loss_in_round = true;",
            "from_congestion();\n        self.loss_in_round = false;",
        );
        assert_eq!(bbr3.matches(set).count(), 1, "the line that sets the flag");
        bbr3 = bbr3.replace(set, cleared);
    }
    fs::write(out.join("bbr3.rs"), bbr3).expect("writable");
    lines += &format!("#[path = {:?}]\npub mod bbr3;\n", out.join("bbr3.rs"));
    fs::write(out.join("controllers.rs"), lines).expect("writable");
}
