//! Time of a deployed policy for one decision, from the observation to the action.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ccgym_core::Error;
use ccgym_schemes::learned::Policy;

/// Load the policies of `agents` and an LSTM of 64 units, by name; an unusable file gives an error.
pub fn policies() -> Vec<(String, Result<Arc<Policy>, String>)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let entries = std::fs::read_dir(root.join("agents")).into_iter().flatten().flatten();
    let mut agents: Vec<_> =
        entries.map(|entry| entry.path().join("policy.onnx")).filter(|file| file.is_file()).collect();
    agents.sort();
    let load = |onnx: &Path, card: &Path| {
        let bytes = std::fs::read(onnx).map_err(|error| format!("{}: {error}", onnx.display()))?;
        let card = std::fs::read_to_string(card).map_err(|error| format!("{}: {error}", card.display()))?;
        Policy::load(&bytes, &card).map_err(|error| error.to_string())
    };
    let named = |file: &std::path::PathBuf| {
        let folder = file.parent().and_then(Path::file_name).unwrap_or_default();
        (folder.to_string_lossy().into_owned(), load(file, &file.with_file_name("card.json")))
    };
    let models = root.join("schemes/tests/models");
    let lstm = load(&models.join("lstm_64.onnx"), &models.join("lstm_64.json"));
    std::iter::once(("lstm_64".to_owned(), lstm)).chain(agents.iter().map(named)).collect()
}

/// Measure the wall time of this many decisions in a row.
pub fn run(policy: &Arc<Policy>, decisions: u64) -> Result<(u64, Duration), Error> {
    let mut session = policy.session();
    let mut observation = vec![0.0f32; policy.agent().observation_size()];
    let mut action = Vec::new();
    session.decide(&observation, &mut action)?;
    let start = Instant::now();
    for i in 0..decisions {
        observation[0] = (i % 100) as f32 / 100.0;
        session.decide(&observation, &mut action)?;
        std::hint::black_box(&action);
    }
    Ok((decisions, start.elapsed()))
}
