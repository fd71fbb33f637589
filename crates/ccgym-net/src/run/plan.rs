//! The plan of a run and its backend, read from a file and prepared.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use ccgym_agent::{AgentSpec, FlowAgent};
use ccgym_core::{CongestionControl, Misbehavior};
use ccgym_path::DeliveryTrace;
use ccgym_run::spec::SourceSpec;
use ccgym_run::{FlowSpec, RunSpec};
use ccgym_schemes::learned::Policy;
use ccgym_schemes::{Guest, Resources};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{BackendSpec, RunResult, KERNEL_PREFIX, MAX_FLOWS, PROGRAM_PREFIX, QUIC_PREFIX};
use crate::error::{Context, Error, Result};
use crate::program::ProgramSpec;
use crate::quic::Quic;
use crate::udp::check;

/// Factor of [`Plan::patience`] for external programs.
const PROGRAM_PATIENCE: u32 = 4;

/// Files of an exported policy.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyFiles {
    /// The ONNX network.
    pub onnx: PathBuf,
    /// The card of the network.
    pub card: PathBuf,
}

/// Plan of a run (JSON).
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// Description of the run, as for the simulator.
    pub spec: RunSpec,
    /// Trace files by name.
    #[serde(default)]
    pub traces: BTreeMap<String, PathBuf>,
    /// Policy files by name.
    #[serde(default)]
    pub policies: BTreeMap<String, PolicyFiles>,
    /// Schemes of this process by the names that flows use, with data that only the process interprets.
    #[serde(default)]
    pub guests: BTreeMap<String, Value>,
    /// Agent of flows for which an environment decides.
    #[serde(default)]
    pub agent: Option<Value>,
    /// The program `ccgym-quic`, if installed.
    #[serde(default)]
    pub quic: Option<PathBuf>,
    /// Programs of flows that external programs carry, by flow index.
    #[serde(default)]
    pub programs: BTreeMap<usize, ProgramSpec>,
    /// Unix socket of the environment that decides for learning flows.
    #[serde(default)]
    pub control: Option<PathBuf>,
    /// The path's backend.
    #[serde(default)]
    pub backend: BackendSpec,
    /// File for the result.
    #[serde(default)]
    pub result: Option<PathBuf>,
}

impl Plan {
    /// Check for settings that real paths do not support.
    ///
    /// # Errors
    /// The first unsupported setting.
    pub(super) fn check(&self) -> Result<()> {
        let step = || "checking the plan".to_owned();
        self.spec.validate().map_err(|error| error.code_or("description-invalid").within(step()))?;
        if self.spec.flows.len() > MAX_FLOWS {
            let found = format!("{} flows", self.spec.flows.len());
            return Err(Error::of("too-large", step(), found).expected(format!("max {MAX_FLOWS} on a real path")));
        }
        if self.spec.is_network() || !self.spec.links.is_empty() {
            let found = "links with names, or flows in both directions";
            let expected = "one path that all data crosses in the same direction; networks can be simulated only";
            return Err(Error::of("backend-unsuitable", step(), found).expected(expected));
        }
        for (i, flow) in self.spec.flows.iter().enumerate() {
            let refuse = |code, key: &str, found: &str, expected: &str| {
                Err(Error::of(code, format!("checking flows[{i}]{key}"), found).expected(expected))
            };
            let (scheme, source) = (&flow.scheme, &flow.source);
            let others = [KERNEL_PREFIX, QUIC_PREFIX, PROGRAM_PREFIX].iter().any(|prefix| scheme.starts_with(prefix));
            if others && matches!(source, SourceSpec::Media(_) | SourceSpec::Poisson { .. }) {
                let found = format!("media or poisson over {scheme}");
                return refuse("scheme-unsuitable", ".source", &found, "a scheme of ccgym, over the profile udp");
            }
            let transfers = matches!(source, SourceSpec::Requests(_) | SourceSpec::Poisson { size: Some(_), .. });
            if transfers || flow.send_buffer.is_some() {
                let expected = "another source, without a send buffer; these can be simulated only";
                return refuse("backend-unsuitable", "", "transfers of a source or a send buffer", expected);
            }
            if flow.misbehavior() != Misbehavior::default() {
                let expected = "an honest one; others can be simulated only";
                return refuse("backend-unsuitable", "", "a receiver that misbehaves", expected);
            }
            if scheme.starts_with(PROGRAM_PREFIX) && !self.programs.contains_key(&i) {
                let found = format!("{scheme} without its programs");
                return refuse("argument-missing", "", &found, "them under the key `programs`");
            }
            if scheme.starts_with(PROGRAM_PREFIX) && !matches!(source, SourceSpec::Greedy) {
                let expected = "none: the program sends what it has, as fast as it can";
                return refuse("scheme-unsuitable", "", &format!("a source for {scheme}"), expected);
            }
            check(flow).map_err(|error| error.within(format_args!("checking flows[{i}]")))?;
        }
        Ok(())
    }

