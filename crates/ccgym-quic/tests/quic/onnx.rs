//! Trained policies, where there is an ONNX Runtime to run them.

use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// ONNX Runtime is loaded; false if there is none.
fn is_loaded() -> bool {
    let capi = |python: PathBuf| std::fs::read_dir(python.join("site-packages/onnxruntime/capi")).ok();
    let find = || {
        let pythons = std::fs::read_dir(root().join(".venv/lib")).ok()?.flatten();
        let mut files = pythons.filter_map(|python| capi(python.path())).flatten().flatten().map(|file| file.path());
        files.find(|file| file.to_string_lossy().contains("libonnxruntime.so"))
    };
    let path = std::env::var_os("ORT_DYLIB_PATH").map(PathBuf::from).or_else(find);
    path.is_some_and(|path| {
        ccgym_schemes::learned::load_library(path.to_str()).unwrap();
        true
    })
}

/// The folders of these policies; none, which is said, without ONNX Runtime.
pub fn folders<const N: usize>(test: &str, names: [&str; N]) -> Vec<PathBuf> {
    if !is_loaded() {
        eprintln!("SKIPPED the policies of {test}: no ONNX Runtime (set ORT_DYLIB_PATH)");
        return Vec::new();
    }
    names.iter().map(|name| root().join("agents").join(name)).collect()
}
