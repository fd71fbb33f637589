//! The committed Rust code of the datagrams is what their schema generates.

use std::path::Path;

/// Set to write the file instead of comparing it.
const WRITE: &str = "CCGYM_WRITE_DATAGRAM";

#[test]
fn generated_code_follows_the_schema() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let descriptors = protox::compile([root.join("proto/datagram.proto")], [root.join("proto")]).unwrap();
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("datagram");
    std::fs::create_dir_all(&out).unwrap();
    prost_build::Config::new().out_dir(&out).disable_comments(["."]).format(true).compile_fds(descriptors).unwrap();
    let fresh = std::fs::read_to_string(out.join("ccgym.net.v1.rs")).unwrap();
    let committed = root.join("src/udp/datagram_pb.rs");
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&committed, &fresh).unwrap();
    }
    let found = std::fs::read_to_string(&committed).unwrap();
    assert!(
        found == fresh,
        "src/udp/datagram_pb.rs is not what proto/datagram.proto generates; run this test with {WRITE}=1 to renew it"
    );
}
