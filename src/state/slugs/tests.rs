use std::os::unix::ffi::OsStrExt;

use proptest::prelude::*;

use super::*;
use crate::base::Stop;
use crate::paths::{Mapping, Options, slug};

/// A state folder as a test wants it.
struct Place {
    folder: tempfile::TempDir,
    known: BTreeSet<String>,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(PROJECTS)).unwrap();
        Place {
            folder,
            known: BTreeSet::new(),
        }
    }

    fn put(&self, rel: impl AsRef<Path>, content: impl AsRef<[u8]>) -> &Place {
        let path = self.folder.path().join(PROJECTS).join(rel);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
        self
    }

    /// A conversation of a work folder.
    fn talk(&self, folder: &str, id: &str, cwd: &str) -> &Place {
        let line = serde_json::json!({"id": 1, "type": "message", "cwd": cwd});
        self.put(format!("{folder}/{id}.jsonl"), format!("{line}\n"))
    }

    fn try_plan(&self, maps: &[(&str, &str)]) -> Result<Slugs> {
        let dir = disk::Dir::open(self.folder.path()).unwrap();
        let tree = disk::walk(&dir, &|_, _| false, &Stop::default()).unwrap();
        let maps = maps.iter().map(|(old, new)| Mapping {
            old: (*old).into(),
            new: (*new).into(),
        });
        let rewriter = Rewriter::new(maps.collect(), Options::default()).unwrap();
        plan(&dir, &tree, &self.known, &rewriter)
    }

    fn plan(&self, maps: &[(&str, &str)]) -> Slugs {
        self.try_plan(maps).unwrap()
    }

    /// Does it, one after the other, as whoever uses the plan.
    fn apply(&self, slugs: &Slugs) {
        for step in &slugs.moves {
            let (from, to) = (
                self.folder.path().join(&step.from),
                self.folder.path().join(&step.to),
            );
            std::fs::create_dir_all(to.parent().unwrap()).unwrap();
            assert!(!disk::exists(&to), "{step:?}");
            std::fs::rename(from, to).unwrap();
        }
        for folder in &slugs.emptied {
            std::fs::remove_dir(self.folder.path().join(folder)).unwrap();
        }
    }

    /// Every file below `projects/` with its content.
    fn files(&self) -> BTreeMap<PathBuf, Vec<u8>> {
        let root = self.folder.path().join(PROJECTS);
        walkdir::WalkDir::new(&root)
            .into_iter()
            .map(std::result::Result::unwrap)
            .filter(|entry| entry.file_type().is_file())
            .map(|entry| {
                let rel = entry.path().strip_prefix(&root).unwrap().to_owned();
                (rel, std::fs::read(entry.path()).unwrap())
            })
            .collect()
    }
}

/// `from → to`, without `projects/`.
fn shown(slugs: &Slugs) -> Vec<String> {
    let name = |path: &Path| {
        let rel = path.strip_prefix(PROJECTS).unwrap();
        human::bytes(rel.as_os_str().as_bytes())
    };
    slugs
        .moves
        .iter()
        .map(|m| format!("{} → {}", name(&m.from), name(&m.to)))
        .collect()
}

fn doubtful(slugs: &Slugs) -> Vec<String> {
    slugs
        .doubtful
        .iter()
        .map(|(path, _)| path.strip_prefix(PROJECTS).unwrap().display().to_string())
        .collect()
}

#[test]
fn a_folder_goes_with_the_work_folder_that_its_conversations_name() {
    let place = Place::new();
    place
        .talk("Users-me-wb", "u1", "/Users/me/wb")
        .talk(
            "Users-me-wb-sessions---",
            "u2",
            "/Users/me/wb/sessions/数据",
        )
        .talk("-Users-me-wb-x", "u3", "/Users/me/wb/x")
        .talk("Users-me-wb2", "u4", "/Users/me/wb2")
        .talk("else", "u5", "/else");
    let slugs = place.plan(&[("/Users/me/wb", "/home/我/wb")]);
    assert_eq!(
        shown(&slugs),
        [
            "-Users-me-wb-x → -home---wb-x",
            "Users-me-wb → home---wb",
            "Users-me-wb-sessions--- → home---wb-sessions---",
        ]
    );
    assert!(slugs.doubtful.is_empty() && slugs.emptied.is_empty());
    // Of a drive, in the way in which it was written.
    let place = Place::new();
    place.talk("C--wb-x", "u1", "C:\\wb\\x");
    assert_eq!(
        shown(&place.plan(&[("C:\\wb", "D:\\new")])),
        ["C--wb-x → D--new-x"]
    );
    assert_eq!(
        shown(&place.plan(&[("C:\\wb", "/new")])),
        ["C--wb-x → new-x"]
    );
}

#[test]
fn a_name_alone_moves_nothing() {
    let place = Place::new();
    place
        .talk("a-b", "u1", "/a-b")
        .talk("a-b-c", "u2", "/a/b-c");
    // It is named after something else, though it speaks of what moves.
    place.talk("other", "u3", "/a/b/x");
    place.put("a-b-lost/u4.jsonl", "torn {\"cw");
    let slugs = place.plan(&[("/a/b", "/n")]);
    assert_eq!(shown(&slugs), [] as [String; 0]);
    assert_eq!(doubtful(&slugs), ["a-b-lost", "other"]);
}

