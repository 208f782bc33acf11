//! What must not leave the machine: keys, tokens, passwords.
//!
//! [`Rules`] are read once and then asked about each file: [`Rules::scan`] says where a secret stands, in words that
//! do not give it away ([`Match`]). What happens then is the caller's decision; [`Allowed`] holds what a person has
//! called harmless.
//!
//! [`Check`] is both together: what is asked about a file that is to be carried elsewhere, of any size, in memory that
//! does not grow with it (`windows`).
//!
//! A file is not parsed: it may be torn, or in no known format. It is read as it stands, and again with the escapes
//! of JSON undone (`view`), because a session keeps what it saw inside strings inside strings. One pass over each
//! reading finds the few places where a rule could match (`keywords`); only there does the rule's regex run (`scan`).
//! The regexes are of a kind that can not be made to hang.
//!
//! The rules are data, in the format of gitleaks: our own in `rules.toml`, a person's in a file that `[secrets] rules`
//! names (`format`, `compile`).

mod allowed;
mod allowlist;
mod check;
mod compile;
mod entropy;
mod format;
mod found;
mod keywords;
mod rules;
mod scan;
mod view;
mod windows;

pub use allowed::Allowed;
pub use check::{Check, Checked};
pub use found::Match;
pub use rules::Rules;

#[cfg(test)]
mod tests;
