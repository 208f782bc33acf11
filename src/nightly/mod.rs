//! The night: what is done while nobody is at work, and what makes the machine do it.
//!
//! A composition: it calls several capabilities through their public faces, and knows how none of them works.

pub mod schedule;
