//! Send a file by QUIC over loopback with a scheme or a trained policy, and print the speed:
//!
//!     cargo run -p ccgym-quinn --release --example send_file -- FILE copa
//!     cargo run -p ccgym-quinn --release --example send_file -- FILE agents/eagle
#![allow(clippy::print_stdout, clippy::print_stderr)] // A program to read.

use std::error::Error;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;

use ccgym_quic::identity::Identity;
use ccgym_quinn::SchemeFactory;
use quinn::{ClientConfig, Endpoint, ServerConfig, TransportConfig};
use serde_json::Map;
use tokio::fs::File;
use tokio::runtime::{self, Runtime};

type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(file), Some(scheme)) = (arguments.next(), arguments.next()) else {
        return Err("give a file, and a scheme or the folder of a policy: send_file FILE copa".into());
    };
    let Transfer { bytes, seconds } = start()?.block_on(transfer(file.into(), &scheme))?;
    println!("{scheme}: {bytes} bytes in {seconds:.3} s, {:.1} Mbit/s", bytes as f64 * 8e-6 / seconds);
    Ok(())
}

fn start() -> std::io::Result<Runtime> {
    runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()
}

struct Transfer {
    bytes: usize,
    /// From the first packet of the handshake on.
    seconds: f64,
}

/// Make the scheme of this name, or the policy of this folder.
fn controller(scheme: &str) -> Result<SchemeFactory> {
    let folder = Path::new(scheme);
    let made = if folder.is_dir() { SchemeFactory::policy(folder) } else { SchemeFactory::new(scheme, &Map::new()) };
    Ok(made?)
}

async fn transfer(file: PathBuf, scheme: &str) -> Result<Transfer> {
    let mut transport = TransportConfig::default();
    // The only difference from other programs that use quinn.
    transport.congestion_controller_factory(Arc::new(controller(scheme)?));

    let identity = Identity::new(&[1; 32])?;
    let server = Endpoint::server(ServerConfig::with_crypto(identity.server()?), (Ipv4Addr::LOCALHOST, 0).into())?;
    let address = server.local_addr()?;
    let receiving = tokio::spawn(receive(server));
    let mut config = ClientConfig::new(identity.client()?);
    config.transport_config(Arc::new(transport));
    let begun = Instant::now();
    send(config, address, file).await?;
    Ok(Transfer { bytes: receiving.await??, seconds: begun.elapsed().as_secs_f64() })
}

async fn send(config: ClientConfig, address: SocketAddr, file: PathBuf) -> Result<()> {
    let mut client = Endpoint::client((Ipv4Addr::LOCALHOST, 0).into())?;
    client.set_default_client_config(config);
    let connection = client.connect(address, "ccgym")?.await?;
    let mut stream = connection.open_uni().await?;
    tokio::io::copy(&mut File::open(file).await?, &mut stream).await?;
    stream.finish()?;
    // Wait until all data is acknowledged.
    stream.stopped().await?;
    connection.close(0u32.into(), b"done");
    client.wait_idle().await;
    Ok(())
}

/// Return the bytes that the first connection sends.
async fn receive(server: Endpoint) -> Result<usize> {
    let connection = server.accept().await.ok_or("the endpoint was closed")?.await?;
    let mut stream = connection.accept_uni().await?;
    let mut bytes = 0;
    while let Some(chunk) = stream.read_chunk(usize::MAX, true).await? {
        bytes += chunk.bytes.len();
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sends_a_file_under_a_scheme_and_under_a_policy() {
        let file = std::env::temp_dir().join(format!("send_file-{}", std::process::id()));
        std::fs::write(&file, vec![7; 3_000_000]).unwrap();
        for scheme in ["copa", concat!(env!("CARGO_MANIFEST_DIR"), "/../../../agents/eagle")] {
            let done = start().unwrap().block_on(transfer(file.clone(), scheme)).unwrap();
            assert_eq!(done.bytes, 3_000_000, "{scheme}");
        }
        std::fs::remove_file(&file).unwrap();
    }
}
