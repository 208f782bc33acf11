//! The tab key, pressed in real shells, and the line that it completes run there.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it types into shells"
)]

mod support;

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use support::terminal::Terminal;
use support::{Place, Ran, has_tool};

const CRAWLER: &str = "20240603_crawler";
const CLEANING: &str = "20240604_数据清洗";
const REFACTOR: &str = "20240605_api_refactor";

/// Names that a shell would make something else of, each with the beginning that is typed.
const ODD: [(&str, &str); 13] = [
    ("aa space (1)", "a"),
    ("bb it's \"quoted\"", "b"),
    ("cc $HOME `id`", "c"),
    ("dd!bang", "d"),
    ("ee*?[x]", "e"),
    ("ff\nline", "f"),
    ("gg\\back", "g"),
    ("hh;a&b|c<d>", "h"),
    ("ii=x:y", "i"),
    ("jj 数据 清洗", "j"),
    ("kk{a,b}", "k"),
    ("ll#^~", "l"),
    ("mm\u{1b}[31m\u{202e}", "m"),
];

// ── what the program answers ────────────────────────────────────────────────────────────────────────────────────────

/// What bash is offered at the end of a line.
fn offered(place: &Place, line: &str) -> Vec<String> {
    let word = line.rsplit([' ', '=', ':']).next().unwrap();
    let ran = answer(place, "bash", &[line, "", word, "9", "80"]);
    ran.lines().map(str::to_owned).collect()
}

fn answer(place: &Place, shell: &str, args: &[&str]) -> String {
    let mut command = place.command();
    command.env("COMPLETE", shell).arg("--").args(args);
    let ran = Ran::of(command.output().unwrap());
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""), "{ran:?}");
    ran.stdout
}

#[test]
fn session_ids_are_offered_the_youngest_first() {
    let place = Place::with_sessions();
    let all = [REFACTOR, CLEANING, CRAWLER];
    assert_eq!(offered(&place, "wbhome path 2"), all);
    assert_eq!(offered(&place, "wbhome path "), all);
    assert_eq!(offered(&place, "wbhome label 20240604"), [CLEANING]);
    assert_eq!(
        offered(&place, "wbhome check 20240603_crawler 20240605"),
        [REFACTOR]
    );
    assert!(offered(&place, "wbhome path x").is_empty());
    // What has it somewhere inside, when nothing begins with it: one takes the place of the word.
    assert_eq!(offered(&place, "wbhome path crawl"), [CRAWLER]);
    // Of several nothing may: the empty one sees to that.
    assert_eq!(offered(&place, "wbhome path r"), [REFACTOR, CRAWLER, ""]);
}

#[test]
fn each_command_is_offered_the_sessions_that_it_takes() {
    let place = Place::with_sessions();
    place.ok(["archive", REFACTOR, "-q"]);
    place.ok(["rm", "数据", "-q"]);
    assert_eq!(offered(&place, "wbhome unarchive "), [REFACTOR]);
    assert_eq!(offered(&place, "wbhome archive "), [CRAWLER]);
    assert_eq!(offered(&place, "wbhome path "), [CRAWLER]);
    assert_eq!(offered(&place, "wbhome show "), [REFACTOR, CRAWLER]);
    let all = [REFACTOR, CLEANING, CRAWLER];
    assert_eq!(offered(&place, "wbhome restore --from git "), all);
    // The option may stand behind the word.
    let ran = answer(
        &place,
        "bash",
        &["wbhome restore ", " --from trash", "", "9", "80"],
    );
    let acts = place.acts();
    assert!(ran.contains(CLEANING) && ran.contains(&acts[0]), "{ran}");
    let ran = answer(
        &place,
        "fish",
        &[
            "wbhome restore --from trash 2024",
            "wbhome restore --from trash 2024",
        ],
    );
    let act = ran
        .split('\0')
        .find(|line| line.starts_with(&acts[0]))
        .unwrap();
    assert!(act.contains('\t') && act.contains("just now"), "{act}");
}

