//! The fields of descriptions, as data: every parameter with type, unit, range, default and help.

use ccgym_agent::{reward_terms_schema, AgentSpec};
use ccgym_path::ElementSpec;
use ccgym_run::spec::{FlowSpec, SourceSpec};
use pyo3::prelude::*;
use schemars::generate::SchemaSettings;
use serde_json::Value;

/// JSON schemas by name: path elements and queues, flows, and everything that agents are made of.
///
/// Quantities are in base units and have a `format`: `time` (ns), `milliseconds` (ns, whole ms), `rate` (bit/s),
/// `flow_rate`, `bytes`, `probability`, `steps` (one value or steps in time), `expression`, `operand`, `bounds`.
#[pyfunction]
pub fn schema() -> String {
    let mut generator = SchemaSettings::draft2020_12().into_generator();
    generator.subschema_for::<ElementSpec>();
    generator.subschema_for::<SourceSpec>();
    generator.subschema_for::<FlowSpec>();
    generator.subschema_for::<AgentSpec>();
    let mut definitions = Value::Object(generator.take_definitions(true));
    definitions["Term"] = reward_terms_schema();
    definitions.to_string()
}
