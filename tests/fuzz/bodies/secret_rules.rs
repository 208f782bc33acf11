//! Any text as a person's file of rules, and any text scanned by them: what is found stands in the text, is told without
//! being given away, and is the same whoever looks.
//!
//! Three pieces: the rules, the path, the text. The first byte says whether the built-in rules hold too, which takes
//! longer.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use wbhome::secrets::{Check, Rules};

use super::place::{Place, pieces};

pub fn run(input: &[u8]) -> bool {
    let Some((how, input)) = input.split_first() else {
        return false;
    };
    let mut pieces = pieces(input);
    let mut rules = pieces.next().unwrap_or_default().to_vec();
    if how % 8 != 7 {
        rules.extend_from_slice(b"\n[extend]\nuseDefault = false\n");
    }
    let path = Path::new(OsStr::from_bytes(pieces.next().unwrap_or_default()));
    let text = pieces.next().unwrap_or_default();
    let place = Place::new();
    let own = place.put("规则.toml", &rules);
    let rules = match Rules::load(Some(&own)) {
        Ok(rules) => rules,
        Err(error) => {
            assert!(
                !error
                    .to_string()
                    .chars()
                    .any(|c| c.is_control() && c != '\n')
            );
            return false;
        }
    };
    let found = rules.scan(path, text);
    let is_utf16 = text.starts_with(b"\xff\xfe") || text.starts_with(b"\xfe\xff");
    let lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    for found in &found {
        assert!(found.line >= 1 && found.column >= 1);
        assert_eq!(found.digest.len(), 32);
        assert!(!found.shown.chars().any(char::is_control));
        if is_utf16 {
            continue;
        }
        let line = usize::try_from(found.line).expect("a line");
        let line = lines.get(line - 1).expect("the line is there");
        let column = usize::try_from(found.column).expect("a column");
        assert!(
            column <= line.len() + 1,
            "column {column} of {}",
            line.len()
        );
        let cut = found.cut(text);
        let kept = cut.strip_suffix(found.shown.as_bytes());
        assert!(kept.is_some_and(|kept| text.starts_with(kept)));
    }
    let check = Check::load(Some(&own), &[]).expect("they were read just now");
    let file = std::fs::File::open(place.put("文", text)).expect("a file");
    let checked = check.file(path, &file, place.stop()).expect("it is read");
    assert_eq!(checked.size, text.len() as u64);
    assert_eq!(checked.findings.len(), found.len().min(1000));
    assert!(checked.findings.iter().zip(&found).all(|(a, b)| a == b));
    true
}