    /// Return the factor on the time to set up the flows: external programs need time until they listen.
    #[must_use]
    pub fn patience(&self) -> u32 {
        if self.programs.is_empty() {
            1
        } else {
            PROGRAM_PATIENCE
        }
    }

    /// Try to set up a run within each of these times; `attempt` returns `None` if it took longer.
    ///
    /// # Errors
    /// As `attempt`; a setup longer than the last time.
    pub fn retry_with_longer_leads(
        &self,
        leads: [Duration; 3],
        mut attempt: impl FnMut(Duration) -> Result<Option<RunResult>>,
    ) -> Result<RunResult> {
        let leads = leads.map(|lead| lead * self.patience());
        for lead in leads {
            if let Some(result) = attempt(lead)? {
                return Ok(result);
            }
        }
        let found = format!("not done {} s before the start", leads[2].as_secs());
        Err(Error::of("run-stalled", "setting up the flows", found)
            .hint("this machine is too busy for a run in real time"))
    }
}

/// Makes the process's own schemes from the plan's data; or returns an error text.
pub type MakeGuests<'a> = &'a dyn Fn(&BTreeMap<String, Value>) -> Result<BTreeMap<String, Arc<dyn Guest>>, String>;

/// Make no schemes, for a process without own ones.
///
/// # Errors
/// A plan with such schemes.
pub fn no_guests(asked: &BTreeMap<String, Value>) -> Result<BTreeMap<String, Arc<dyn Guest>>, String> {
    asked.keys().next().map_or_else(|| Ok(BTreeMap::new()), |name| Err(format!("{name:?}, which this program lacks")))
}

/// A plan with its files loaded.
pub struct Prepared {
    /// The plan.
    pub plan: Plan,
    /// Traces by name.
    pub traces: BTreeMap<String, Arc<DeliveryTrace>>,
    /// Agent, policies and own schemes.
    pub resources: Resources,
    /// Program and secret of QUIC flows.
    pub quic: Quic,
}

/// Transport of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// Our own endpoints.
    Ours,
    /// The kernel's TCP, with this congestion control.
    Kernel(String),
    /// QUIC, with this congestion control of the library.
    Quic(String),
    /// External programs.
    Program(ProgramSpec),
}

impl Prepared {
    /// Load traces, policies and guests. A guest may start threads.
    pub fn load(plan: Plan, make_guests: MakeGuests<'_>) -> Result<Self> {
        let traces = load_traces(&plan.traces)?;
        let mut resources = load_policies(&plan.policies)?;
        resources.agent = agent(&plan)?;
        resources.guests = make_guests(&plan.guests)
            .map_err(|found| Error::of("scheme-unimportable", "loading the schemes of flows", found))?;
        let quic = Quic::new(plan.quic.clone())?;
        Ok(Self { plan, traces, resources, quic })
    }

    /// Return the flows of the run.
    pub fn flows(&self) -> &[FlowSpec] {
        &self.plan.spec.flows
    }

    /// Return the transport of flow `index`.
    pub fn carrier(&self, index: usize) -> Carrier {
        let scheme = self.flows()[index].scheme.as_str();
        if let Some(algorithm) = scheme.strip_prefix(KERNEL_PREFIX) {
            Carrier::Kernel(algorithm.to_owned())
        } else if let Some(algorithm) = scheme.strip_prefix(QUIC_PREFIX) {
            Carrier::Quic(algorithm.to_owned())
        } else if let Some(program) = self.plan.programs.get(&index) {
            Carrier::Program(program.clone())
        } else {
            Carrier::Ours
        }
    }

    /// Return the reason if a guest was slower than real time.
    pub fn fell_behind(&self) -> Option<String> {
        self.resources.guests.values().find_map(|guest| guest.fell_behind())
    }

    /// Make the scheme of flow `index`.
    ///
    /// # Errors
    /// An unknown scheme, or parameters that it does not accept.
    pub fn scheme(&self, index: usize) -> Result<Box<dyn CongestionControl>> {
        let flow = &self.flows()[index];
        ccgym_schemes::create_with(&flow.scheme, &flow.params, &self.resources)
            .map_err(|error| error.within(format_args!("making the scheme of flow {index}")))
    }
}

