//! Jain's index of the flows' delivery rates.

use std::sync::Arc;

use super::{Term, TermKind};

pub(super) const KIND: TermKind = TermKind {
    name: "fairness",
    formula: "(Σ rate)² / (n · Σ rate²) over the active flows, 1/n to 1; 1 where nothing is delivered",
    source: "Jain, Chiu and Hawe, DEC-TR-301",
    needs_truth: true,
    parameters: &[],
    build: |_, _| Term {
        unit: "1".to_owned(),
        formula: "(Σ rate)² / (n · Σ rate²) over the active flows".to_owned(),
        needs_truth: true,
        compute: Arc::new(|o| jain(&o.truth.rates)),
    },
};

fn jain(rates: &[f64]) -> f64 {
    let sum: f64 = rates.iter().sum();
    let squares: f64 = rates.iter().map(|rate| rate * rate).sum();
    if squares > 0.0 {
        sum * sum / (rates.len() as f64 * squares)
    } else {
        1.0
    }
}