#[test]
fn two_work_folders_that_share_a_name_part() {
    let place = Place::new();
    place
        .talk("a-----", "u1", "/a/工作/甲")
        .put("a-----/u1/subagents/agent-1.jsonl", "{}")
        .put("a-----/u1.meta.json", "{}")
        .put("a-----/u1.file-rollback.ndjson", "")
        .talk("a-----", "u2", "/a/工作/乙");
    let slugs = place.plan(&[("/a/工作/甲", "/home/甲")]);
    assert_eq!(slugs, place.plan(&[("/a/工作/甲", "/home/甲")]));
    assert_eq!(
        shown(&slugs),
        [
            "a-----/u1 → home--/u1",
            "a-----/u1.file-rollback.ndjson → home--/u1.file-rollback.ndjson",
            "a-----/u1.jsonl → home--/u1.jsonl",
            "a-----/u1.meta.json → home--/u1.meta.json",
        ]
    );
    assert!(slugs.doubtful.is_empty() && slugs.emptied.is_empty());
    // Both move, to two places.
    let slugs = place.plan(&[("/a/工作/甲", "/home/1"), ("/a/工作/乙", "/home/2")]);
    assert_eq!(slugs.moves.len(), 5);
    assert_eq!(slugs.emptied, [Path::new("projects/a-----")]);
    // Both to one.
    let slugs = place.plan(&[("/a/工作/甲", "/h/x"), ("/a/工作/乙", "/h-x")]);
    assert_eq!(shown(&slugs), ["a----- → h-x"]);
}

#[test]
fn what_says_nothing_follows_the_only_claim_and_stays_between_two() {
    let mut place = Place::new();
    place
        .talk("a-b", "u1", "/a/b")
        .put("a-b/u2.jsonl", "")
        .put("a-b/memory/x.md", "words");
    assert_eq!(shown(&place.plan(&[("/a", "/n")])), ["a-b → n-b"]);
    place.known.insert("/a-b".into());
    let slugs = place.plan(&[("/a", "/n")]);
    assert_eq!(shown(&slugs), ["a-b/u1.jsonl → n-b/u1.jsonl"]);
    assert_eq!(doubtful(&slugs), ["a-b/memory", "a-b/u2.jsonl"]);
    // Known from elsewhere alone.
    let mut place = Place::new();
    place.put("a-b/u2.jsonl", "");
    assert_eq!(doubtful(&place.plan(&[("/a", "/n")])), ["a-b"]);
    place.known.insert("/a/b".into());
    assert_eq!(shown(&place.plan(&[("/a", "/n")])), ["a-b → n-b"]);
    // The folder that moves is known to move.
    assert_eq!(shown(&place.plan(&[("/a/b", "/n")])), ["a-b → n"]);
}

#[test]
fn the_work_folder_is_found_in_what_goes_on_beside_a_conversation() {
    for (file, content) in [
        ("u1.meta.json", "{\n  \"cwd\": \"\\/a\\/b\"\n}"),
        ("u1/subagents/agent-1.jsonl", "{\"cwd\":\"/a/b\"}"),
        ("u1/subagents/deep/agent-1.meta.json", "{\"cwd\":\"/a/b\"}"),
        (
            "u1.jsonl",
            "{\"cwd\":\"/a/b/sub\"}\n\0\0\0\n{\"cwd\":\"/x\"}{\"cwd\":\"/a/b\"}",
        ),
    ] {
        let place = Place::new();
        place
            .put(format!("a-b/{file}"), content)
            .put("a-b/u2.txt", "");
        assert_eq!(shown(&place.plan(&[("/a", "/n")])), ["a-b → n-b"], "{file}");
    }
}

#[test]
fn lines_of_any_length_are_looked_through() {
    for (before, after) in [
        (3_000_000, 10),
        (10, 3_000_000),
        ((1 << 20) - 8, 5),
        (1 << 20, 0),
    ] {
        let fill = |n| "x".repeat(n);
        let line = format!(
            "{{\"text\":\"{}\",\"cwd\":\"/a/b\",\"more\":\"{}\"}}",
            fill(before),
            fill(after)
        );
        let place = Place::new();
        place.put("a-b/u.jsonl", line);
        assert_eq!(
            shown(&place.plan(&[("/a", "/n")])),
            ["a-b → n-b"],
            "{before}"
        );
    }
}