#[test]
fn descriptions_tell_status_age_and_title() {
    let place = Place::with_sessions();
    place.ok(["label", "crawler", "--title", "Prices\u{1b}[31m", "-q"]);
    let line = "wbhome show 20240603";
    let told = "active, 12 days ago, Prices\\x1b[31m";
    assert_eq!(
        answer(&place, "fish", &[line, line]),
        format!("{CRAWLER}\t{told}\0")
    );
    let zsh = answer(&place, "zsh", &["2", "120", "wbhome", "show", "20240603"]);
    let parts: Vec<&str> = zsh.split('\0').collect();
    let shown = format!("{CRAWLER}  {told}");
    assert_eq!(
        parts,
        ["", "lines", "1", CRAWLER, "1", &shown, "0", "0", ""]
    );
    let elvish = answer(&place, "elvish", &["wbhome", "show", "20240603"]);
    let offer: serde_json::Value = serde_json::from_str(&elvish).unwrap();
    assert_eq!(
        (&offer["value"], &offer["suffix"]),
        (&CRAWLER.into(), &" ".into())
    );
    assert_eq!(offer["display"], shown);
    // bash itself can show no more than names: they come with the list alone.
    let list = answer(&place, "bash", &["wbhome show 20", "", "20", "63", "80"]);
    assert!(
        list.contains("20240604_数据清洗      active, 11 days ago"),
        "{list}"
    );
    let other = place
        .command()
        .env("COMPLETE", "powershell")
        .env("_WBHOME_WORDS", "[\"wbhome\",\"show\",\"20240603\"]")
        .args(["--", "words"])
        .output()
        .unwrap();
    let other: serde_json::Value = serde_json::from_slice(&other.stdout).unwrap();
    assert_eq!(
        (&other["text"], &other["help"]),
        (&CRAWLER.into(), &told.into())
    );
}

#[test]
fn labels_options_and_their_values_are_offered() {
    let place = Place::with_sessions();
    place.ok([
        "label",
        "crawler",
        "--tag",
        "web",
        "--tag",
        "two words",
        "--project",
        "alpha",
        "--sync-tag",
        "laptop",
        "-q",
    ]);
    assert_eq!(offered(&place, "wbhome ls --tag "), [r"two\ words", "web"]);
    assert_eq!(offered(&place, "wbhome ls --tag=w"), ["web"]);
    assert_eq!(offered(&place, "wbhome new x --project "), ["alpha"]);
    assert_eq!(offered(&place, "wbhome label x --sync-tag "), ["laptop"]);
    assert_eq!(offered(&place, "wbhome ls --status m"), ["missing"]);
    assert_eq!(
        offered(&place, "wbhome ls --sort "),
        ["updated", "created", "size", "id"]
    );
    // Behind the key of a condition comes its value; for bash a new word begins there.
    assert_eq!(offered(&place, "wbhome label --where st"), ["status="]);
    assert_eq!(
        offered(&place, "wbhome label --where tag=t"),
        [r"two\ words"]
    );
    assert_eq!(
        offered(&place, "wbhome label --where status=m"),
        ["missing"]
    );
    assert!(offered(&place, "wbhome ls --sta").contains(&"--status".into()));
    assert!(offered(&place, "wbhome ch").contains(&"check".into()));
    assert!(offered(&place, "wbhome backup r").contains(&"run".into()));
    assert_eq!(offered(&place, "wbhome restore x --from tr"), ["trash"]);
    // Options are for those who have begun one.
    assert_eq!(
        offered(&place, "wbhome path crawler "),
        Vec::<String>::new()
    );
    // A file to write to is none of the program's.
    assert_eq!(
        offered(&place, "wbhome path crawler > 2"),
        Vec::<String>::new()
    );
}

#[test]
fn stores_are_offered() {
    let place = Place::with_sessions();
    place.ok(["backup", "init", "cold store", "-q"]);
    let store = place
        .path("cold store")
        .to_str()
        .unwrap()
        .replace(' ', "\\ ");
    let line = format!("wbhome backup run --store {}/c", place.root().display());
    assert_eq!(offered(&place, &line), [store.as_str()]);
    assert!(offered(&place, "wbhome backup run --store ").contains(&store));
}

