//! A terminal for the program, by `script`: what a person sees at so many columns.

use std::process::{Command, Stdio};

use super::Place;

impl Place {
    /// What the program prints on a terminal so wide, standard output and standard error as they come. Nobody presses a
    /// key, and no pager is run.
    pub fn on_terminal(&self, columns: usize, args: &[&str]) -> String {
        let wbhome = self.command();
        let quoted = |word: &str| format!("'{}'", word.replace('\'', "'\\''"));
        let mut line = quoted(wbhome.get_program().to_str().unwrap());
        for arg in args {
            line = format!("{line} {}", quoted(arg));
        }
        let mut script = Command::new("script");
        script.args(["-qec", &line, "/dev/null"]).env_clear();
        script.envs(
            wbhome
                .get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        script.current_dir(self.root());
        script
            .env("TERM", "xterm")
            .env("COLUMNS", columns.to_string());
        script.env("PAGER", "cat");
        let output = script.stdin(Stdio::null()).output().unwrap();
        String::from_utf8(output.stdout)
            .unwrap()
            .replace("\r\n", "\n")
    }
}
