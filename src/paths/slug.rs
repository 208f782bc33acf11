//! Slugs: the folder names that agents make of a working directory.
//!
//! A slug is lossy, so it is only ever made, never read back. Agents do not agree on two points, and a text is
//! therefore searched for every variant, each of which has its counterpart of NEW:
//! characters beyond the BMP become one dash or (JavaScript, which counts UTF-16 units) two;
//! `C:\Users` becomes `c-Users`, `C-Users`, `c--Users` or `C--Users`.

use super::mapping::Folder;

/// The slug of an absolute path: every character outside `[A-Za-z0-9]` as `-`, without leading dashes.
/// A drive is written in lower case and with one dash: `C:\Users\me` → `c-Users-me`.
///
/// ```text
/// /Users/alice/my proj → Users-alice-my-proj
/// ```
pub fn slug(path: &str) -> String {
    write(&Folder::of(path), Variant::default())
}

/// Every name that agents may have given to the folder of `old`, each with the one that is written the same way for
/// `new`. Beside the variants that texts are searched for, some keep the dashes that a POSIX path begins with, or all
/// but the first of them: several where it begins with letters of another script.
pub fn slug_pairs(old: &str, new: &str) -> Vec<(String, String)> {
    let (old, new) = (Folder::of(old), Folder::of(new));
    let mut pairs = variants(&old, &new);
    if old.drive().is_some() {
        return pairs;
    }
    for utf16 in [false, true] {
        let variant = Variant {
            utf16,
            ..Variant::default()
        };
        let forms = |folder: &Folder| match folder.drive() {
            Some(_) => [write(folder, variant), write(folder, variant)],
            None => {
                let dashed = dashes(folder.as_str(), variant);
                [dashed.chars().skip(1).collect(), dashed]
            }
        };
        pairs.extend(forms(&old).into_iter().zip(forms(&new)));
    }
    pairs
}

#[derive(Clone, Copy, Default)]
struct Variant {
    utf16: bool,
    upper_drive: bool,
    two_dashes: bool,
}

/// Pairs of what to search for and what to write instead, without repetitions.
pub(super) fn variants(old: &Folder, new: &Folder) -> Vec<(String, String)> {
    let mut pairs: Vec<(String, String)> = Vec::new();
    for bits in 0..8u8 {
        let variant = Variant {
            utf16: bits & 1 != 0,
            upper_drive: bits & 2 != 0,
            two_dashes: bits & 4 != 0,
        };
        let pair = (write(old, variant), write(new, variant));
        if pairs.iter().all(|(seen, _)| *seen != pair.0) {
            pairs.push(pair);
        }
    }
    pairs
}

fn write(folder: &Folder, variant: Variant) -> String {
    let mut out = String::new();
    let rest = match folder.drive() {
        Some((letter, rest)) => {
            out.push(if variant.upper_drive {
                letter.to_ascii_uppercase()
            } else {
                letter.to_ascii_lowercase()
            });
            if variant.two_dashes {
                out.push('-');
            }
            rest
        }
        None => folder.as_str(),
    };
    let name = dashes(rest, variant);
    out.push_str(match out.is_empty() {
        true => name.trim_start_matches('-'),
        false => &name,
    });
    out
}

/// Every character that is not kept as a dash, also at the beginning.
fn dashes(path: &str, variant: Variant) -> String {
    let mut out = String::new();
    for c in path.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c);
        } else {
            out.push('-');
            if variant.utf16 && c.len_utf16() == 2 {
                out.push('-');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_paired_in_each_way_that_they_are_written() {
        let new_of = |old: &str, new: &str, name: &str| {
            let pairs = slug_pairs(old, new);
            let found = pairs.into_iter().find(|(old, _)| old == name);
            found.map(|(_, new)| new)
        };
        for (name, new) in [("a-b", "n"), ("-a-b", "-n")] {
            assert_eq!(new_of("/a/b", "/n", name).as_deref(), Some(new));
        }
        // 数 is a dash as well.
        for (name, new) in [("b", "n"), ("-b", "n"), ("--b", "-n")] {
            let name = format!("{name}-x");
            assert_eq!(new_of("/数b/x", "/n", &name).as_deref(), Some(new));
        }
        assert_eq!(new_of("/a", "/数/n", "-a").as_deref(), Some("---n"));
        assert_eq!(new_of("/a", "/数/n", "a").as_deref(), Some("n"));
        assert_eq!(new_of("C:\\a", "/n", "c--a").as_deref(), Some("n"));
        assert_eq!(new_of("/a", "D:\\n", "-a").as_deref(), Some("d-n"));
        assert_eq!(new_of("/a", "/n", "b"), None);
    }
}
