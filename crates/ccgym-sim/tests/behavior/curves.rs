//! The window of each scheme over time on three paths, compared with the files in `schemes/tests/curves`. A change
//! there is a change of behavior: `CCGYM_RECORD=1` writes the files again, and `make site` draws them.

use std::collections::BTreeMap;
use std::path::Path;

use ccgym_schemes::registry::Role;
use ccgym_schemes::{registry, SchemeInfo};
use rayon::prelude::*;
use serde_json::{json, Value};

use crate::common::{run, Net, NO_LIMIT};

const SECONDS: f64 = 20.0;

/// Make L1 with a buffer of one BDP: unchanged, with half of its rate from 10 s on, and with 1 % of loss.
fn paths() -> [Net; 3] {
    let net = Net { record: json!({"series": 500_000_000}), ..Net::new(12.0, 40.0, 40) };
    let halved = json!([[0, 12_000_000], [10_000_000_000u64, 6_000_000]]);
    [net.clone(), Net { rate: halved, ..net.clone() }, Net { loss: json!(0.01), ..net }]
}

/// Return by time in ms the window, or if unlimited the packets at the pacing rate in 40 ms, in whole packets.
fn curve(info: &SchemeInfo, net: &Net) -> Vec<(u64, u64)> {
    let transport = &info.transport;
    let flow: Value = json!([{
        "scheme": info.name, "profile": transport.profile, "mss": transport.mss, "header": transport.header,
        "initial_window": transport.initial_window,
    }]);
    let mut spec = net.spec(&flow, SECONDS);
    spec.facts = serde_json::from_value(json!({"capacity": [[0, 12_000_000]], "base_rtt": 40_000_000})).expect("facts");
    let series = run(&spec).series.expect("series are recorded");
    let size = u64::from(transport.mss + transport.header);
    let windows = series.flows[0].cwnd_bytes.iter().zip(&series.flows[0].pacing_bps);
    let packets = windows.map(|(&cwnd, rate)| if cwnd < NO_LIMIT { cwnd } else { rate / 200 } / size);
    series.t.iter().map(|t| t / 1_000_000).zip(packets).collect()
}

fn csv(info: &SchemeInfo) -> String {
    let curves = paths().map(|net| curve(info, &net));
    let row = |i: usize| format!("{},{},{},{}\n", curves[0][i].0, curves[0][i].1, curves[1][i].1, curves[2][i].1);
    (0..curves[0].len()).map(row).fold("ms,as it is,halved,lossy\n".to_owned(), |text, row| text + &row)
}

#[test]
fn windows_are_those_kept() {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../schemes/tests/curves"));
    let schemes: Vec<_> = registry().iter().map(|entry| &entry.info).filter(|info| info.role != Role::Tool).collect();
    let found: BTreeMap<_, _> = schemes.par_iter().map(|info| (format!("{}.csv", info.name), csv(info))).collect();
    if std::env::var_os("CCGYM_RECORD").is_some() {
        std::fs::create_dir_all(folder).unwrap();
        found.iter().for_each(|(name, text)| std::fs::write(folder.join(name), text).unwrap());
    }
    let kept = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    let kept: BTreeMap<_, _> = kept.map(|path| (name(&path), std::fs::read_to_string(&path).unwrap())).collect();
    assert!(kept.keys().eq(found.keys()), "CCGYM_RECORD=1 writes {:?}", found.keys());
    for (name, text) in &found {
        let differs = text.lines().zip(kept[name].lines()).find(|(found, kept)| found != kept);
        assert!(*text == kept[name], "{name}: found and kept {differs:?}");
    }
}
