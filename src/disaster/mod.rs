//! When the home is gone: a whole one out of a store, and out of the repository where that has survived.

pub mod drill;
pub mod rebuild;

pub use drill::last_drill;
