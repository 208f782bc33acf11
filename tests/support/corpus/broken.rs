//! What sync clients do to a home. The first seven sessions have a role each; the others stay whole.

use std::io;
use std::path::Path;

use super::Damage;
use super::session::{Outcome, Session};
use super::text::Doc;
use super::tree::{Time, Tree};

/// The least home that all of it fits in.
pub const SESSIONS: usize = 7;
pub const TURNS: usize = 6;

/// What happened to a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Copies of three relations, all from one afternoon.
    Copied,
    /// The whole folder exists twice.
    Twin,
    /// A turn is gone, and a log has a hole of zeros.
    Gap,
    /// A file stops in mid-record beside its whole copy; another is nothing but zeros.
    Torn,
    /// A file was never fetched.
    Placeholder,
    /// The index does not know it.
    Unindexed,
    /// One copy of each client; and names that only look like copies.
    Museum,
    Whole,
}

impl Role {
    /// The role of session `n`.
    pub fn of(n: usize) -> Role {
        const ROLES: [Role; SESSIONS] = [
            Role::Copied,
            Role::Twin,
            Role::Gap,
            Role::Torn,
            Role::Placeholder,
            Role::Unindexed,
            Role::Museum,
        ];
        ROLES.get(n).copied().unwrap_or(Role::Whole)
    }
}

/// (session, original, name of the copy, client, relation)
type Copy = (Role, &'static str, &'static str, &'static str, &'static str);

const COPIES: [Copy; 19] = [
    (
        Role::Copied,
        "context/turn_002.json",
        "turn_002 (1).json",
        "numbered-copy",
        "same",
    ),
    (
        Role::Copied,
        "context/turn_003.json",
        "turn_003 (1).json",
        "numbered-copy",
        "diverged",
    ),
    (
        Role::Copied,
        "logs/agent_run.log",
        "agent_run (Mei's conflicted copy 2025-02-11).log",
        "dropbox",
        "prefix",
    ),
    (
        Role::Torn,
        "context/turn_005.json",
        "turn_005 (1).json",
        "numbered-copy",
        "extends",
    ),
    (
        Role::Museum,
        "context/turn_001.json",
        "turn_001_MEI-NAS_Feb-11-1011-2025_CaseConflict_1.json",
        "synology",
        "same",
    ),
    (
        Role::Museum,
        "context/turn_002.json",
        "turn_002.sync-conflict-20250211-101112-ABCDEF2.json",
        "syncthing",
        "same",
    ),
    (
        Role::Museum,
        "context/turn_003.json",
        "turn_003 (# Edit conflict 2025-02-11 nGFf #).json",
        "proton",
        "diverged",
    ),
    (
        Role::Museum,
        "context/checkpoint.md",
        "checkpoint (conflicted copy mei 2025-02-11 101112).md",
        "nextcloud",
        "diverged",
    ),
    (
        Role::Museum,
        "memory/persistent_memory.json",
        "persistent_memory(笔记本的冲突副本1_2025-02-11 10-11-12).json",
        "chinese",
        "same",
    ),
    (
        Role::Museum,
        "memory/notes.md",
        "notes (copy: conflict on 2025-02-11).md",
        "unison",
        "same",
    ),
    (
        Role::Museum,
        "artifacts/table.csv",
        "table (SFConflict mei@example.org 2025-02-11-10-11-12).csv",
        "seafile",
        "prefix",
    ),
    (
        Role::Museum,
        "artifacts/paths.md",
        "paths 2.md",
        "icloud",
        "prefix",
    ),
    (
        Role::Museum,
        "artifacts/calls.jsonl",
        "calls.Conflict.jsonl",
        "resilio",
        "same",
    ),
    (
        Role::Museum,
        "artifacts/settings.yaml",
        "settings.yaml.conflict1",
        "rclone",
        "same",
    ),
    (
        Role::Museum,
        "artifacts/output_report.md",
        "output_report [conflicted].md",
        "pcloud",
        "extends",
    ),
    (
        Role::Museum,
        "artifacts/run.py",
        "run-MEI-WORK-safeBackup-0001.py",
        "onedrive",
        "same",
    ),
    (
        Role::Museum,
        "artifacts/code/main.py",
        "main-LAPTOP7.py",
        "onedrive",
        "diverged",
    ),
    (
        Role::Museum,
        "session.json",
        "session-NSConflict-mei.json",
        "nutstore",
        "same",
    ),
    (
        Role::Museum,
        "logs/agent_run.log",
        "agent_run (1) (Mei's conflicted copy 2025-02-11).log",
        "dropbox",
        "extends",
    ),
];

/// In the artifacts of the museum: nothing of these names stands beside them.
const INNOCENT: [&str; 6] = [
    "slides (1).md",
    "summary-FINAL.md",
    "photo 2.md",
    "plan (draft).md",
    "main-DESKTOP8.txt",
    "方案-副本.md",
];

/// What an interrupted fetch leaves of a property list.
const PLACEHOLDER: &[u8] = b"bplist00\xd2\x01\x02\x03\x04_\x10\x15NSURLNameKey";

