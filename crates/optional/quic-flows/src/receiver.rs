//! Receiving end of a flow: accepts one connection, discards its data, and counts it.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use ccgym_net::error::{Context, Result};
use ccgym_net::quic::QuicReceiverJob;
use ccgym_net::udp::{overhead, ReceiverResult};
use ccgym_run::receiver_series::ReceiverSeries;
use ccgym_run::Received;
use quinn_proto::{Connection, Dir, EndpointConfig, Event, StreamEvent, StreamId};

use crate::identity::Identity;
use crate::peer::{transport, Machine, Peer};

/// Interval at which `halt` is checked.
const HALT_CHECK: Duration = Duration::from_millis(20);

/// Serve one connection until it or the run ends; call `ready` once the socket listens.
///
/// Payload counts once, when it arrives, in any order. Packets and their bytes count with all copies, including those
/// of the handshake.
///
/// # Errors
/// The socket does not work. A missing connection or one that the sender ends is not an error.
pub fn run(job: &QuicReceiverJob, halt: &AtomicBool, ready: impl FnOnce()) -> Result<ReceiverResult> {
    let ends = &job.ends;
    let socket = UdpSocket::bind(ends.receiver).context(|| format!("listening at {}", ends.receiver))?;
    let header = u64::from(overhead(&(*ends.receiver.ip()).into()));
    let identity = Identity::new(&ends.secret)?;
    let machine = Machine::listen(EndpointConfig::default(), &identity, transport(ends.packet_bytes)?)?;
    let mut peer = Peer::new(socket, machine)?;
    ready();
    let mut received = Received::default();
    let mut series = ReceiverSeries::new(ends.step);
    let mut open: Vec<StreamId> = Vec::new();
    let mut over = false;
    while !over && !halt.load(Ordering::Relaxed) && ends.clock.now() < job.end {
        peer.receive()?;
        while let Some(event) = peer.event() {
            match event {
                Event::Stream(StreamEvent::Opened { dir: Dir::Uni }) => {
                    let new = peer.connection().into_iter();
                    open.extend(new.filter_map(|connection| connection.streams().accept(Dir::Uni)));
                }
                Event::ConnectionLost { .. } => over = true,
                _ => {}
            }
        }
        if let Some(connection) = peer.connection() {
            let payload = open.iter().map(|&stream| read(connection, stream)).sum::<u64>();
            let udp = connection.stats().udp_rx;
            let bytes = udp.bytes + header * udp.datagrams;
            series.read(ends.clock.now(), bytes - received.bytes, payload);
            received.packets = udp.datagrams;
            received.bytes = bytes;
            received.unique_bytes += payload;
        }
        peer.transmit()?;
        if !over {
            peer.wait(HALT_CHECK)?;
        }
    }
    let mut result = ReceiverResult { received, ..ReceiverResult::default() };
    let columns = [&mut result.received_bytes, &mut result.received_unique_bytes, &mut result.read_bytes];
    series.add_to(job.end, columns);
    Ok(result)
}

/// Read the available bytes of a stream; return their number.
fn read(connection: &mut Connection, stream: StreamId) -> u64 {
    let mut stream = connection.recv_stream(stream);
    // A stream that has ended has no more bytes.
    let Ok(mut chunks) = stream.read(false) else { return 0 };
    let mut bytes = 0;
    while let Ok(Some(chunk)) = chunks.next(usize::MAX) {
        bytes += chunk.bytes.len() as u64;
    }
    // The next round of the loop sends the frames that this produces.
    let _ = chunks.finalize();
    bytes
}
