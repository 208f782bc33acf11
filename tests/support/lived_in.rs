//! A home that is lived in: a bit of everything, the same on every run, for whoever looks at how the program speaks.

use std::path::Path;

use super::{Place, Ran};

pub const CRAWLER: &str = "20240603_crawler";
pub const DATA: &str = "20240604_数据清洗";
pub const API: &str = "20240605_api_refactor";
pub const LONG: &str = "20240606_quarterly_report_for_the_board";
pub const EMOJI: &str = "20240607_🚀发布";
pub const OLD: &str = "20240520_pricing";
pub const REMOVED: &str = "20240521_scratch";
pub const GONE: &str = "20240522_lost";

/// Nights in which something was done; the program runs by itself on the fifteenth of June.
const FIRST: i64 = 8;
const SECOND: i64 = 13;

impl Place {
    /// Sessions with English and Chinese ids, emoji and a long title; one archived, one removed, one missing; a project,
    /// tags, a log that was cut and one that is due, two snapshots in a cold store and two commits, and the damage that a
    /// sync client does.
    pub fn lived_in() -> Place {
        let place = Place::of_usual_length();
        place.ok(["init", "-q"]);
        for (id, day) in [
            (OLD, 1),
            (REMOVED, 1),
            (GONE, 2),
            (CRAWLER, 3),
            (DATA, 4),
            (API, 5),
            (LONG, 6),
            (EMOJI, 7),
        ] {
            place.session(id, day);
        }
        place.say_more();
        let quietly = |n: i64, args: &[&str]| {
            let args = [args, &["-q"]].concat();
            place.at(n, &args).expect(0);
        };
        quietly(FIRST, &["index"]);
        place.labelled();
        quietly(FIRST, &["archive", OLD]);
        quietly(FIRST, &["rotate", "--force"]);
        quietly(FIRST, &["commit"]);
        quietly(FIRST, &["backup", "init", "cold"]);
        super::cold::rest();
        quietly(FIRST, &["backup", "run"]);
        place.go_on();
        quietly(SECOND, &["rm", REMOVED]);
        quietly(SECOND, &["index"]);
        quietly(SECOND, &["commit"]);
        super::cold::rest();
        place.at(SECOND, &["backup", "run", "-q"]);
        place.at(SECOND, &["du", "-q"]);
        place.damage();
        place
    }

    /// More than one turn, notes, results and logs.
    fn say_more(&self) {
        let put = |id: &str, rel: &str, content: &[u8]| {
            self.put_home(&format!("sessions/{id}/{rel}"), content);
        };
        put(
            CRAWLER,
            "context/turn_002.json",
            "{\"role\": \"user\", \"content\": \"the crawler stops with a timeout after 30 seconds, whatever I set; look at the retry logic first\"}\n".as_bytes(),
        );
        put(
            CRAWLER,
            "context/turn_003.json",
            "{\"role\": \"assistant\", \"content\": \"爬虫在第三页停下来了：timeout 没有传给下载器 🕷️ so I pass it on\"}\n".as_bytes(),
        );
        put(
            CRAWLER,
            "memory/notes.md",
            b"# Notes\nthe timeout is 30 s\n",
        );
        put(CRAWLER, "logs/agent_run.log", &b"a line\n".repeat(400));
        put(
            DATA,
            "context/turn_002.json",
            "{\"role\": \"user\", \"content\": \"清洗销售数据\"}\n".as_bytes(),
        );
        put(
            DATA,
            "artifacts/五月销售.csv",
            &super::cold::noise(4, 40_000),
        );
        put(DATA, "memory/要点.md", "去重；timeout 设为 60\n".as_bytes());
        put(API, "artifacts/model.bin", &super::cold::noise(5, 250_000));
        put(
            API,
            "context/checkpoint.json",
            b"{\"step\": 4, \"state\": \"tests pass\"}\n",
        );
        put(LONG, "artifacts/report.md", b"# Report\n");
        for (id, day) in [(CRAWLER, 3), (DATA, 4), (API, 5), (LONG, 6)] {
            self.date(id, day);
        }
    }

    fn labelled(&self) {
        let title =
            "五月销售 Sales 📈 cleaned, joined with the returns and checked against the ledger";
        let label = |args: &[&str]| {
            self.ok([&["label", "-q"], args].concat());
        };
        label(&[
            "crawler",
            "--tag",
            "web",
            "--tag",
            "prices",
            "--project",
            "alpha",
        ]);
        label(&[
            "数据",
            "--tag",
            "销售",
            "--title",
            title,
            "--sync-tag",
            "laptop",
        ]);
        label(&[
            "board",
            "--title",
            "Q2 report 👨‍👩‍👧 for the board",
            "--project",
            "alpha",
        ]);
        label(&["pricing", "--title", "What the others ask"]);
    }

    /// The days between the two nights.
    fn go_on(&self) {
        self.put_home(
            &format!("sessions/{API}/context/turn_002.json"),
            "{\"role\": \"user\", \"content\": \"raise the timeout\"}\n",
        );
        self.put_home(
            &format!("sessions/{API}/context/turn_003.json"),
            "{\"role\": \"assistant\", \"content\": \"done\"}\n",
        );
        self.date(API, 12);
        let log = format!("sessions/{CRAWLER}/logs/agent_run.log");
        self.put_home(&log, b"another line\n".repeat(20));
        self.date(CRAWLER, 11);
        std::fs::remove_dir_all(self.home().join("sessions").join(GONE)).unwrap();
    }

    /// What a sync client leaves behind.
    fn damage(&self) {
        let put = |rel: &str, content: &str| self.put_home(&format!("sessions/{rel}"), content);
        put(&format!("{API}/context/turn_005.json"), "{\"role\": \"us");
        put(
            &format!("{DATA}/context/turn_002 (1).json"),
            "{\"role\": \"user\", \"content\": \"清洗销售数据\"}\n",
        );
        put(
            &format!("{LONG}/artifacts/report (1).md"),
            "# Report\nand more\n",
        );
        self.date(API, 14);
        self.date(DATA, 4);
        self.date(LONG, 6);
    }

    /// Runs the program piped, with the person's machine having no program but what the tests need: no crontab and no
    /// systemd are asked.
    pub fn alone(&self, args: &[&str]) -> Ran {
        let mut command = self.command();
        command.env("PATH", self.bare()).args(args);
        Ran::of(command.output().unwrap())
    }

    /// A folder to be `PATH`, which holds next to nothing.
    pub fn bare(&self) -> std::path::PathBuf {
        let bin = self.path("bin");
        if !bin.exists() {
            std::fs::create_dir(&bin).unwrap();
            for name in ["setsid", "git", "cat"] {
                let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
                    .map(|folder| folder.join(name))
                    .find(|path| Path::exists(path));
                std::os::unix::fs::symlink(found.unwrap(), bin.join(name)).unwrap();
            }
        }
        bin
    }
}