impl Session<'_> {
    /// Writes what became of a file, and the copies of it. True when the file itself needs no more writing.
    pub fn break_file(
        &mut self,
        relative: &str,
        doc: &Doc,
        when: Time,
        mode: u32,
    ) -> io::Result<bool> {
        let role = self.role;
        for copy in COPIES
            .iter()
            .filter(|copy| copy.0 == role && copy.1 == relative)
        {
            self.copy(copy, doc, mode)?;
        }
        match (role, relative) {
            (Role::Twin, "session.json") => {
                self.kept.push(("session.json", doc.clone()));
                return Ok(false);
            }
            (Role::Twin, "context/turn_001.json") => {
                self.kept.push(("context/turn_001.json", doc.clone()));
                return Ok(false);
            }
            (Role::Gap, "context/turn_004.json") => self.note("missing-turn", relative),
            (Role::Gap, "logs/agent_run.log") => {
                let mut holed = doc.first_half();
                holed
                    .raw(&"\0".repeat(512))
                    .raw("\n2025-02-11T08:00:00.000Z INFO started after a power cut\n");
                self.write(relative, &holed, when, mode)?;
                self.note("nul-run", relative);
            }
            (Role::Torn, "context/turn_005.json") => {
                self.write(relative, &doc.first_half(), when, mode)?;
                self.note("torn-json", relative);
            }
            (Role::Torn, "context/turn_006.json") => {
                self.tree
                    .put(relative, &vec![0; doc.text.len()], when, mode)?;
                self.note("nul-run", relative);
            }
            (Role::Placeholder, "memory/persistent_memory.json") => {
                let name = "memory/.persistent_memory.json.icloud";
                self.tree.put(name, PLACEHOLDER, when, mode)?;
                self.note("placeholder", name);
            }
            (Role::Museum, "artifacts/output_report.md") => {
                for name in INNOCENT {
                    let name = format!("artifacts/{name}");
                    self.tree.put(&name, b"# only a name\n", when, mode)?;
                    self.note("innocent", &name);
                }
                return Ok(false);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn note(&mut self, kind: &'static str, relative: &str) {
        let path = format!("{}/{relative}", self.folder);
        self.outcome.damage.push(Damage {
            kind,
            path,
            ..Damage::default()
        });
    }

    fn copy(&mut self, copy: &Copy, doc: &Doc, mode: u32) -> io::Result<()> {
        let &(_, original, name, client, relation) = copy;
        let other = match relation {
            "prefix" => doc.first_half(),
            "diverged" => diverged(doc),
            // What is torn is the original: the copy is the whole.
            "extends" if self.role == Role::Torn => doc.clone(),
            "extends" => {
                let mut longer = doc.clone();
                longer.raw("2025-02-11T10:11:12.000Z INFO went on on the other device\n");
                longer
            }
            _ => doc.clone(),
        };
        let relative = match original.rsplit_once('/') {
            Some((folder, _)) => format!("{folder}/{name}"),
            None => name.to_string(),
        };
        self.write(&relative, &other, self.last, mode)?;
        self.outcome.damage.push(Damage {
            kind: "conflict-copy",
            path: format!("{}/{relative}", self.folder),
            of: Some(format!("{}/{original}", self.folder)),
            relation: Some(relation),
            client: Some(client),
        });
        Ok(())
    }

    /// The second folder of a session, as clients make it that number their copies: some files of it, and one that only
    /// it has.
    pub fn twin(&mut self, out: &Path) -> io::Result<()> {
        if self.role != Role::Twin {
            return Ok(());
        }
        let folder = format!("{}(1)", self.folder);
        let mut tree = Tree::new(&out.join(&folder));
        for name in ["", "context", "artifacts"] {
            tree.folder(name, 0o755)?;
        }
        let mut decision = Doc::default();
        decision
            .raw("# 决定\n\nUse the second proposal. Input: ")
            .reference(&self.corpus.old_path)
            .raw("\n");
        tree.put("artifacts/decision.md", &decision.text, self.last, 0o644)?;
        self.outcome.planted += decision.planted;
        for (name, doc) in std::mem::take(&mut self.kept) {
            tree.put(name, &doc.text, self.last, 0o644)?;
            self.outcome.planted += doc.planted;
        }
        tree.settle(self.last)?;
        self.outcome.files += tree.files;
        self.outcome.bytes += tree.bytes;
        self.outcome.damage.push(Damage {
            kind: "conflict-dir",
            path: folder,
            of: Some(self.folder.clone()),
            client: Some("numbered-copy"),
            ..Damage::default()
        });
        Ok(())
    }
}

/// The same bytes but for one word; JSON stays JSON.
fn diverged(doc: &Doc) -> Doc {
    let mut other = doc.clone();
    let word = other
        .text
        .windows(10)
        .position(|window| window == b"\"messages\"");
    match word {
        Some(at) => other.text[at..at + 10].copy_from_slice(b"\"received\""),
        None => {
            other = doc.first_half();
            other.raw("edited on the other device\n");
        }
    }
    other
}

/// What has no session: a folder with nothing in it, and an entry without a folder.
pub fn orphans(out: &Path, when: Time) -> io::Result<Outcome> {
    let mut ghost = Tree::new(&out.join("sessions/20250109_ghost"));
    ghost.folder("", 0o755)?;
    ghost.settle(when)?;
    let missing = "20250108_never_synced";
    let mut entry = Doc::default();
    entry.raw(&format!(
        "  {{\n    \"id\": \"{missing}\",\n    \"status\": \"active\",\n    \"tags\": []\n  }}"
    ));
    let found = |kind, id: &str| Damage {
        kind,
        path: format!("sessions/{id}"),
        ..Damage::default()
    };
    Ok(Outcome {
        damage: vec![
            found("empty-session", "20250109_ghost"),
            found("missing-session", missing),
        ],
        entry: Some((missing.to_string(), entry)),
        ..Outcome::default()
    })
}
