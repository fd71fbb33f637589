//! Writes the Rust and Python code of the messages that `crates/ccgym-net/proto` declares; with `--check` only reports
//! outdated files. Called by `make format` and `make lint`.

use std::path::Path;
use std::process::ExitCode;

use prost::Message as _;

fn main() -> ExitCode {
    let check = std::env::args().any(|argument| argument == "--check");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut stale = 0;
    for (path, content) in generated(&root.join("crates/ccgym-net/proto")) {
        if std::fs::read_to_string(root.join(path)).ok().as_ref() == Some(&content) {
            continue;
        }
        stale += 1;
        if check {
            eprintln!("{path} is stale: run `make format`");
        } else {
            std::fs::write(root.join(path), content).expect("the file can be written");
            eprintln!("wrote {path}");
        }
    }
    ExitCode::from(u8::from(check && stale > 0))
}

/// Return path and content of each file.
fn generated(proto: &Path) -> [(&'static str, String); 3] {
    let compiled = |name: &str| protox::compile([name], [proto]).expect("a schema without mistakes");
    let folder = std::env::temp_dir().join(format!("ccgym-protocol-{}", std::process::id()));
    std::fs::create_dir(&folder).expect("a folder");
    let rust = |name: &str, package: &str| {
        let mut config = prost_build::Config::new();
        // The rare messages are boxed, so that they do not enlarge the frequent ones.
        config.boxed(".ccgym.net.v1.Datagram.kind.hello").boxed(".ccgym.net.v1.Datagram.kind.feedback");
        config.boxed(".ccgym.net.v1.Datagram.kind.hello_ack");
        config.out_dir(&folder).disable_comments(["."]).compile_fds(compiled(name)).expect("code");
        std::fs::read_to_string(folder.join(format!("{package}.rs"))).expect("one package per schema")
    };
    let (datagram, control) = (rust("datagram.proto", "ccgym.net.v1"), rust("control.proto", "ccgym.control"));
    std::fs::remove_dir_all(&folder).expect("the folder");
    let mut file = compiled("control.proto").file.pop().expect("one file");
    file.source_code_info = None;
    let digits = file.encode_to_vec().iter().fold(String::new(), |digits, byte| format!("{digits}{byte:02x}"));
    let lines: Vec<&str> =
        digits.as_bytes().chunks(112).map(|line| std::str::from_utf8(line).expect("digits")).collect();
    [
        ("crates/ccgym-net/src/udp/datagram_pb.rs", datagram),
        ("crates/ccgym-net/src/steer/control_pb.rs", control),
        ("ccgym/emulation/control_pb2.py", format!("{PYTHON_HEAD}{}{PYTHON_TAIL}", lines.join("\n    "))),
    ]
}

const PYTHON_HEAD: &str = r#""""The messages of ``crates/ccgym-net/proto/control.proto``, which says what they mean.

Written by ``cargo run -p ccgym-protocol``: that file, compiled. The classes are made from it when it is
loaded, so that any version of protobuf will do.
"""

from google.protobuf import descriptor_pool, message_factory

_FILE = bytes.fromhex(
    """
    "#;

const PYTHON_TAIL: &str = r#"
    """
)
_POOL = descriptor_pool.DescriptorPool()
_POOL.AddSerializedFile(_FILE)
_CLASSES = message_factory.GetMessageClassesForFiles(["control.proto"], _POOL)

FromSender = _CLASSES["ccgym.control.FromSender"]
ToSender = _CLASSES["ccgym.control.ToSender"]
Hello = _CLASSES["ccgym.control.Hello"]
Interval = _CLASSES["ccgym.control.Interval"]
Action = _CLASSES["ccgym.control.Action"]
Stop = _CLASSES["ccgym.control.Stop"]
Ended = _CLASSES["ccgym.control.Ended"]
Summary = _CLASSES["ccgym.control.Summary"]
"#;
