//! Real packets, real namespaces, real time: one program, so that it is linked once.
#![cfg(target_os = "linux")]
#![allow(missing_docs)]

mod cleanup;
mod common;
mod path_emulator;
mod programs;
mod shell;
mod steer;
mod tcp;
mod udp;

/// Program that runs jobs and shells.
const PROGRAM: &str = env!("CARGO_BIN_EXE_ccgym-net");