/// Load traces by name.
///
/// # Errors
/// A file that cannot be read, or is not a trace.
pub fn load_traces(files: &BTreeMap<String, PathBuf>) -> Result<BTreeMap<String, Arc<DeliveryTrace>>> {
    let load = |(name, file): (&String, &PathBuf)| {
        let step = || format!("reading the trace {}", file.display());
        let bytes = fs::read(file)
            .context(step)
            .map_err(|error| error.expected("a mahimahi trace: one whole number of milliseconds per line"))?;
        let trace =
            DeliveryTrace::parse(&bytes, name).map_err(|error| error.code_or("trace-malformed").within(step()))?;
        Ok((name.clone(), Arc::new(trace)))
    };
    files.iter().map(load).collect()
}

/// Load policies.
///
/// # Errors
/// A file that cannot be read, or is not a policy.
pub fn load_policies(files: &BTreeMap<String, PolicyFiles>) -> Result<Resources> {
    let mut resources = Resources::default();
    for (name, PolicyFiles { onnx, card }) in files {
        let explain = |error: Error| error.expected("a network and its card, as `ccgym train export` writes them");
        let bytes = fs::read(onnx).context(|| format!("reading {}", onnx.display())).map_err(explain)?;
        let text = fs::read_to_string(card).context(|| format!("reading {}", card.display())).map_err(explain)?;
        let policy =
            Policy::load(&bytes, &text).map_err(|error| error.within(format_args!("loading the policy {name}")))?;
        resources.policies.insert(name.clone(), policy);
    }
    Ok(resources)
}

fn agent(plan: &Plan) -> Result<Option<FlowAgent>> {
    let Some(value) = &plan.agent else { return Ok(None) };
    let step = || "reading the agent of learning flows".to_owned();
    let spec =
        AgentSpec::from_json(&value.to_string()).map_err(|error| error.code_or("agent-invalid").within(step()))?;
    Ok(Some(FlowAgent::new(Arc::new(spec))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(flow: &str) -> Result<Plan> {
        let text = format!(
            r#"{{"spec":{{"duration":1000000000,"uplink":[],"downlink":[],"flows":[{flow}]}},
                "backend":{{"kind":"emulated"}}}}"#
        );
        let plan: Plan = serde_json::from_str(&text).map_err(|e| Error::of("run-failed", "test", e))?;
        plan.check()?;
        Ok(plan)
    }

    #[test]
    fn a_plan_refuses_what_a_real_path_cannot_do() {
        assert!(plan(r#"{"scheme":"cubic"}"#).is_ok());
        let error = plan(r#"{"scheme":"cubic","extra_rtt":5000000}"#).unwrap_err();
        assert!(error.code == "backend-unsuitable" && error.place.starts_with("checking flows[0]"), "{error}");
        let error = plan(r#"{"scheme":"cubic","mss":0}"#).unwrap_err();
        assert_eq!(error.code, "description-invalid", "{error}");
    }

    #[test]
    fn names_say_what_carries_a_flow() {
        let carrier = |flow: &str| Prepared::load(plan(flow).unwrap(), &no_guests).unwrap().carrier(0);
        assert_eq!(carrier(r#"{"scheme":"quic:bbr"}"#), Carrier::Quic("bbr".into()));
        assert_eq!(carrier(r#"{"scheme":"quic"}"#), Carrier::Ours);
    }

    #[test]
    fn what_is_loaded_is_named_when_it_cannot_be() {
        let mut one = plan(r#"{"scheme":"tcp:bbr"}"#).unwrap();
        one.traces.insert("12mbps".into(), PathBuf::from("/nowhere/12mbps.trace"));
        let error = Prepared::load(one.clone(), &no_guests).err().unwrap();
        assert!(error.place.contains("/nowhere/12mbps.trace"), "{error}");
        one.traces.clear();
        one.guests.insert("mine".into(), Value::Null);
        let error = Prepared::load(one.clone(), &no_guests).err().unwrap();
        assert_eq!(error.code, "scheme-unimportable", "{error}");
        one.guests.clear();
        let prepared = Prepared::load(one, &no_guests).unwrap();
        assert_eq!(prepared.carrier(0), Carrier::Kernel("bbr".into()));
        let error = prepared.scheme(0).err().unwrap();
        assert_eq!((&*error.code, error.place.as_str()), ("unknown-scheme", "making the scheme of flow 0: scheme"));
    }
}
