//! The gain of a misbehaving receiver next to an honest one of the same scheme.

use crate::common::{create, run, Net};
use ccgym_run::RunSpec;
use ccgym_sim::Simulator;
use serde_json::{json, Value};

/// Make two flows of Reno over 12 Mbit/s and 40 ms with a queue of 40 packets; `lie` is the misbehavior of the second
/// one's receiver. With hidden losses only their buffers of 1 MB end slow start.
fn beside(lie: &Value) -> RunSpec {
    let honest = json!({"scheme": "reno", "send_buffer": 1_000_000});
    let mut second = honest.clone();
    for (key, value) in lie.as_object().expect("an object") {
        second[key] = value.clone();
    }
    let jitter = json!({"kind": "jitter", "distribution": {"kind": "uniform", "max": 1_000_000}});
    let net = Net { behind: vec![jitter], record: json!({}), ..Net::new(12.0, 40.0, 40) };
    net.spec(&json!([honest, second]), 60.0)
}

/// Return the second flow's share of the bytes that both received.
fn share(lie: &Value) -> f64 {
    let outcome = run(&beside(lie));
    let [first, second] = [0, 1].map(|i| outcome.flows[i].received.unique_bytes as f64);
    second / (first + second)
}

#[test]
fn copies_of_acknowledgements_gain_nothing() {
    let (honest, lying) = (share(&json!({})), share(&json!({"ack_copies": 8})));
    assert!((0.4..0.6).contains(&honest), "{honest}");
    assert!((honest - lying).abs() < 0.1, "{honest} and {lying}");
}

#[test]
fn hidden_losses_take_the_link() {
    for lie in [json!({"hide_loss": true}), json!({"ack_ahead": 20_000_000})] {
        let lying = share(&lie);
        assert!(lying > 0.7, "{lie}: {lying}");
    }
}

#[test]
fn the_path_of_a_misbehaving_flow_is_that_of_an_honest_one() {
    // With no losses, hiding them has no effect, also if packets are carried in one call.
    let alone = |lie: Value| {
        let mut run = beside(&lie);
        run.flows.remove(0);
        run.uplink.pop();
        run.flows[0].params.insert("mode".to_owned(), json!("linux"));
        run.flows[0].scheme = "cubic".to_owned();
        run.duration = ccgym_core::TimeSpan::from_millis(300);
        let mut simulator = Simulator::new(&run, &|_| None, &create).expect("a run");
        simulator.run().expect("it ends");
        simulator.trajectory_hash()
    };
    assert_eq!(alone(json!({})), alone(json!({"hide_loss": true})));
}

#[test]
fn schemes_with_a_half_at_the_receiver_are_refused() {
    let mut run = beside(&json!({"hide_loss": true}));
    run.flows[1].scheme = "sprout".to_owned();
    let error = Simulator::new(&run, &|_| None, &create).err().expect("refused");
    assert_eq!(error.code, "scheme-unsuitable");
    assert!(error.place.starts_with("flows[1]"), "{error}");
    run.flows[1].ack_copies = 0;
    let error = run.validate().expect_err("no copy");
    assert_eq!(error.place, "flows[1].ack_copies");
}
