//! A small home to run verbs in, and runs whose random parts are taken out so that they can be compared.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use super::{Entry, Place, Ran, tree};

/// The home's folder below the place.
pub const HOME: &str = "me/workbuddy_home";

impl Place {
    /// A place whose user has an empty home where it usually is: it is found without being named.
    pub fn with_home() -> Place {
        let place = Place::new();
        place.ok(["init", "-q"]);
        place
    }

    /// The home of [`Place::with_home`].
    pub fn home(&self) -> PathBuf {
        self.path(HOME)
    }

    /// A file of the home, written with the folders above it.
    pub fn put_home(&self, rel: &str, content: impl AsRef<[u8]>) -> PathBuf {
        self.put(format!("{HOME}/{rel}"), content)
    }

    pub fn home_text(&self, rel: &str) -> String {
        self.text(format!("{HOME}/{rel}"))
    }

    /// The index as it stands on the disk.
    pub fn index(&self) -> serde_json::Value {
        serde_json::from_str(&self.home_text("index.json")).unwrap()
    }

    /// A session as an agent leaves it, last written on that day of June 2024 at nine: `session.json`, a turn and the
    /// rest of the folders. The index is not told.
    pub fn session(&self, id: &str, day: u64) {
        let record = format!(
            "{{\"id\": {id:?}, \"session_id\": \"identity-of-{id}\", \"created_at\": \"2024-06-{day:02}T08:00:00Z\"}}\n"
        );
        self.put_home(&format!("sessions/{id}/session.json"), record);
        self.put_home(
            &format!("sessions/{id}/context/turn_001.json"),
            "{\"turn\": 1, \"text\": \"一\"}\n",
        );
        for folder in ["memory", "artifacts", "logs"] {
            std::fs::create_dir_all(self.home().join("sessions").join(id).join(folder)).unwrap();
        }
        self.date(id, day);
    }

    /// Sets the times of everything in a session to nine o'clock of a day of June 2024.
    pub fn date(&self, id: &str, day: u64) {
        // 2024-06-01T09:00:00Z and the days since.
        let then = SystemTime::UNIX_EPOCH + Duration::from_secs(1_717_232_400 + 86_400 * (day - 1));
        for entry in
            walkdir::WalkDir::new(self.home().join("sessions").join(id)).contents_first(true)
        {
            let entry = entry.unwrap();
            if !entry.file_type().is_symlink() {
                let file = std::fs::File::open(entry.path()).unwrap();
                file.set_modified(then).unwrap();
            }
        }
    }

    /// Three sessions of three days, indexed: `20240603_crawler`, `20240604_数据清洗`, `20240605_api_refactor`.
    pub fn with_sessions() -> Place {
        let place = Place::with_home();
        place.session("20240603_crawler", 3);
        place.session("20240604_数据清洗", 4);
        place.session("20240605_api_refactor", 5);
        place.ok(["index", "-q"]);
        place
    }

    /// Notes this very process, which is sure to run, in a state folder as an agent that works in `cwd`. What is in
    /// `more` replaces a field, or with `null` takes its value away.
    pub fn at_work(&self, state: &str, cwd: impl AsRef<Path>, more: serde_json::Value) {
        let pid = std::process::id();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let mut noted = serde_json::json!({
            "pid": pid, "kind": "interactive", "cwd": cwd.as_ref(), "startedAt": now.unwrap().as_millis() as u64,
            "lastHeartbeat": 1_718_452_795_000_u64, "sessionId": format!("interactive-{pid}"), "version": "1",
        });
        let more = more.as_object().unwrap().clone();
        noted.as_object_mut().unwrap().extend(more);
        self.put(format!("{state}/sessions/{pid}.json"), noted.to_string());
    }

    /// Everything in the home but the tool's own folder, and without the times of the home itself.
    pub fn apart_from_own(&self) -> BTreeMap<Vec<u8>, Entry> {
        let mut tree = tree(&self.home());
        tree.retain(|name, _| !name.is_empty() && !name.starts_with(b".wbhome"));
        tree
    }

    /// Runs the program with more in its environment.
    pub fn run_with(&self, env: &[(&str, &str)], args: &[&str]) -> Ran {
        Ran::of(
            self.command()
                .envs(env.iter().copied())
                .args(args)
                .output()
                .unwrap(),
        )
    }

    /// Runs the program in another folder.
    pub fn run_in(&self, folder: impl AsRef<Path>, args: &[&str]) -> Ran {
        Ran::of(
            self.command()
                .current_dir(self.path(folder))
                .args(args)
                .output()
                .unwrap(),
        )
    }

    /// The mode bits of something in the place.
    pub fn mode(&self, rel: impl AsRef<Path>) -> u32 {
        let meta = std::fs::symlink_metadata(self.path(rel)).unwrap();
        meta.permissions().mode() & 0o7777
    }

