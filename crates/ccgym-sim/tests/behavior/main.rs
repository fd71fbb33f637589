//! What simulations do, in one program: each program of its own would hold all schemes once more.

mod agent_batch;
mod agent_labels;
mod bounds;
mod classics_against_ns3;
mod common;
mod complaints;
mod conservation;
mod determinism;
mod differential_tquic_bbr3;
mod expectations_bbr3;
mod expectations_bbr3_long_run;
mod expectations_bbr_copa;
mod expectations_classics;
mod expectations_delay_based;
mod expectations_ecn;
mod expectations_loss_based;
mod expectations_media;
mod expectations_pcc;
mod expectations_quic;
mod expectations_receiver;
mod expectations_synthesized_bbr;
mod expectations_taova;
mod guard;
mod hostile;
mod hostile_receivers;
mod intervals;
