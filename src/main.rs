//! `wbhome`: a home for every agent session. Everything is in the library; see `wbhome::cli`.

fn main() -> std::process::ExitCode {
    wbhome::cli::run().into()
}
