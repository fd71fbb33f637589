//! The path against a plain model, and against recorded mahimahi.
#![allow(missing_docs)]

mod pipeline;
mod recorded_mahimahi;
