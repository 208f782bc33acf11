//! One session: its turns, memory, artifacts and log, and its entry in the index.

use std::io;
use std::path::Path;

use super::broken::Role;
use super::phrases::{EVENTS, Phrases};
use super::spellings::{self, Paths};
use super::text::{Doc, Rng, Style, compact_date, iso_time};
use super::tree::{Time, Tree};
use super::{AGENTS, Corpus, Damage, Planted, TASKS};

/// What one session added to the home.
#[derive(Debug, Default)]
pub struct Outcome {
    /// `None` for what is no session of its own.
    pub id: Option<String>,
    pub files: u64,
    pub symlinks: u64,
    pub bytes: u64,
    pub planted: Planted,
    pub damage: Vec<Damage>,
    /// Its id and its place in the index.
    pub entry: Option<(String, Doc)>,
}

/// Seconds between two turns.
const PACE: i64 = 240;

/// Writes session `n` with all that is broken in it.
pub fn write(corpus: &Corpus, n: usize, out: &Path, phrases: &Phrases) -> io::Result<Outcome> {
    let start = corpus.start(n);
    let task = TASKS[n % TASKS.len()];
    let id = format!("{}_{task}", compact_date(start));
    let folder = format!("sessions/{id}");
    let mut session = Session {
        corpus,
        n,
        start,
        last: Time::new(start + PACE * corpus.turns as i64, n as u32 % 1000),
        rng: Rng::new(corpus.seed, n as u64),
        tree: Tree::new(&out.join(&folder)),
        role: if corpus.damage {
            Role::of(n)
        } else {
            Role::Whole
        },
        paths: Style::ALL.map(|style| Paths::new(style, &corpus.old_path, &folder)),
        plain: format!("{}/{folder}", corpus.old_path),
        outcome: Outcome::default(),
        id,
        folder,
        kept: Vec::new(),
    };
    session.all(phrases)?;
    session.twin(out)?;
    session.tree.settle(session.last)?;
    let entry = session.entry(task);
    let Session {
        mut outcome,
        tree,
        role,
        id,
        ..
    } = session;
    outcome.files += tree.files;
    outcome.symlinks += tree.symlinks;
    outcome.bytes += tree.bytes;
    if role == Role::Unindexed {
        outcome.damage.push(Damage {
            kind: "unindexed-session",
            path: format!("sessions/{id}"),
            ..Damage::default()
        });
    } else {
        outcome.entry = Some((id.clone(), entry));
    }
    outcome.id = Some(id);
    Ok(outcome)
}

/// A session while it is written.
pub struct Session<'a> {
    pub corpus: &'a Corpus,
    n: usize,
    start: i64,
    /// When its last file was written.
    pub last: Time,
    rng: Rng,
    pub tree: Tree,
    pub role: Role,
    /// In the order of [`Style::ALL`].
    paths: [Paths; 4],
    /// The path of its folder in plain text.
    plain: String,
    pub outcome: Outcome,
    id: String,
    /// `sessions/<id>`
    pub folder: String,
    /// What its twin has too.
    pub kept: Vec<(&'static str, Doc)>,
}

