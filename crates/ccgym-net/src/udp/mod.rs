//! Sender and receiver over UDP: the transport of `ccgym-core`, driven by sockets and the machine's clock.
//!
//! | module | content |
//! |---|---|
//! | [`datagram`] | datagrams, code generated from `proto/datagram.proto` |
//! | [`codec`] | encoding and decoding of datagrams, with checks |
//! | `fast` | hand-written code for the two frequent datagrams |
//! | `cookie` | proof that a sender receives at its address |
//! | [`hello`] | a flow's request to its receiver, and the handshake |
//! | [`sender`] | sending endpoint of one flow |
//! | [`receiver`] | receiving endpoint of one or several flows |
//! | [`endpoint`] | `ccgym sender` and `ccgym receiver` |

pub mod codec;
mod cookie;
/// Generated from `proto/datagram.proto`, which documents the fields; `make format` updates it.
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
