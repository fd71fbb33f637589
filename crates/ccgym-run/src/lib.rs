//! A run, simulated or over a real path: its description, and what it leaves behind.
//!
//! | module | what |
//! |---|---|
//! | [`spec`] | the description: a path, the flows on it, what to record |
//! | [`source`] | applications: when a flow has something to send |
//! | [`media`] | one of them: a video encoder |
//! | [`requests`] | another: a server that answers requests |
//! | [`arrivals`] | another: segments or transfers as a Poisson process |
//! | [`send_buffer`] | data that an application has written and that is not acknowledged |
//! | [`in_order`] | data that the receiving application can read |
//! | [`receiver_series`] | data that a receiver got, at fixed times |
//! | [`recorder`] | packet logs and series while it runs |
//! | [`curves`] | throughput and delays over time, as figures show them |
//! | [`packet_totals`] | totals over the recorded packets |
//! | [`route`] | links that a flow crosses |
//! | [`outcome`] | counters, logs and series when it is over |
//! | [`logs`] | the same as the text logs of Pantheon and mahimahi |
//! | [`truth`] | the ground truth about the path |
//! | [`decision_log`] | the decisions of a learning flow, and their results |
//! | [`columns`] | an agent's interval in numbers |
//! | [`episode`] | an agent's episode in numbers |
//!
//! Start with [`RunSpec`]. May import `ccgym-agent`, `ccgym-path` and `ccgym-core`; imported by `ccgym-sim` and `ccgym-net`, and
//! by what imports these.

pub mod arrivals;
pub mod columns;
pub mod curves;
pub mod decision_log;
pub mod episode;
pub mod in_order;
pub mod logs;
pub mod media;
pub mod outcome;
pub mod packet_totals;
pub mod receiver_series;
pub mod recorder;
pub mod requests;
pub mod route;
pub mod send_buffer;
pub mod source;
pub mod spec;
pub mod truth;

pub use outcome::{FlowOutcome, LinkOutcome, Outcome, Received};
pub use route::Route;
pub use spec::{FlowSpec, HostSpec, LinkSpec, RunSpec, Traces};
