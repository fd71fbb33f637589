//! Sender and receiver over UDP: the machines of `ccgym-core`, driven by sockets and the machine's clock.
//!
//! | module | what |
//! |---|---|
//! | [`datagram`] | the datagrams as code generated from `proto/datagram.proto` |
//! | [`codec`] | datagrams to bytes and back, and what of them is refused |
//! | `fast` | the two datagrams that every packet needs, by hand |
//! | `cookie` | proof that a sender receives at its address |
//! | [`hello`] | what a flow asks of its receiver, and the handshake |
//! | [`sender`] | one flow's sending end |
//! | [`receiver`] | one or several flows' receiving end |
//! | [`endpoint`] | `ccgym sender` and `ccgym receiver` |

pub mod codec;
mod cookie;
/// Generated from `proto/datagram.proto`, which says what the fields mean; `make docs` renews it.
#[rustfmt::skip]
#[allow(missing_docs, clippy::module_inception)]
#[path = "datagram_pb.rs"]
pub mod datagram;
mod batch_calls;
pub mod endpoint;
mod fast;
pub mod hello;
pub mod receiver;
pub mod sender;
mod series;
mod socket;

pub use codec::Token;
pub use endpoint::{ReceiverJob, SenderJob};
pub use hello::{check, Connection};
pub use receiver::{run_receiver, serve, Event, ReceiverResult, ReceiverTask, Served, Service};
pub use sender::{SenderResult, SenderTask};
pub use socket::{enlarge, is_refusal, kernel_drops, overhead, prepare, RxBatch, TxBatch};
