//! Real packets, real namespaces, real time. One program, so that it is linked once.
#![cfg(target_os = "linux")]
#![allow(missing_docs)]

mod cleanup;
mod common;
mod mahimahi;
mod path_emulator;
mod programs;
mod shell;
mod steer;
mod tcp;
mod tunnel;
mod udp;
