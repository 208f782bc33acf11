//! A name as it must be typed in bash, so that it comes out as it is, whatever is in it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;

use super::words::Quote;
use crate::base::human;

/// What means something to bash outside of quotes. A name with any other character needs no care.
const SPECIAL: &[u8] = b" \"'$`\\!*?[]{}()<>|&;#~^";

/// The text to be typed where such quotes are open. They are open again at its end.
///
/// What could move the cursor is written as `$'\xNN'`, byte by byte, which means the same in every locale.
pub(super) fn for_bash(name: &OsStr, quote: Quote) -> Vec<u8> {
    let is_plain = |b: &u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'.' | b'/');
    if name.as_bytes().iter().all(is_plain) {
        return name.as_bytes().to_vec();
    }
    let mut out = Vec::with_capacity(name.len() + 8);
    // Whether `$'` is open.
    let mut coded = quote == Quote::Dollar;
    for chunk in name.as_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            let mut bytes = [0; 4];
            let bytes = c.encode_utf8(&mut bytes);
            push(
                &mut out,
                bytes.as_bytes(),
                human::is_unseen(c),
                quote,
                &mut coded,
            );
        }
        for byte in chunk.invalid() {
            push(&mut out, &[*byte], true, quote, &mut coded);
        }
    }
    leave(&mut out, quote, &mut coded);
    out
}

/// One character, in as few quotes as do.
fn push(out: &mut Vec<u8>, bytes: &[u8], drives: bool, quote: Quote, coded: &mut bool) {
    if drives {
        enter(out, quote, coded);
        for byte in bytes {
            out.extend(format!("\\x{byte:02x}").bytes());
        }
        return;
    }
    leave(out, quote, coded);
    match (quote, bytes) {
        (Quote::None, [byte]) if SPECIAL.contains(byte) => out.extend([b'\\', *byte]),
        (Quote::Single, b"'") => out.extend(b"'\\''"),
        (Quote::Double, [byte @ (b'"' | b'$' | b'`' | b'\\')]) => out.extend([b'\\', *byte]),
        // Even in these quotes it calls for an earlier command, and a backslash would stay.
        (Quote::Double, b"!") => out.extend(b"\"\\!\""),
        (Quote::Dollar, [byte @ (b'\'' | b'\\')]) => out.extend([b'\\', *byte]),
        (_, bytes) => out.extend(bytes),
    }
}

fn enter(out: &mut Vec<u8>, quote: Quote, coded: &mut bool) {
    if !std::mem::replace(coded, true) {
        out.extend(match quote {
            Quote::None | Quote::Dollar => &b"$'"[..],
            Quote::Single => b"'$'",
            Quote::Double => b"\"$'",
        });
    }
}

fn leave(out: &mut Vec<u8>, quote: Quote, coded: &mut bool) {
    if quote != Quote::Dollar && std::mem::replace(coded, false) {
        out.extend(match quote {
            Quote::None | Quote::Dollar => &b"'"[..],
            Quote::Single => b"''",
            Quote::Double => b"'\"",
        });
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::{Dialect, nothing, word};
    use super::*;
    use proptest::prelude::*;

    fn escaped(name: &str, quote: Quote) -> String {
        String::from_utf8(for_bash(OsStr::new(name), quote)).unwrap()
    }

    #[test]
    fn as_people_would_type_it() {
        for (name, none, single, double) in [
            (
                "数据_1-a.b/c=d:e",
                "数据_1-a.b/c=d:e",
                "数据_1-a.b/c=d:e",
                "数据_1-a.b/c=d:e",
            ),
            ("a b", r"a\ b", "a b", "a b"),
            (
                "it's \"$x\"",
                r#"it\'s\ \"\$x\""#,
                r#"it'\''s "$x""#,
                r#"it's \"\$x\""#,
            ),
            ("hey!", r"hey\!", "hey!", "hey\"\\!\""),
            ("a\nb", r"a$'\x0a'b", r"a'$'\x0a''b", r#"a"$'\x0a'"b"#),
            (
                "\u{202e}",
                r"$'\xe2\x80\xae'",
                r"'$'\xe2\x80\xae''",
                r#""$'\xe2\x80\xae'""#,
            ),
        ] {
            assert_eq!(escaped(name, Quote::None), none);
            assert_eq!(escaped(name, Quote::Single), single);
            assert_eq!(escaped(name, Quote::Double), double);
        }
        assert_eq!(escaped("it's\n", Quote::Dollar), r"it\'s\x0a");
    }

    proptest! {
        #[test]
        fn it_is_read_back_as_it_was(name in prop::collection::vec(1u8.., 0..20)) {
            for (quote, open) in [
                (Quote::None, ""), (Quote::Single, "'"), (Quote::Double, "\""), (Quote::Dollar, "$'"),
            ] {
                let mut typed = open.as_bytes().to_vec();
                typed.extend(for_bash(OsStr::from_bytes(&name), quote));
                let read = word(&typed, Dialect::Posix, &nothing);
                prop_assert_eq!(read.value.as_bytes(), &name[..]);
                prop_assert_eq!(read.quote, quote);
            }
        }
    }
}
