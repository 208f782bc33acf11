//! `sessions/<pid>.json`: one file a running process of the application, and whether that process lives.
//!
//! The files are another program's and change from version to version. Each field is read by itself and in any form that
//! makes sense, and what can not be read falls back on the file's name and time: one field of an unexpected type must
//! not hide a running process. A file that is being written anew is empty or torn for a moment, so one that can not be
//! understood is looked at again.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use crate::base::Result;
use crate::disk;

/// A registry file is a few hundred bytes; anything much larger is not one.
const LARGEST: u64 = 1 << 20;

/// The registry is written after the process has started, and the kernel tells a start to the second. A
/// process that started later than this after the registry's time only has the same number.
const START_SLACK_MS: i64 = 5_000;

/// How often a file that can not be understood is read again, and how long apart.
const AGAIN: u32 = 5;
const APART: Duration = Duration::from_millis(40);

/// A time of zero was never set; one long ago was.
const UNSET: i64 = 0;

/// Milliseconds of 1973: a smaller number of a present time is one of seconds.
const SECONDS_BELOW: f64 = 1e11;

/// A process that the application has noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// The registry file that says so.
    pub file: PathBuf,
    /// Its number.
    pub pid: u32,
    /// `interactive`, or `prewarm` for a process of the pool that has no session yet.
    pub kind: String,
    /// The session that it works on.
    pub session_id: Option<String>,
    /// The folder that it works in.
    pub cwd: Option<PathBuf>,
    /// When it started, in milliseconds since 1970.
    pub started_at: Option<i64>,
    /// Its last sign of life, in milliseconds since 1970.
    pub last_heartbeat: Option<i64>,
    /// Whether it runs.
    pub liveness: Liveness,
}

/// Whether a noted process runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Liveness {
    /// It runs, whatever its heartbeat says: it may be stopped, or the machine may have slept.
    Running,
    /// There is no such process, or another one has its number now.
    Gone,
}

impl Agent {
    /// Whether it is a process of the pool, whose folder says nothing.
    pub fn is_prewarm(&self) -> bool {
        self.kind == "prewarm"
    }

    /// Whether it runs.
    pub fn is_running(&self) -> bool {
        self.liveness == Liveness::Running
    }

    /// Whether it is at work in some folder: it runs, and is no process of the pool.
    pub fn is_at_work(&self) -> bool {
        self.is_running() && !self.is_prewarm()
    }

    /// Whether it is at work and its file does not say where: then it may be anywhere.
    pub fn is_at_work_somewhere(&self) -> bool {
        self.is_at_work() && !self.cwd.as_deref().is_some_and(Path::is_absolute)
    }
}

/// Every process that the state folder names. A file that can not be understood, or not be read, is taken for one of
/// the process that its name says.
///
/// # Errors
/// When the folder can not be listed: then nothing is known.
pub fn agents(state: &Path) -> Result<Vec<Agent>> {
    let folder = state.join("sessions");
    let mut found = Vec::new();
    let mut unclear = Vec::new();
    for (name, _) in disk::read_dir_names(&folder)? {
        let Some(stem) = name.to_str().and_then(|name| name.strip_suffix(".json")) else {
            continue;
        };
        let file = folder.join(&name);
        match noted(&file) {
            Noted::Clear(noted) => found.extend(agent(file, stem, &noted)),
            Noted::Unclear => unclear.push((file, stem.to_owned())),
            Noted::Gone => {}
        }
    }
    let lives =
        |(_, stem): &(PathBuf, String)| stem.parse().is_ok_and(|n| disk::process(n).is_some());
    for _ in 0..AGAIN {
        if !unclear.iter().any(lives) {
            break;
        }
        std::thread::sleep(APART);
        unclear.retain(|(file, stem)| match noted(file) {
            Noted::Clear(noted) => {
                found.extend(agent(file.clone(), stem, &noted));
                false
            }
            Noted::Unclear => true,
            Noted::Gone => false,
        });
    }
    let unclear = unclear.into_iter();
    found.extend(unclear.filter_map(|(file, stem)| agent(file, &stem, &Value::Null)));
    Ok(found)
}