#[test]
fn what_is_in_a_session_is_offered_archived_or_not() {
    let place = Place::with_sessions();
    place.put_home("sessions/20240603_crawler/artifacts/a b/c.txt", "x");
    place.put_home("sessions/20240603_crawler/.hidden", "x");
    std::os::unix::fs::symlink(
        "/etc",
        place
            .home()
            .join("sessions/20240603_crawler/artifacts/link"),
    )
    .unwrap();
    for archived in [false, true] {
        if archived {
            place.ok(["archive", "crawler", "-q"]);
        }
        let at = |line: &str| offered(&place, &format!("wbhome show {line}"));
        let top = ["artifacts/", "context/", "logs/", "memory/", "session.json"];
        assert_eq!(
            at("20240603_crawler/"),
            top.map(|name| format!("20240603_crawler/{name}"))
        );
        assert_eq!(at("20240603_crawler/.h"), ["20240603_crawler/.hidden"]);
        assert_eq!(at("crawler/con"), ["crawler/context/"]);
        assert_eq!(at("crawler/context/"), ["crawler/context/turn_001.json"]);
        assert_eq!(
            at("crawler/artifacts/"),
            [r"crawler/artifacts/a\ b/", "crawler/artifacts/link"]
        );
        assert_eq!(at(r"crawler/artifacts/a\ b/").len(), 1);
        for nothing in [
            "crawler/artifacts/link/",
            "crawler/../",
            "crawler//etc/",
            "none/",
        ] {
            assert!(at(nothing).is_empty(), "{nothing}: {:?}", at(nothing));
        }
    }
    // Who goes somewhere goes to a folder.
    place.ok(["unarchive", "crawler", "-q"]);
    assert_eq!(offered(&place, "wbcd crawler/se"), Vec::<String>::new());
    assert_eq!(offered(&place, "wbcd crawler/m"), ["crawler/memory/"]);
}

#[test]
fn the_home_on_the_line_counts() {
    let place = Place::new();
    place.ok(["init", "-q", "other"]);
    place.ok(["new", "theirs", "--home", "other"]);
    let theirs = ["20240615_theirs"];
    assert_eq!(offered(&place, "wbhome --home other path 2"), theirs);
    assert_eq!(offered(&place, "wbhome --home=other path 2"), theirs);
    assert_eq!(
        offered(
            &place,
            "wbhome --home '../../../../../../../../..'/$PWD/other path 2"
        )
        .len(),
        0
    );
    assert_eq!(
        offered(&place, "wbhome --home \"$HOME/../other\" path 2"),
        theirs
    );
    assert_eq!(offered(&place, "wbhome --home ~/../other path 2"), theirs);
    let behind = answer(
        &place,
        "bash",
        &["wbhome path 2", " --home other", "2", "9", "80"],
    );
    assert_eq!(behind.trim(), theirs[0]);
    let mut command = place.command();
    command
        .env("COMPLETE", "bash")
        .env("WBHOME", place.path("other"));
    let ran = command
        .args(["--", "wbhome path 2", "", "2", "9", "80"])
        .output()
        .unwrap();
    assert_eq!(Ran::of(ran).stdout.trim(), theirs[0]);
}

#[test]
fn completion_is_empty_and_silent_when_something_is_wrong() {
    let place = Place::new();
    assert!(offered(&place, "wbhome path 2").is_empty());
    let place = Place::with_sessions();
    for broken in [
        "[{",
        "",
        "nonsense",
        "{\"a\": ",
        "[{\"id\": \"20240603_x\"}, ",
    ] {
        place.put_home("index.json", broken);
        assert!(offered(&place, "wbhome path 2").is_empty(), "{broken}");
        assert!(offered(&place, "wbhome ls --tag ").is_empty());
    }
    for (shell, args) in [
        ("bash", vec![]),
        ("bash", vec!["x"]),
        ("zsh", vec!["9", "x"]),
        ("fish", vec![""]),
        ("powershell", vec!["words"]),
    ] {
        answer(&place, shell, &args);
    }
    answer(&place, "unheard-of", &["wbhome", "p"]);
    place.put_home("index.json", r#"[{"id": "20240603_a\u001b[2J"}, {"id": "20240604_b\nrm"}, {"id": "../../etc"}, {"id": "-rf"}]"#);
    let all = offered(&place, "wbhome show ");
    assert_eq!(all, [r"20240604_b$'\x0a'rm", r"20240603_a$'\x1b'\[2J"]);
}

#[test]
fn completion_takes_no_lock_and_writes_nothing() {
    let place = Place::with_sessions();
    place.ok(["archive", "crawler", "-q"]);
    let before = support::tree(&place.root());
    let lock = std::fs::File::open(place.home().join(".wbhome/lock")).unwrap();
    lock.lock().unwrap();
    assert_eq!(offered(&place, "wbhome show 2").len(), 3);
    assert_eq!(offered(&place, "wbhome show crawler/").len(), 5);
    assert_eq!(offered(&place, "wbhome ls --tag ").len(), 0);
    assert_eq!(
        support::differences(&before, &support::tree(&place.root())),
        ""
    );
}

// ── in real shells ──────────────────────────────────────────────────────────────────────────────────────────────────

#[derive(Clone, Copy, PartialEq)]
enum Shell {
    Bash,
    Zsh,
    Fish,
    Elvish,
}

use Shell::{Bash, Elvish, Fish, Zsh};

impl Shell {
    fn name(self) -> &'static str {
        match self {
            Bash => "bash",
            Zsh => "zsh",
            Fish => "fish",
            Elvish => "elvish",
        }
    }

    /// Whether it can be tried here. Where everything was installed on purpose, it must be.
    fn is_there(self) -> bool {
        let there = has_tool(self.name()) && has_tool("setsid");
        assert!(
            there || std::env::var_os("CI").is_none(),
            "{} is not there",
            self.name()
        );
        there
    }

    fn program(self) -> &'static [&'static str] {
        match self {
            Bash => &["bash", "--norc", "--noprofile", "-i"],
            Zsh => &["zsh", "-f", "-i"],
            Fish => &["fish", "--no-config", "-i"],
            Elvish => &["elvish", "-norc"],
        }
    }

    /// What turns completion on.
    fn set_up(self) -> &'static str {
        match self {
            Bash => "eval \"$(wbhome shell-init bash)\"",
            Zsh => "eval \"$(wbhome shell-init zsh)\"",
            Fish => "function fish_prompt; echo -n '> '; end; wbhome shell-init fish | source",
            Elvish => "eval (wbhome shell-init elvish | slurp)",
        }
    }
}

