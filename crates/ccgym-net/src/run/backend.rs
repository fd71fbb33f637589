//! Backends: the paths that packets travel through. This crate has the emulated path; more are crates of `crates/optional`,
//! which the process of a job puts into its [`Host`].

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::plan::{no_guests, MakeGuests, Plan};
use super::EMULATED;
use crate::doctor::Finding;
use crate::error::{Error, Result};

/// A kind of path that can carry out plans.
pub struct Backend {
    /// Name in plans, see [`BackendSpec::kind`].
    pub kind: &'static str,
    /// True if it runs in a user namespace, which a process without root enters before.
    pub in_user_namespace: bool,
    /// Carries out a plan and returns the result of [`encode`](super::encode).
    pub carry_out: fn(Plan, MakeGuests<'_>) -> Result<Vec<u8>>,
    /// Checks of the doctor, called before the process enters a user namespace.
    pub examine: fn() -> Vec<Finding>,
}

/// Schemes and backends of the process of a job.
pub struct Host<'a> {
    /// Makes the process's own schemes.
    pub make_guests: MakeGuests<'a>,
    /// Available backends.
    pub backends: &'a [Backend],
}

impl Host<'static> {
    /// This crate alone: the emulated path and no own schemes.
    pub const ALONE: Self = Self { make_guests: &no_guests, backends: &[EMULATED] };
}

impl Host<'_> {
    /// Return the backend of this kind.
    ///
    /// # Errors
    /// No such backend in this process.
    pub fn backend(&self, kind: &str) -> Result<&Backend> {
        self.backends.iter().find(|backend| backend.kind == kind).ok_or_else(|| {
            let kinds: Vec<_> = self.backends.iter().map(|backend| backend.kind).collect();
            Error::of("backend-unsuitable", "checking backend.kind", format!("{kind:?}"))
                .expected(format!("one that this program has: {}", kinds.join(", ")))
                .hint("the crates of crates/optional bring mahimahi and remote; the Python package has both")
        })
    }
}

/// The backend of a plan.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct BackendSpec {
    /// Name of the [`Backend`].
    pub kind: String,
    #[serde(flatten)]
    settings: Map<String, Value>,
}

impl Default for BackendSpec {
    fn default() -> Self {
        Self { kind: EMULATED.kind.into(), settings: Map::new() }
    }
}

impl BackendSpec {
    /// Parse the backend's settings in the plan.
    ///
    /// # Errors
    /// Settings of another form.
    pub fn settings<T: DeserializeOwned>(&self) -> Result<T> {
        serde_json::from_value(Value::Object(self.settings.clone()))
            .map_err(|error| Error::of("protocol-error", format!("reading the backend {}", self.kind), error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backend_that_this_program_lacks_is_refused() {
        assert_eq!(Host::ALONE.backend("emulated").unwrap().kind, "emulated");
        let error = Host::ALONE.backend("remote").err().unwrap();
        assert_eq!((&*error.code, error.place.as_str()), ("backend-unsuitable", "checking backend.kind"));
    }

    #[test]
    fn settings_are_the_backend_s() {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Own {
            speed: u32,
        }
        let read = |text: &str| serde_json::from_str::<BackendSpec>(text).unwrap().settings::<Own>();
        assert_eq!(read(r#"{"kind":"fast","speed":3}"#).unwrap().speed, 3);
        for wrong in [r#"{"kind":"fast"}"#, r#"{"kind":"fast","speed":3,"hue":1}"#] {
            assert_eq!(read(wrong).err().unwrap().code, "protocol-error", "{wrong}");
        }
    }
}
