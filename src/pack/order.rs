//! The order of the members: what a person looks for first stands first, what is largest last.