#[test]
fn a_new_folder_that_is_there_takes_the_entries() {
    let place = Place::new();
    place
        .talk("a-b", "u1", "/a/b")
        .put("a-b/u1/tool-results/1.txt", "")
        .talk("n-b", "u2", "/n/b");
    let slugs = place.plan(&[("/a", "/n")]);
    assert_eq!(
        shown(&slugs),
        ["a-b/u1 → n-b/u1", "a-b/u1.jsonl → n-b/u1.jsonl"]
    );
    assert_eq!(slugs.emptied, [Path::new("projects/a-b")]);
    // Two old ones become one that is not there yet.
    let place = Place::new();
    place.talk("a", "u1", "/a").talk("b", "u2", "/b");
    let slugs = place.plan(&[("/a", "/n"), ("/b", "/n")]);
    assert_eq!(
        shown(&slugs),
        ["a/u1.jsonl → n/u1.jsonl", "b/u2.jsonl → n/u2.jsonl"]
    );
    assert_eq!(slugs.emptied.len(), 2);
}

#[test]
fn two_files_of_one_name_are_refused_and_both_named() {
    let place = Place::new();
    place.talk("a", "u1", "/a").talk("n", "u1", "/n");
    let error = place.try_plan(&[("/a", "/n")]).unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("projects/a/u1.jsonl") && text.contains("projects/n/u1.jsonl"),
        "{text}"
    );
    assert!(!error.hints().is_empty());
    let place = Place::new();
    place.talk("a", "u1", "/a").talk("b", "u1", "/b");
    assert!(place.try_plan(&[("/a", "/n"), ("/b", "/n")]).is_err());
    let place = Place::new();
    place.talk("a", "u1", "/a").put("n", "a file");
    let error = place.try_plan(&[("/a", "/n")]).unwrap_err();
    assert!(error.to_string().contains("projects/n"), "{error}");
}

#[test]
fn a_chain_moves_from_its_end() {
    let place = Place::new();
    place
        .talk("a", "u1", "/a")
        .talk("a-b", "u2", "/a/b")
        .talk("a-b-b", "u3", "/a/b/b");
    let slugs = place.plan(&[("/a", "/a/b")]);
    assert_eq!(shown(&slugs), ["a-b-b → a-b-b-b", "a-b → a-b-b", "a → a-b"]);
    place.apply(&slugs);
    // In the middle of the chain somebody stays.
    let place = Place::new();
    place
        .talk("a", "u1", "/a")
        .talk("a-b", "u2", "/a/b")
        .talk("a-b", "u3", "/a-b");
    let slugs = place.plan(&[("/a", "/a/b")]);
    assert_eq!(
        shown(&slugs),
        ["a/u1.jsonl → a-b/u1.jsonl", "a-b/u2.jsonl → a-b-b/u2.jsonl"]
    );
    place.apply(&slugs);
}

#[test]
fn folders_that_change_places_pass_each_other_or_are_refused() {
    let place = Place::new();
    place.talk("a", "u1", "/a").talk("b", "u2", "/b");
    let slugs = place.plan(&[("/a", "/b"), ("/b", "/a")]);
    place.apply(&slugs);
    let names: Vec<_> = place.files().into_keys().collect();
    assert_eq!(names, [Path::new("a/u2.jsonl"), Path::new("b/u1.jsonl")]);
    let place = Place::new();
    place.talk("a", "u", "/a").talk("b", "u", "/b");
    let error = place.try_plan(&[("/a", "/b"), ("/b", "/a")]).unwrap_err();
    assert!(error.to_string().contains("change places"), "{error}");
}

#[test]
fn links_are_not_followed_and_a_name_that_is_too_long_is_not_made() {
    let place = Place::new();
    let root = place.folder.path().join(PROJECTS);
    std::os::unix::fs::symlink("elsewhere", root.join("a")).unwrap();
    place.talk("a-b", "u1", "/a/b");
    let long = format!("/{}", "n".repeat(254));
    let slugs = place.plan(&[("/a", &long)]);
    assert_eq!(shown(&slugs), [] as [String; 0]);
    assert_eq!(doubtful(&slugs), ["a", "a-b"]);
    let slugs = place.plan(&[("/a/b", "/数据")]);
    assert_eq!(doubtful(&slugs), ["a-b"]);
    assert_eq!(Place::new().plan(&[("/a", "/b")]), Slugs::default());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever works where: nothing is lost, everything that moves lies where the application looks for it, and
    /// everything else where it was.
    #[test]
    fn every_conversation_is_found_afterwards(
        cwds in prop::collection::vec("/[ab](/[ab乙]|-b){0,2}", 1..8),
        old in "/[ab](/[ab乙])?",
        new in "/[abn](/[abn乙]){0,2}",
    ) {
        prop_assume!(old != new);
        let place = Place::new();
        for (n, cwd) in cwds.iter().enumerate() {
            place.talk(&slug(cwd), &format!("u{n}"), cwd);
        }
        let slugs = place.plan(&[(&old, &new)]);
        prop_assert!(slugs.doubtful.is_empty());
        let before = place.files();
        place.apply(&slugs);
        let after = place.files();
        prop_assert_eq!(before.len(), after.len());
        for (n, cwd) in cwds.iter().enumerate() {
            let now = match cwd.strip_prefix(&old) {
                Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{new}{rest}"),
                _ => cwd.clone(),
            };
            let content = |folder: &str| PathBuf::from(folder).join(format!("u{n}.jsonl"));
            prop_assert_eq!(&after[&content(&slug(&now))], &before[&content(&slug(cwd))]);
        }
    }
}