impl Session<'_> {
    fn all(&mut self, phrases: &Phrases) -> io::Result<()> {
        for (folder, mode) in [
            ("", 0o755),
            ("context", 0o755),
            ("memory", 0o700),
            ("artifacts", 0o755),
            ("logs", 0o755),
        ] {
            self.tree.folder(folder, mode)?;
        }
        self.tree.folder("artifacts/code", 0o755)?;
        let record = self.record();
        self.put("session.json", &record, 0o644)?;
        self.turns(phrases)?;
        self.memory()?;
        self.artifacts()?;
        self.log()
    }

    /// Writes a document, or what the sync client made of it, and the copies that it left beside it.
    fn put(&mut self, relative: &str, doc: &Doc, mode: u32) -> io::Result<()> {
        self.put_at(relative, doc, self.last, mode)
    }

    fn put_at(&mut self, relative: &str, doc: &Doc, when: Time, mode: u32) -> io::Result<()> {
        if self.role != Role::Whole && self.break_file(relative, doc, when, mode)? {
            return Ok(());
        }
        self.write(relative, doc, when, mode)
    }

    /// Writes a document as it is.
    pub fn write(&mut self, relative: &str, doc: &Doc, when: Time, mode: u32) -> io::Result<()> {
        self.outcome.planted += doc.planted;
        self.tree.put(relative, &doc.text, when, mode)
    }

    fn record(&self) -> Doc {
        let mut doc = Doc::default();
        doc.raw(&format!(
            "{{\n  \"id\": \"{}\",\n  \"agent\": \"{}\",\n  \"created_at\": \"{}\",\n  \"cwd\": \"",
            self.id,
            self.agent(),
            iso_time(self.start)
        ));
        doc.reference(&self.plain)
            .raw("\",\n  \"workspaceRoot\": \"")
            .reference(&self.corpus.old_path);
        doc.raw("\",\n  \"parameters\": {\"temperature\": 0.70, \"top_p\": 1.0, \"seed\": 12345678901234567890}\n}\n");
        doc
    }

    fn agent(&self) -> &'static str {
        AGENTS[self.n % AGENTS.len()].0
    }

    fn turns(&mut self, phrases: &Phrases) -> io::Result<()> {
        let (mut doc, mut before) = (Doc::default(), Doc::default());
        for turn in 1..=self.corpus.turns {
            doc.clear();
            self.turn(turn, &mut doc, phrases);
            if self.corpus.snapshots {
                // The turns alone, not what they hold of earlier ones: that would double with every turn.
                before
                    .raw(if turn == 1 { "" } else { "," })
                    .append(&doc)
                    .raw("}");
                doc.raw(",\"snapshot\":[").append(&before).raw("]");
            }
            doc.raw("}\n");
            let when = Time::new(self.start + PACE * turn as i64, turn as u32);
            self.put_at(&format!("context/turn_{turn:03}.json"), &doc, when, 0o644)?;
        }
        let mut checkpoint = Doc::default();
        checkpoint.raw(&format!(
            "# {}\n\n- turns: {}\n- workdir: ",
            self.id, self.corpus.turns
        ));
        checkpoint
            .reference(&self.plain)
            .raw("\n")
            .cut()
            .raw("- report: ")
            .reference(&self.plain);
        checkpoint
            .raw("/artifacts/output_report.md\n- 下一步：等用户确认标题\n")
            .cut();
        self.put("context/checkpoint.md", &checkpoint, 0o644)
    }

    /// A turn without its closing brace: a question, two rounds of tools, an answer. Each turn is written by another kind
    /// of program: another style of escapes, one line or many.
    fn turn(&mut self, turn: usize, doc: &mut Doc, phrases: &Phrases) {
        let style = Style::ALL[(turn + self.n) % Style::ALL.len()];
        let (pool, paths) = (phrases.in_style(style), &self.paths[style as usize]);
        let rng = &mut self.rng;
        let line = if turn.is_multiple_of(2) { "\n  " } else { "" };
        let at = self.start + PACE * turn as i64;
        doc.raw(&format!(
            "{{{line}\"turn\": {turn},{line}\"at\": \"{}\",{line}\"cwd\": \"",
            iso_time(at)
        ));
        doc.reference(&paths.here)
            .raw("\",")
            .raw(line)
            .raw("\"messages\": [")
            .raw(line);
        doc.raw("{\"role\": \"user\", \"content\": \"")
            .raw(rng.phrase(&pool.questions))
            .raw("\"}")
            .cut();
        for round in 0..2 {
            let (before, after) = rng.pick(&pool.commands);
            doc.raw(",")
                .raw(line)
                .raw("{\"role\": \"assistant\", \"content\": \"")
                .raw(rng.phrase(&pool.answers));
            doc.raw(&format!(
                "\", \"tool_calls\": [{{\"id\": \"call_{:016x}\", ",
                rng.next()
            ));
            doc.raw("\"name\": \"shell\", \"arguments\": \"{\\\"command\\\": \\\"")
                .raw(before);
            doc.reference(&paths.nested)
                .raw(after)
                .raw("\\\", \\\"timeout\\\": 120}\"}]}")
                .cut();
            doc.raw(",")
                .raw(line)
                .raw("{\"role\": \"tool\", \"content\": \"")
                .raw(rng.phrase(&pool.outputs));
            doc.reference(&paths.here)
                .raw("\\n")
                .raw(rng.phrase(&pool.outputs));
            if round == 1 {
                doc.raw("cwd:\\t").reference(&paths.old);
            }
            doc.raw("\"}").cut();
        }
        doc.raw(",")
            .raw(line)
            .raw("{\"role\": \"assistant\", \"content\": \"")
            .raw(rng.phrase(&pool.answers));
        doc.raw("\\n\\n")
            .raw(rng.phrase(&pool.answers))
            .raw("\"}")
            .raw(line)
            .cut();
        let (input, output, cost) = (900 + rng.below(9000), 80 + rng.below(900), rng.below(90));
        doc.raw(&format!(
            "],{line}\"usage\": {{\"input_tokens\": {input}, \"output_tokens\": {output}, \"cost\": 0.{cost:02}0}}"
        ));
    }

    fn memory(&mut self) -> io::Result<()> {
        let mut facts = Doc::default();
        facts.raw("{\n \"facts\": [\n  \"金额一律两位小数\",\n  \"the source files are read-only\"\n ],\n").cut();
        facts
            .raw(" \"glossary\": {\"home\": \"")
            .reference(&self.corpus.old_path)
            .raw("\",\n")
            .cut();
        facts
            .raw("  \"input\": \"")
            .reference(&self.plain)
            .raw("/artifacts/table.csv\"},\n \"confidence\": 0.90\n}\n")
            .cut();
        self.put("memory/persistent_memory.json", &facts, 0o600)?;
        let mut notes = Doc::default();
        notes
            .raw("# 记忆\n\n- Reports go to `")
            .reference(&self.plain)
            .raw("/artifacts`.\n")
            .cut();
        notes
            .raw("- Mei prefers short answers.\n- 周报每周五下午发。\n")
            .cut();
        self.put("memory/notes.md", &notes, 0o600)
    }

    fn artifacts(&mut self) -> io::Result<()> {
        let (old, here) = (self.corpus.old_path.clone(), self.plain.clone());
        let mut report = Doc::default();
        report
            .raw(&format!("# Report: {}\n\nInput: [table](", self.id))
            .reference(&here);
        report.raw("/artifacts/table.csv)\n").cut();
        for section in 1..=6 {
            report.raw(&format!(
                "\n## {section}. 结果\n\n| region | orders | amount |\n| --- | --- | --- |\n"
            ));
            for region in ["华东", "华北", "华南", "西南"] {
                let (orders, amount) = (self.rng.below(4000), self.rng.below(90_000));
                report.raw(&format!("| {region} | {orders} | {amount}.50 |\n"));
            }
            report.cut();
        }
        self.put("artifacts/output_report.md", &report, 0o644)?;
        let notes = spellings::notes(&old, self.corpus.user_home.as_deref(), &self.folder);
        self.put("artifacts/paths.md", &notes, 0o644)?;
        let calls = spellings::calls(&old, &self.folder);
        self.put("artifacts/calls.jsonl", &calls, 0o644)?;
        let mut settings = Doc::default();
        settings
            .raw("# written by the agent\nworkdir: ")
            .reference(&here)
            .raw("\ninput:\n  - \"")
            .reference(&here);
        settings
            .raw("/artifacts/table.csv\"\n")
            .cut()
            .raw("limits: {pages: 40, retry: 1.50}\n")
            .cut();
        self.put("artifacts/settings.yaml", &settings, 0o644)?;
        let mut program = Doc::default();
        program
            .raw("\"\"\"Reads the table and prints the totals.\"\"\"\nimport csv\n\nROOT = '")
            .reference(&here)
            .raw("'\n")
            .cut();
        program.raw("\nwith open(ROOT + '/artifacts/table.csv', encoding='utf-8') as f:\n    for row in csv.DictReader(f):\n");
        program
            .raw("        print(row['region'], row['amount'])\n")
            .cut();
        self.put("artifacts/code/main.py", &program, 0o644)?;
        let mut script = Doc::default();
        script
            .raw("#!")
            .reference(&old)
            .raw("/.venv/bin/python\nprint('")
            .reference(&here)
            .raw("')\n")
            .cut();
        self.put("artifacts/run.py", &script, 0o755)?;
        self.bulk()?;
        self.outcome.planted.links += 1;
        self.tree.symlink(
            &format!("{here}/artifacts/output_report.md"),
            "artifacts/latest",
        )?;
        self.tree.symlink("output_report.md", "artifacts/current")?;
        if self.n.is_multiple_of(6) {
            self.tree
                .hard_link("artifacts/output_report.md", "artifacts/report_of_today.md")?;
        }
        Ok(())
    }

    /// The two files that make a session as large as it was asked to be.
    fn bulk(&mut self) -> io::Result<()> {
        let mut binary = self.rng.bytes((self.corpus.artifact_bytes / 4).max(256));
        let embedded = [b"\0", self.plain.as_bytes(), b"\0"].concat();
        // Behind a NUL, so that it is a binary from its beginning on.
        binary.splice(64..64, embedded);
        self.outcome.planted.binary += 1;
        self.tree
            .put("artifacts/model.bin", &binary, self.last, 0o644)?;
        let mut table = Doc::default();
        table.raw("order_no,region,amount,source\n").cut();
        let size = self.corpus.artifact_bytes / 4 * 3;
        for row in 0.. {
            let (order, cents) = (10_000 + row, self.rng.below(200_000));
            table.raw(&format!("{order},华东,{}.{:02},", cents / 100, cents % 100));
            if row % 4 == 0 {
                table.reference(&self.plain).raw("/in.csv\n").cut();
            } else {
                table.raw("by hand\n");
            }
            if table.text.len() >= size {
                break;
            }
        }
        self.put("artifacts/table.csv", &table, 0o644)
    }

    fn log(&mut self) -> io::Result<()> {
        let mut log = Doc::default();
        let mut second = self.start;
        loop {
            second += 1 + self.rng.below(3) as i64;
            let at = iso_time(second);
            log.raw(at.trim_end_matches('Z'))
                .raw(&format!(".{:03}Z INFO ", self.rng.below(1000)));
            log.raw(self.rng.phrase(&EVENTS))
                .raw(" cwd=")
                .reference(&self.plain)
                .raw("\n")
                .cut();
            if log.text.len() >= self.corpus.log_bytes {
                break;
            }
        }
        self.put("logs/agent_run.log", &log, 0o644)
    }

    /// Two-space indent, and fields that nobody but their writer knows.
    fn entry(&self, task: &str) -> Doc {
        let mut doc = Doc::default();
        doc.raw(&format!(
            "  {{\n    \"id\": \"{}\",\n    \"status\": \"active\",\n",
            self.id
        ));
        doc.raw(&format!(
            "    \"title\": \"{task}\",\n    \"agent\": \"{}\",\n",
            self.agent()
        ));
        doc.raw(
            [
                "    \"project\": \"alpha\",\n",
                "    \"project\": \"beta\",\n",
                "",
            ][self.n % 3],
        );
        doc.raw(&format!("    \"tags\": [\"{task}\"],\n"));
        if self.n.is_multiple_of(4) {
            doc.raw("    \"sync_tag\": \"laptop\",\n");
        }
        doc.raw(&format!(
            "    \"created_at\": \"{}\",\n    \"path\": \"",
            iso_time(self.start)
        ))
        .reference(&self.plain);
        doc.raw("\",\n    \"x_score\": 1.50,\n    \"x_tokens\": 12345678901234567890,\n    \"x_pinned\": {\"by\": \"mei\", \"at\": null}\n  }");
        doc
    }
}