struct Typing {
    place: Place,
    terminal: Terminal,
    runs: usize,
}

/// A shell in a terminal, with what it was told at its start.
fn typing(shell: Shell, place: Place, set_up: &str) -> Typing {
    let program = Path::new(env!("CARGO_BIN_EXE_wbhome")).parent().unwrap();
    let mut path = vec![place.path("bin"), program.to_owned()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let terminal = Terminal::start(shell.program(), 160, |command| {
        command
            .current_dir(place.root())
            .env_clear()
            .env("HOME", place.user_home())
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("LC_ALL", "C.UTF-8")
            .env(
                "TERM",
                if matches!(shell, Fish | Elvish) {
                    "xterm"
                } else {
                    "dumb"
                },
            )
            .env("INPUTRC", "/dev/null")
            .env("PS1", "> ")
            .env("TZ", "UTC")
            .env("WBHOME_NOW", support::NOW);
    });
    let mut typing = Typing {
        place,
        terminal,
        runs: 0,
    };
    typing.run(set_up, "");
    typing
}

impl Typing {
    /// Types a command with a redirection behind it, and waits for what it has written.
    fn run(&mut self, keys: &str, after: &str) -> Vec<u8> {
        self.runs += 1;
        let [out, done] =
            ["out", "done"].map(|name| self.place.path(format!("{name}{}", self.runs)));
        let (to, then) = (out.display(), done.display());
        self.terminal
            .press(&format!("{keys} > {to} {after}; echo > {then}\r"));
        self.terminal.until(&format!("{keys:?} should end"), |_| {
            done.exists().then_some(())
        });
        std::fs::read(out).unwrap()
    }

    /// The line is run as it was completed, and finds this.
    fn finds(&mut self, keys: &str, below: &str) {
        let mut path = self
            .place
            .home()
            .join("sessions")
            .join(below)
            .into_os_string()
            .into_encoded_bytes();
        path.push(b'\n');
        let found = self.run(keys, "");
        assert_eq!(
            String::from_utf8_lossy(&found),
            String::from_utf8_lossy(&path),
            "{keys:?}"
        );
    }

    /// What is shown on the second press.
    fn lists(&mut self, keys: &str, all: &[&str]) {
        let mark = self.terminal.mark();
        self.terminal.press(keys);
        self.terminal.shows(mark, all);
        // Away with the line. What is typed before the shell has taken that in may go as well.
        self.terminal.press("\x03");
        self.runs += 1;
        let done = self.place.path(format!("done{}", self.runs));
        let mut pressed = Instant::now();
        self.terminal.press(&format!("echo > {}\r", done.display()));
        while !done.exists() {
            std::thread::sleep(Duration::from_millis(20));
            if pressed.elapsed() > Duration::from_secs(3) {
                pressed = Instant::now();
                self.terminal
                    .press(&format!("\r echo > {}\r", done.display()));
            }
        }
    }
}

fn odd_home() -> Place {
    let place = Place::with_home();
    for (id, day) in [(CRAWLER, 3), (CLEANING, 4), (REFACTOR, 5)] {
        place.session(id, day);
    }
    for (id, _) in ODD {
        place.put_home(&format!("sessions/{id}/artifacts/my dir/a b.txt"), "x");
    }
    place.ok(["index", "-q"]);
    place.ok(["label", CRAWLER, "--title", "Prices", "-q"]);
    place
}

fn completes(shell: Shell) {
    if !shell.is_there() {
        return;
    }
    let mut at = typing(shell, odd_home(), shell.set_up());
    at.lists(
        "wbhome show 2024\t\t\t",
        &[CRAWLER, CLEANING, REFACTOR, "12 days ago", "Prices"],
    );
    for (id, typed) in ODD {
        at.finds(&format!("wbhome path {typed}\t"), id);
        at.finds(&format!("wbhome path \"{typed}\t"), id);
        at.finds(&format!("wbhome path '{typed}\t"), id);
    }
    at.finds("wbhome path 20240604\t", CLEANING);
    // By a part of it.
    at.finds("wbhome path crawl\t", CRAWLER);
    at.finds("wbhome path api\t", REFACTOR);
    at.lists("wbhome path _\t\t", &[CRAWLER, CLEANING, REFACTOR]);
    // What is in it, a step at a time.
    at.finds(
        "wbhome path a\t\x7f/a\tm\ta\t",
        "aa space (1)/artifacts/my dir/a b.txt",
    );
    at.finds(
        "wbhome path \"aa space (1)/a\tm\ta\t",
        "aa space (1)/artifacts/my dir/a b.txt",
    );
    at.finds(
        "wbhome path 'aa space (1)/a\tm\ta\t",
        "aa space (1)/artifacts/my dir/a b.txt",
    );
    at.finds(
        "wbhome path 20240603_crawler/con\tt\t",
        "20240603_crawler/context/turn_001.json",
    );
}

fn stays_silent(shell: Shell) {
    if !shell.is_there() {
        return;
    }
    let place = Place::with_sessions();
    place.ok(["init", "-q", "another home"]);
    place.ok(["new", "theirs", "--home", "another home"]);
    let theirs = format!(
        "{}\n",
        place
            .path("another home/sessions/20240615_theirs")
            .display()
    );
    let mut at = typing(shell, place, shell.set_up());
    for keys in [
        "wbhome --home 'another home' path 2\t",
        "wbhome --home=another\\ home path the\t",
        "wbhome path --home an\t 2\t",
    ] {
        assert_eq!(
            String::from_utf8(at.run(keys, "")).unwrap(),
            theirs,
            "{keys}"
        );
    }
    at.place
        .put_home("index.json", "[{\"id\": \"20240603_crawler\", ");
    let mark = at.terminal.mark();
    let said = at.run("wbhome path 2024\t\tZ", "2>&1");
    let said = String::from_utf8(said).unwrap();
    assert!(said.contains("there is no session `2024Z`"), "{said}");
    let drawn = at.terminal.since(mark);
    assert!(
        !drawn.contains("error") && !drawn.contains("panicked"),
        "{drawn}"
    );
}

fn goes(shell: Shell) {
    if !shell.is_there() {
        return;
    }
    let place = odd_home();
    let stub = place.put("bin/fzf", "#!/bin/sh\nexec grep -a crawler\n");
    std::fs::set_permissions(&stub, std::fs::Permissions::from_mode(0o755)).unwrap();
    let at_home = |id: &str| format!("{}\n", place.home().join("sessions").join(id).display());
    let (crawler, line, inside) = (
        at_home(CRAWLER),
        at_home("ff\nline"),
        at_home("aa space (1)/artifacts"),
    );
    let mut at = typing(shell, place, shell.set_up());
    let mut goes = |keys: &str, to: &str| {
        let found = at.run(&format!("{keys}; pwd"), "");
        assert_eq!(String::from_utf8_lossy(&found), to, "{keys:?}");
    };
    goes("wbcd craw\t", &crawler);
    goes("wbcd ff\t", &line);
    goes("wbcd aa\t\x7f/ar\t", &inside);
    // Chosen.
    goes("wbcd", &crawler);
}

#[test]
fn bash_completes() {
    completes(Bash);
}

#[test]
fn zsh_completes() {
    completes(Zsh);
}

#[test]
fn fish_completes() {
    completes(Fish);
}

#[test]
fn shells_stay_silent_and_find_the_home() {
    [Bash, Zsh, Fish].into_iter().for_each(stays_silent);
}

#[test]
fn one_goes_to_a_session() {
    [Bash, Zsh, Fish].into_iter().for_each(goes);
}

/// The loaders that are checked in, as a shell finds them.
#[test]
fn loaders_load() {
    for (shell, set_up) in [
        (Bash, "source completions/wbhome.bash"),
        (
            Zsh,
            "fpath=($PWD/completions $fpath); autoload -Uz compinit; compinit -D -i",
        ),
        (Fish, "source completions/wbhome.fish"),
    ] {
        if !shell.is_there() {
            continue;
        }
        let place = Place::with_sessions();
        let loaders = Path::new(env!("CARGO_MANIFEST_DIR")).join("completions");
        std::os::unix::fs::symlink(loaders, place.path("completions")).unwrap();
        let mut at = typing(shell, place, set_up);
        at.finds("wbhome path craw\t", CRAWLER);
        at.finds("wbhome path 20240605\t", REFACTOR);
    }
}

#[test]
fn what_a_shell_takes_in_is_the_same_everywhere() {
    let (here, there) = (Place::with_sessions(), Place::new());
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let text = here.ok(["shell-init", shell]);
        assert_eq!(
            text,
            there.ok(["shell-init", shell]),
            "nothing of the machine is in it"
        );
        assert!(text.contains("wbcd") && text.contains("choice"));
        assert!(
            !text.contains("PROGRAM") && !text.contains("VAR="),
            "{text}"
        );
    }
}

