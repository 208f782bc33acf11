use super::keys::SECTIONS;
use super::*;
use crate::home::{Trust, testing};

const TEMPLATE: &str = include_str!("../wbhome.toml");

#[test]
fn the_file_that_init_writes_holds_every_key_and_only_defaults() {
    assert_eq!(Config::parse(TEMPLATE).unwrap(), Config::default());
    let uncommented: String = TEMPLATE
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(set) if set.contains(" = ") || set.starts_with("[[") => format!("{set}\n"),
            _ => format!("{line}\n"),
        })
        .collect();
    let config = Config::parse(&uncommented).unwrap();
    assert_eq!(config.rotate.max_total, Some(1 << 30));
    assert_eq!(
        config.backup.store[0].dir,
        PathBuf::from("/mnt/cold/wbhome")
    );
    let table: toml::Table = uncommented.parse().unwrap();
    for (section, keys) in SECTIONS {
        let written = table[section].as_table().unwrap();
        for key in keys {
            assert!(written.contains_key(*key), "[{section}] {key}");
        }
        assert_eq!(written.len(), keys.len(), "[{section}]");
    }
}

fn wrong(text: &str) -> (usize, String, Option<String>) {
    let wrong = Config::parse(text).unwrap_err();
    (wrong.line, wrong.why, wrong.nearest)
}

#[test]
fn an_unknown_key_names_its_line_and_the_nearest() {
    let (line, why, nearest) = wrong("[archive]\nlevel = 3\n\nidel = \"3d\"\n");
    assert_eq!((line, why.as_str()), (4, "[archive] has no key `idel`"));
    assert_eq!(nearest.as_deref(), Some("idle"));
    let (line, _, nearest) = wrong("[git]\npush = true\n[nightli]\n");
    assert_eq!((line, nearest.as_deref()), (3, Some("[nightly]")));
    let (_, _, nearest) = wrong("max_file = \"1MiB\"\n");
    assert_eq!(nearest.as_deref(), Some("max_file below [git]"));
    let (_, _, nearest) = wrong("[git]\nkeep_deleted = \"1d\"\n");
    assert_eq!(nearest.as_deref(), Some("keep_deleted below [backup]"));
    let (line, _, _) = wrong("[[backup.store]]\ndir = \"/a\"\ndirr = \"/b\"\n");
    assert_eq!(line, 3);
}

#[test]
fn a_bad_value_names_its_line_and_what_is_expected() {
    for (text, line, expected) in [
        ("[git]\nmax_file = \"10 apples\"\n", 2, "a size such as"),
        ("[archive]\n\nidle = 30\n", 3, "a duration such as"),
        ("[archive]\nidle = \"30\"\n", 2, "a duration such as"),
        ("[archive]\nlevel = 40\n", 2, "from 1 to 19"),
        ("[rotate]\nevery = \"dialy\"\n", 2, "daily"),
        ("[rotate]\nkeep = -1\n", 2, "a number from 0 to"),
        ("[git]\npush = \"yes\"\n", 2, "boolean"),
        ("git = 3\n", 1, "Git"),
        ("[git]\npush = tru\n", 2, ""),
        ("[git]\npush = true\npush = false\n", 3, "duplicate"),
    ] {
        let (at, why, _) = wrong(text);
        assert!(at == line && why.contains(expected), "{text}: {at} {why}");
    }
}

#[test]
fn the_error_names_the_file_and_gives_a_hint() {
    let place = testing::home();
    place.put("wbhome.toml", "[rotate]\ncompres = \"gzip\"\n");
    let error = Config::load(&place.home).unwrap_err();
    let text = error.to_string();
    assert!(
        text.starts_with("line 2: [rotate] has no key `compres`, in /"),
        "{text}"
    );
    assert_eq!(error.hints(), ["did you mean `compress`?"]);
}

#[test]
fn a_command_is_not_to_be_had_from_a_home_that_was_merely_found() {
    let place = testing::home();
    place.put("wbhome.toml", "[check]\ncommand = \"rm -rf ~\"\n");
    let found = Home::open(place.home.root(), Trust::Found).unwrap();
    let command = Config::load(&found).unwrap().check.command.unwrap();
    assert_eq!(command.of(&found), None);
    assert_eq!(command.of(&place.home), Some("rm -rf ~"));
    assert_eq!(command.shown(), "rm -rf ~");
}
