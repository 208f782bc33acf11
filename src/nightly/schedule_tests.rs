//! The texts, for names that mean something to those who read them; and the crontab of somebody else.

use std::path::Path;
use std::process::Command;

use super::job::shell_word;
use super::*;

const ID: &str = "0123456789abcdef0123456789abcdef";

fn job(program: &str, home: &str) -> Job {
    Job {
        id: ID.to_owned(),
        program: program.to_owned(),
        home: home.to_owned(),
        at: At { hour: 3, minute: 0 },
    }
}

/// Names that a shell, cron, systemd or XML would take for something else.
const HARD: [&str; 8] = [
    "/home/mei/workbuddy_home",
    "/home/mei/主 页",
    "/a'b\"c",
    "/100% of $HOME",
    "/a\\b\\\\c\\%d",
    "/`id`;#&|<>*?[x]{y}!~",
    "/%h%%H",
    "/ends in a backslash\\",
];

/// What cron makes of a command before a shell gets it: do_command.c of Vixie cron.
fn as_cron_reads(command: &str) -> String {
    let (mut out, mut escaped) = (String::new(), false);
    for c in command.chars() {
        match (escaped, c) {
            (true, '%' | '\\') => {
                out.pop();
                out.push(c);
                escaped = false;
                continue;
            }
            (false, '%') => break,
            _ => out.push(c),
        }
        escaped = !escaped && c == '\\';
    }
    out
}

#[test]
fn a_shell_that_cron_starts_gets_the_very_words() {
    for name in HARD {
        let job = job("/bin/echo", name);
        let line = cron::line(&job);
        let command = line.strip_prefix("0 3 * * * ").unwrap();
        let read = as_cron_reads(command).replacen("/bin/echo", "printf '%s\\n'", 1);
        let shown = Command::new("/bin/sh")
            .args(["-c", &read])
            .output()
            .unwrap();
        let shown = String::from_utf8(shown.stdout).unwrap();
        assert_eq!(shown, format!("nightly\n--home\n{name}\n"), "{line}");
    }
    assert_eq!(shell_word(""), "''");
}

#[test]
fn systemd_gets_the_very_words() {
    let unit = |name| systemd::texts(&job("/opt/a$b/50%/wbhome", name))[0].clone();
    let command = |name| {
        let unit = unit(name);
        let line = unit
            .lines()
            .find(|line| line.starts_with("ExecStart="))
            .unwrap();
        line.to_owned()
    };
    // systemd-analyze says that a `$` in the first word stands for itself.
    assert_eq!(
        command("/a \"b\" \\ $HOME %h"),
        r#"ExecStart="/opt/a$b/50%%/wbhome" nightly --home "/a \"b\" \\ $$HOME %%h""#
    );
    assert!(unit("/50%").contains("Description=The night of /50%%\n"));
}

#[test]
fn launchd_gets_the_very_words() {
    let text = launchd::text(&job("/usr/bin/wbhome", "/a<b>&\"c\""));
    assert!(
        text.contains("<string>/a&lt;b&gt;&amp;\"c\"</string>"),
        "{text}"
    );
    assert_eq!(launchd::at(&text), Some(At { hour: 3, minute: 0 }));
}

#[test]
fn a_time_of_the_day() {
    let good = |text: &str| text.parse::<At>().map(|at| at.to_string());
    assert_eq!(good("3:00").unwrap(), "03:00");
    assert_eq!(good("23:59").unwrap(), "23:59");
    for bad in [
        "", "3", "24:00", "03:60", "+3:00", "3:0x", "003:00", "-1:00", ":",
    ] {
        assert!(good(bad).is_err(), "{bad}");
    }
    let timer = &systemd::texts(&job("/w", "/h"))[1];
    assert_eq!(systemd::at(timer), Some(At { hour: 3, minute: 0 }));
}

/// What stands in `examples/schedule/` is what the program makes.
#[test]
fn the_examples_are_what_is_made() {
    let job = job("/home/mei/.cargo/bin/wbhome", "/home/mei/workbuddy_home");
    let [service, timer] = systemd::texts(&job);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/schedule");
    for (name, text) in [
        ("wbhome-nightly-01234567.service", service),
        ("wbhome-nightly-01234567.timer", timer),
        ("wbhome-nightly-01234567.plist", launchd::text(&job)),
        ("crontab", format!("{}\n", cron::line(&job))),
    ] {
        let path = folder.join(name);
        if std::env::var_os("WBHOME_REFRESH").is_some() {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(&path, &text).unwrap();
        }
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(
            there, text,
            "{name} is stale: WBHOME_REFRESH=1 makes it anew"
        );
    }
}