#[test]
fn elvish_completes_and_goes() {
    // Not every distribution has it.
    if !has_tool("elvish") || !has_tool("setsid") {
        return;
    }
    let place = odd_home();
    let crawler = format!(
        "{}\n",
        place.home().join("sessions").join(CRAWLER).display()
    );
    let loader = place.ok(["completions", "elvish"]);
    let mut at = typing(Elvish, place, Elvish.set_up());
    at.finds("wbhome path 20240603\t", CRAWLER);
    at.finds("wbhome path 20240604\t", CLEANING);
    at.finds(
        "wbhome path 20240603_crawler/m\t",
        "20240603_crawler/memory",
    );
    let found = at.run("wbcd 20240603\t; pwd", "");
    assert_eq!(String::from_utf8_lossy(&found), crawler);
    let mut at = typing(Elvish, odd_home(), loader.lines().last().unwrap());
    at.finds("wbhome path 20240605\t", REFACTOR);
}

/// What `wbhome path` prints and is no folder is shown, and not gone to.
#[test]
fn wbcd_goes_nowhere_but_into_folders() {
    let place = Place::with_sessions();
    let program = Path::new(env!("CARGO_BIN_EXE_wbhome")).parent().unwrap();
    let mut path = vec![program.to_owned()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
    let path = std::env::join_paths(path).unwrap();
    for (shell, set_up) in [
        ("bash", "eval \"$(wbhome shell-init bash)\""),
        ("zsh", "eval \"$(wbhome shell-init zsh)\""),
        ("fish", "wbhome shell-init fish | source"),
    ] {
        if !has_tool(shell) {
            continue;
        }
        let run = |line: &str| {
            let mut command = std::process::Command::new(shell);
            command
                .args(["-c", &format!("{set_up}\n{line}")])
                .env_clear()
                .env("PATH", &path)
                .env("HOME", place.user_home())
                .env("LC_ALL", "C.UTF-8")
                .current_dir(place.root());
            support::Ran::of(command.output().unwrap())
        };
        let help = run("wbcd --help; pwd");
        assert!(help.stdout.contains("Usage: wbhome path"), "{help:?}");
        assert!(
            help.stdout
                .ends_with(&format!("{}\n", place.root().display())),
            "{help:?}"
        );
        assert_eq!(help.stderr, "", "{shell}");
        let file = run("wbcd crawler/session.json");
        assert_eq!(file.code, Some(1), "{shell}: {file:?}");
        assert!(file.stdout.ends_with("20240603_crawler/session.json\n"));
        assert_eq!(file.stderr, "wbcd: that is no folder\n", "{shell}");
        let gone = run("wbcd crawler; pwd");
        assert!(
            gone.stdout.ends_with("sessions/20240603_crawler\n"),
            "{gone:?}"
        );
    }
}
