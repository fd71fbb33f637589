//! Simulations leak no memory, and a long one needs no more than a short one.

// An allocator that counts needs unsafe code; it forwards to the system's.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use crate::common::{run, simulator, spec};
use ccgym_core::Timestamp;
use serde_json::json;

struct Counting;

thread_local! {
    /// Bytes that this thread has allocated and not freed: other tests run in other threads.
    static LIVE: Cell<isize> = const { Cell::new(0) };
}

fn count(bytes: isize) {
    LIVE.set(LIVE.get() + bytes);
}

// SAFETY: every call goes to the system's allocator unchanged; only sizes are counted.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        System.alloc(layout)
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        System.dealloc(pointer, layout);
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        System.realloc(pointer, layout, size)
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn live() -> isize {
    LIVE.get()
}

#[test]
fn memory_does_not_grow() {
    // A thousand simulations, with everything recorded, leak no byte.
    let short = |seed: u64| {
        let outcome = run(&spec(json!({
            "seed": seed,
            "duration": 300_000_000,
            "uplink": [
                {"kind": "loss", "probability": 0.01},
                {"kind": "jitter", "distribution": {"kind": "uniform", "max": 2_000_000}, "reorder": true},
                {"kind": "link", "schedule": {"kind": "rate", "rate": 12_000_000},
                 "queue": {"kind": "fq_codel", "limit": {"packets": 100}, "target": 5_000_000,
                           "interval": 100_000_000, "quantum": 1514, "flows": 16}},
                {"kind": "delay", "delay": 10_000_000},
            ],
            "downlink": [{"kind": "delay", "delay": 10_000_000}],
            "flows": [{"scheme": "cubic"}, {"scheme": "bbr"}, {"scheme": "copa", "profile": "udp"}],
            "record": {"packets": true, "series": 10_000_000, "link_events": true},
        })));
        assert!(outcome.flows.iter().all(|f| f.sender.sent_packets > 0));
    };
    short(0);
    let before = live();
    for seed in 1..=1000 {
        short(seed);
        assert_eq!(live(), before, "after simulation {seed}");
    }

    // Ten times as long, with nothing recorded: the same memory, except for a ring that may still double. After some
    // 180,000 packets more, a leak of three bytes per packet would show.
    for scheme in ["reno", "cubic", "vegas", "bbr", "copa"] {
        for profile in ["tcp", "udp"] {
            let mut sim = simulator(&spec(json!({
                "duration": 200_000_000_000u64,
                "uplink": [
                    {"kind": "loss", "probability": 0.002},
                    {"kind": "link", "schedule": {"kind": "rate", "rate": 12_000_000},
                     "queue": {"kind": "droptail", "limit": {"packets": 40}}},
                    {"kind": "delay", "delay": 20_000_000},
                ],
                "downlink": [{"kind": "delay", "delay": 20_000_000}, {"kind": "loss", "probability": 0.002}],
                "flows": [{"scheme": scheme, "profile": profile}, {"scheme": scheme, "profile": profile}],
            })));
            sim.run_until(Timestamp::from_millis(20_000)).unwrap();
            let early = live();
            sim.run().unwrap();
            let growth = live() - early;
            assert!(growth < 400_000, "{scheme}, {profile}: {growth} bytes more after ten times the time");
        }
    }
}