    /// Names below a folder of the home, sorted, the folders with a slash.
    pub fn names(&self, rel: &str) -> Vec<String> {
        let root = self.home().join(rel);
        let mut names: Vec<String> = walkdir::WalkDir::new(&root)
            .min_depth(1)
            .into_iter()
            .map(|entry| {
                let entry = entry.unwrap();
                let name = entry
                    .path()
                    .strip_prefix(&root)
                    .unwrap()
                    .to_string_lossy()
                    .into_owned();
                match entry.file_type().is_dir() {
                    true => format!("{name}/"),
                    false => name,
                }
            })
            .collect();
        names.sort();
        names
    }
}

impl Ran {
    /// As [`Ran::shown`], without what differs from run to run: random ids and process numbers.
    pub fn settled(&self, place: &Place) -> String {
        without_random(&self.shown(place))
    }

    /// The one JSON document on standard error.
    pub fn error(&self) -> serde_json::Value {
        serde_json::from_str(&self.stderr).unwrap_or_else(|e| panic!("{e}: {self:?}"))
    }
}

/// A text with each run of 32 hexadecimal digits, and each process number, replaced.
pub fn without_random(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let hex = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        if hex == 32 {
            out.push_str("[RANDOM]");
            rest = &rest[hex..];
        } else if let Some(after) = rest.strip_prefix("(process ") {
            out.push_str("(process [PID]");
            rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
        } else if hex > 0 {
            out.push_str(&rest[..hex]);
            rest = &rest[hex..];
        } else {
            out.push(c);
            rest = &rest[c.len_utf8()..];
        }
    }
    out
}

/// Standard output of a stock tool, which must succeed.
pub fn tool(name: &str, args: &[&str]) -> String {
    let ran = Ran::of(Command::new(name).args(args).output().unwrap());
    assert_eq!(ran.code, Some(0), "{name}: {ran:?}");
    ran.stdout
}

impl Place {
    /// What must never be lost: the content of every file and the target of every link in the home, the tool's own
    /// trash included. What the tool counts and locks with is left out, and so are the index itself, whose entries change, and
    /// links to sessions, which are made from it.
    pub fn contents(&self) -> std::collections::BTreeSet<String> {
        let own = [
            "index.json",
            ".wbhome/cache.json",
            ".wbhome/lock",
            ".wbhome/journal",
        ];
        let all = tree(&self.home()).into_iter();
        all.filter(|(name, entry)| {
            let name = String::from_utf8_lossy(name);
            let derived =
                own.iter().any(|own| name.starts_with(own)) || name.starts_with("projects/");
            let note = name.starts_with(".wbhome/trash/") && name.ends_with("/note.json");
            entry.kind != 'd' && !derived && !note
        })
        .map(|(_, entry)| format!("{}:{}", entry.kind, entry.content))
        .collect()
    }

    /// Nothing that was there has gone.
    #[track_caller]
    pub fn nothing_lost(&self, before: &std::collections::BTreeSet<String>) {
        let mut now = self.contents();
        // A former index that has become the index again is there.
        now.insert(format!(
            "f:{}",
            super::digest(&self.home().join("index.json"))
        ));
        let lost: Vec<&String> = before.difference(&now).collect();
        assert!(lost.is_empty(), "lost: {lost:?}");
    }

    /// Files and links of the home with modes, times and content, without the tool's own, and without what is made from
    /// the index.
    pub fn files(&self) -> BTreeMap<Vec<u8>, Entry> {
        let mut files = self.apart_from_own();
        files.retain(|name, entry| {
            entry.kind != 'd' && name != b"index.json" && !name.starts_with(b"projects/")
        });
        files
    }

    /// The names of the acts in the trash, the oldest first as long as there are fewer than ten a second.
    pub fn acts(&self) -> Vec<String> {
        let Ok(acts) = std::fs::read_dir(self.home().join(".wbhome/trash")) else {
            return Vec::new();
        };
        let mut acts: Vec<String> = acts
            .map(|act| act.unwrap().file_name().into_string().unwrap())
            .collect();
        acts.sort();
        acts
    }

    /// An agent, which is this test, works in a folder of the home, as the application's registry says.
    pub fn agent_in(&self, rel: &str) {
        let now = SystemTime::now()
            .duration_since(SystemTime::UNIX_EPOCH)
            .unwrap();
        let noted = serde_json::json!({
            "pid": std::process::id(), "kind": "interactive", "sessionId": "一",
            "cwd": self.home().join(rel), "startedAt": now.as_millis() as u64,
        });
        self.put("me/.workbuddy/sessions/1.json", noted.to_string());
    }
}
