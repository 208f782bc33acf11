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
    for c in rest.chars() {
        if c.is_ascii_alphanumeric() {
            out.push(c);
        } else if !out.is_empty() {
            out.push('-');
            if variant.utf16 && c.len_utf16() == 2 {
                out.push('-');
            }
        }
    }
    out
}
