//! `run PLAN`: carry out a plan from a file and leave its result beside it.

use std::path::Path;

use super::plan::{Backend, Plan};
use super::{execute, life_line};
use crate::error::{NetError, Result};

/// Run the command; `--life-line` ends it with its standard input.
///
/// # Errors
/// As [`execute`].
pub fn main(words: &[String]) -> Result<i32> {
    let (flags, files): (Vec<&String>, Vec<&String>) = words.iter().partition(|word| word.starts_with("--"));
    if let Some(unknown) = flags.iter().find(|flag| flag.as_str() != "--life-line") {
        return Err(NetError::new("run", format!("unknown option {unknown}")).expected("--life-line"));
    }
    let [file] = files.as_slice() else {
        return Err(NetError::new("run", format!("{} files", files.len())).expected("one: the plan"));
    };
    let plan = Plan::read(Path::new(file))?;
    let Some(result) = plan.result.clone() else {
        return Err(NetError::new("run", "a plan without the place of its result").expected("the key `result`"));
    };
    let held = !flags.is_empty();
    let finished = execute_held(plan, held)?;
    finished.write(&result)?;
    Ok(0)
}

fn execute_held(plan: Plan, held: bool) -> Result<super::RunResult> {
    // A user namespace can only be entered while there are no threads, and the life line is one. mahimahi is to be
    // started by the user himself.
    if matches!(plan.backend, Backend::Emulated) {
        crate::system::become_capable()?;
    }
    if held {
        life_line::hold()?;
    }
    execute(plan)
}
