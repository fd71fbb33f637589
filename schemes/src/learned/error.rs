//! Says what is wrong with an exported policy.

use ccgym_core::Error;

/// A file of a policy that cannot be used. Files that do not belong together, or are damaged, are to be exported again.
pub(super) fn unreadable(place: impl Into<String>, found: impl ToString, expected: impl ToString) -> Error {
    Error::of("policy-unreadable", place, found)
        .expected(expected)
        .hint("export the policy again, or fetch both of its files again")
}