/// What a registry file says.
enum Noted {
    Clear(Value),
    /// It can not be read, or is being written.
    Unclear,
    /// The process has ended meanwhile.
    Gone,
}

fn noted(file: &Path) -> Noted {
    match disk::read_small(file, LARGEST) {
        Ok(None) => Noted::Gone,
        Ok(Some(content)) => match serde_json::from_slice(&content) {
            Ok(noted @ Value::Object(_)) => Noted::Clear(noted),
            _ => Noted::Unclear,
        },
        Err(_) => Noted::Unclear,
    }
}

fn agent(file: PathBuf, stem: &str, noted: &Value) -> Option<Agent> {
    let text = |field: &str| noted.get(field).and_then(Value::as_str).map(str::to_owned);
    let pid = noted
        .get("pid")
        .and_then(number)
        .filter(|n| n.fract() == 0.0 && (1.0..=f64::from(u32::MAX)).contains(n))
        .map(|n| n as u32)
        .or_else(|| stem.parse().ok())?;
    let time = |field: &str| {
        let time = noted.get(field).and_then(moment);
        time.filter(|ms| *ms > UNSET)
    };
    // Without a time of its own: the process has written the file, and so has started before.
    let latest_start = time("startedAt").or_else(|| {
        let written = disk::stat(&file).ok()??.mtime;
        written.seconds.checked_mul(1000)
    });
    Some(Agent {
        pid,
        kind: text("kind").unwrap_or_default(),
        session_id: text("sessionId"),
        cwd: text("cwd").map(PathBuf::from),
        started_at: time("startedAt"),
        last_heartbeat: time("lastHeartbeat"),
        liveness: liveness(disk::process(pid).as_ref(), latest_start),
        file,
    })
}

/// A number, or a text that is one.
fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Number(n) => n.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    }
    .filter(|n: &f64| n.is_finite())
}

/// Milliseconds since 1970, from a number, a text that is one, or a date.
fn moment(value: &Value) -> Option<i64> {
    let date = || {
        let date: jiff::Timestamp = value.as_str()?.trim().parse().ok()?;
        Some(date.as_millisecond())
    };
    match number(value) {
        Some(n) if n < SECONDS_BELOW => Some((n * 1000.0) as i64),
        Some(n) => Some(n as i64),
        None => date(),
    }
}

