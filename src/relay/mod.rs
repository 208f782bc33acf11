//! What goes to other devices, and nothing of it before it was looked at for secrets.

pub mod export;
