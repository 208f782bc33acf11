#![no_main]
#[path = "../bodies/mod.rs"]
mod bodies;
libfuzzer_sys::fuzz_target!(|input: &[u8]| drop(bodies::conflict_name::run(input)));