fn liveness(process: Option<&disk::Process>, started_at: Option<i64>) -> Liveness {
    let Some(process) = process else {
        return Liveness::Gone;
    };
    match (process.started_ms, started_at) {
        (Some(process), Some(noted)) if process > noted.saturating_add(START_SLACK_MS) => {
            Liveness::Gone
        }
        // Without both times the number alone has to do, and a running agent must not be overlooked.
        _ => Liveness::Running,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(started_ms: Option<i64>) -> disk::Process {
        disk::Process {
            pid: 7,
            name: "agent".into(),
            started_ms,
        }
    }

    #[test]
    fn a_number_that_was_given_again_is_another_process() {
        let noted = Some(1_000_000);
        assert_eq!(liveness(None, noted), Liveness::Gone);
        let at = |ms| liveness(Some(&process(Some(ms))), noted);
        assert_eq!(at(999_000), Liveness::Running);
        assert_eq!(at(1_004_000), Liveness::Running);
        assert_eq!(at(1_006_000), Liveness::Gone);
        assert_eq!(liveness(Some(&process(None)), noted), Liveness::Running);
        assert_eq!(liveness(Some(&process(Some(5))), None), Liveness::Running);
    }

    /// A registry with this one file.
    fn seen(name: &str, content: &str) -> Vec<Agent> {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("sessions")).unwrap();
        std::fs::write(folder.path().join("sessions").join(name), content).unwrap();
        agents(folder.path()).unwrap()
    }

    fn now() -> i64 {
        crate::base::Clock::now(&crate::base::SystemClock).as_millisecond()
    }

    #[test]
    fn this_very_process_is_seen_to_run() {
        let (me, now) = (std::process::id(), now());
        let content =
            format!(r#"{{"pid":{me},"kind":"interactive","cwd":"/a/数据","startedAt":{now}}}"#);
        let agent = &seen("1.json", &content)[0];
        assert_eq!((agent.pid, agent.kind.as_str()), (me, "interactive"));
        assert_eq!(agent.cwd.as_deref(), Some(Path::new("/a/数据")));
        assert!(agent.is_running() && !agent.is_prewarm());
        let before = now - 86_400_000;
        let content = format!(r#"{{"pid":{me},"kind":"prewarm","startedAt":{before}}}"#);
        let agent = &seen("1.json", &content)[0];
        assert!(agent.is_prewarm() && !agent.is_running());
        assert!(seen("notes.txt", "x").is_empty());
        assert!(seen("notes.json", "x").is_empty());
    }

    #[test]
    fn no_field_of_another_type_hides_a_running_process() {
        let (me, now) = (std::process::id(), now());
        for content in [
            format!(r#"{{"pid":"{me}","startedAt":"{now}"}}"#),
            format!(r#"{{"pid":{me}.0,"startedAt":{now}.25,"kind":7,"sessionId":null,"cwd":[]}}"#),
            format!(r#"{{"pid":{{}},"startedAt":{}}}"#, now / 1000),
            format!(r#"{{"startedAt":"{}"}}"#, jiff::Timestamp::now()),
            format!(r#"{{"pid":{me}, "kind": "inter"#),
            "[]".into(),
            String::new(),
            "\0\0\0\0".into(),
        ] {
            let agents = seen(&format!("{me}.json"), &content);
            assert_eq!(agents.len(), 1, "{content}");
            assert!(
                agents[0].pid == me && agents[0].is_running(),
                "{content}: {agents:?}"
            );
        }
    }

    #[test]
    fn a_start_that_was_never_set_is_no_proof_of_an_end() {
        let me = std::process::id();
        for times in [
            "",
            r#","startedAt":0"#,
            r#","startedAt":"0","lastHeartbeat":0"#,
        ] {
            let content = format!(r#"{{"pid":{me},"cwd":"/a"{times}}}"#);
            assert!(seen("1.json", &content)[0].is_running(), "{content}");
        }
    }

    #[test]
    fn a_file_that_is_being_written_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("sessions")).unwrap();
        let me = std::process::id();
        let path = folder.path().join(format!("sessions/{me}.json"));
        std::fs::write(&path, "").unwrap();
        let content = format!(r#"{{"pid":{me},"kind":"interactive","cwd":"/a"}}"#);
        let writer = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(60));
            std::fs::write(&path, content).unwrap();
        });
        let found = agents(folder.path()).unwrap();
        writer.join().unwrap();
        assert_eq!(found[0].cwd.as_deref(), Some(Path::new("/a")));
        // One that stays so is at work, nobody knows where.
        let torn = &seen(&format!("{me}.json"), "{\"pid\":")[0];
        assert!(torn.is_at_work_somewhere() && torn.pid == me);
        // A process that has ended is waited for by nobody.
        let since = std::time::Instant::now();
        assert!(!seen("4194304.json", "")[0].is_running());
        assert!(since.elapsed() < APART);
    }

    #[test]
    fn a_file_that_is_older_than_the_process_is_not_of_it() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("sessions")).unwrap();
        let path = folder
            .path()
            .join(format!("sessions/{}.json", std::process::id()));
        std::fs::write(&path, "{torn").unwrap();
        let long_ago = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1 << 30);
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_modified(long_ago).unwrap();
        assert!(!agents(folder.path()).unwrap()[0].is_running());
    }
}
