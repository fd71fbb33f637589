//! Compares the path with a plain model, and with recorded mahimahi.
#![allow(missing_docs)]

mod pipeline;
mod recorded_mahimahi;
