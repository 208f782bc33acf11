//! `sessions/<pid>.json`: one file a running process of the application, and whether that process lives.

use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::base::Result;
use crate::disk::{self, FileKind};

/// A registry file is a few hundred bytes; anything much larger is not one.
const LARGEST: u64 = 1 << 20;

/// The registry is written after the process has started, and the kernel tells a start to the second. A
/// process that started later than this after the registry's time only has the same number.
const START_SLACK_MS: i64 = 5_000;

/// A process that the application has noted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
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
}

/// The file, with only the fields that matter here; the application adds others from version to version.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Noted {
    pid: u32,
    #[serde(default)]
    kind: String,
    session_id: Option<String>,
    cwd: Option<PathBuf>,
    started_at: Option<f64>,
    last_heartbeat: Option<f64>,
}

/// Every process that the state folder names. Files that are not registry entries are passed over: one
/// that is half written belongs to a process that is just starting or ending.
///
/// # Errors
/// When the folder can not be listed.
pub fn agents(state: &Path) -> Result<Vec<Agent>> {
    let folder = state.join("sessions");
    let mut found = Vec::new();
    for (name, kind) in disk::read_dir_names(&folder)? {
        if kind != FileKind::File || !name.to_string_lossy().ends_with(".json") {
            continue;
        }
        let Ok(Some(content)) = disk::read_small(&folder.join(&name), LARGEST) else {
            continue;
        };
        if let Ok(noted) = serde_json::from_slice::<Noted>(&content) {
            found.push(noted.into());
        }
    }
    Ok(found)
}

impl From<Noted> for Agent {
    fn from(noted: Noted) -> Self {
        let started_at = noted.started_at.map(|ms| ms as i64);
        Agent {
            pid: noted.pid,
            kind: noted.kind,
            session_id: noted.session_id,
            cwd: noted.cwd,
            started_at,
            last_heartbeat: noted.last_heartbeat.map(|ms| ms as i64),
            liveness: liveness(disk::process(noted.pid).as_ref(), started_at),
        }
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

    #[test]
    fn this_very_process_is_seen_to_run() {
        let folder = tempfile::tempdir().unwrap();
        let sessions = folder.path().join("sessions");
        disk::create_private_folder(&sessions).unwrap();
        let write = |name: &str, text: String| {
            disk::write_new(&sessions.join(name), text.as_bytes(), 0o600).unwrap();
        };
        let now = crate::base::Clock::now(&crate::base::SystemClock).as_millisecond();
        let me = std::process::id();
        write(
            "1.json",
            format!(r#"{{"pid":{me},"kind":"interactive","cwd":"/a/数据","startedAt":{now}}}"#),
        );
        write(
            "2.json",
            format!(
                r#"{{"pid":{me},"kind":"prewarm","startedAt":{}}}"#,
                now - 86_400_000
            ),
        );
        write("3.json", r#"{"pid": 4194"#.into());
        write("notes.txt", "x".into());
        let agents = agents(folder.path()).unwrap();
        let seen: Vec<_> = agents
            .iter()
            .map(|a| (a.kind.as_str(), a.liveness))
            .collect();
        assert_eq!(
            seen,
            [
                ("interactive", Liveness::Running),
                ("prewarm", Liveness::Gone)
            ]
        );
    }
}
