//! What is searched for: a regular expression that sees each line on its own.
//!
//! It is taken apart and put together anew, so that it can be let loose on many lines at once: nothing in it matches a
//! line break, and `^` and `$` stand for the ends of a line. Beside it stands a second one without anything that looks at
//! what is around a match: wherever the first matches in a part of a text, the second matches in the whole.

use regex::bytes::{Regex, RegexBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::ast::Span;
use regex_syntax::hir::{
    Class, ClassBytes, ClassBytesRange, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look,
    Repetition,
};

use super::escapes::{Hiding, as_written};
use crate::base::{Error, Result, human};

/// How a pattern is meant.
#[derive(Clone, Copy, Debug, Default)]
pub struct Meaning {
    /// Character by character, and no regular expression.
    pub literal: bool,
    /// Large letters and small ones are the same.
    pub ignore_case: bool,
    /// Whole words only.
    pub words: bool,
}

/// What is searched for.
#[derive(Clone, Debug)]
pub struct Pattern {
    /// Finds it in lines.
    pub(super) lines: Regex,
    /// Finds at least all of that, whatever stands around it.
    pub(super) anywhere: Regex,
    /// Finds at least all of that in a JSON text as it is written, but for what is hidden behind some escapes.
    pub(super) written: Regex,
    /// Behind which.
    pub(super) hiding: Hiding,
}

impl Pattern {
    /// Understands a pattern.
    ///
    /// # Errors
    /// A usage error that says what is wrong with it, and where.
    pub fn new(text: &str, meaning: Meaning) -> Result<Pattern> {
        if text.is_empty() {
            return Err(
                Error::usage("the pattern is empty: it would match every line")
                    .hint("`wbhome ls` lists the sessions"),
            );
        }
        let escaped;
        let expression = match meaning.literal {
            true => {
                escaped = regex_syntax::escape(text);
                &escaped
            }
            false => text,
        };
        let mut parser = ParserBuilder::new()
            .case_insensitive(meaning.ignore_case)
            .utf8(false)
            .build();
        let parsed = parser.parse(expression);
        let parsed = parsed.map_err(|error| not_understood(text, &error))?;
        let within = within_lines(&parsed).ok_or_else(|| {
            let shown = human::escape(text);
            Error::usage(format!(
                "`{shown}` asks for a line break, and what is found lies in one line"
            ))
            .hint("search for one of the lines; -C 3 shows what stands around it")
        })?;
        let within = match meaning.words {
            true => Hir::concat(vec![
                Hir::look(Look::WordStartHalfUnicode),
                within,
                Hir::look(Look::WordEndHalfUnicode),
            ]),
            false => within,
        };
        let plain = without_looks(&within);
        let anywhere = compiled(text, &plain)?;
        // One that becomes too large is looked for without.
        let written = as_written(&plain).and_then(|hir| compiled(text, &hir).ok());
        let (written, hiding) = match written {
            Some(written) => (written, Hiding::of_the_rest()),
            None => (anywhere.clone(), Hiding::of(&plain)),
        };
        Ok(Pattern {
            lines: compiled(text, &within)?,
            anywhere,
            written,
            hiding,
        })
    }
}

fn compiled(text: &str, hir: &Hir) -> Result<Regex> {
    RegexBuilder::new(&hir.to_string()).build().map_err(|_| {
        let shown: String = text.chars().take(60).collect();
        Error::usage(format!(
            "`{}` becomes too large to be searched for",
            human::escape(&shown)
        ))
        .hint("large repetitions such as {1000} of \\w make it so")
    })
}

/// What is wrong with a pattern, where, and that it may have been meant as it stands there.
fn not_understood(text: &str, error: &regex_syntax::Error) -> Error {
    let (what, span) = match error {
        regex_syntax::Error::Parse(error) => (error.kind().to_string(), Some(error.span())),
        regex_syntax::Error::Translate(error) => (error.kind().to_string(), Some(error.span())),
        error => (error.to_string(), None),
    };
    let place = span.map(|span| place_of(text, span)).unwrap_or_default();
    Error::usage(format!(
        "`{}` is no regular expression: {what}{place}",
        human::escape(text)
    ))
    .hint("-F takes it as it is, character by character")
}

fn place_of(text: &str, span: &Span) -> String {
    let (from, to) = (span.start.offset, span.end.offset);
    let Some(before) = text.get(..from) else {
        return String::new();
    };
    let number = human::count(before.chars().count() as u64 + 1);
    match text.get(from..to) {
        Some("") | None if from == text.len() => ", at its end".to_owned(),
        Some("") | None => format!(", at character {number}"),
        Some(part) => {
            let part: String = part.chars().take(20).collect();
            format!(", at character {number}: `{}`", human::escape(&part))
        }
    }
}

/// The same, so that it matches within one line of many; `None` when it asks for a line break by name. Groups are not
/// needed any more.
fn within_lines(hir: &Hir) -> Option<Hir> {
    Some(match hir.kind() {
        HirKind::Empty => Hir::empty(),
        HirKind::Literal(literal) if literal.0.contains(&b'\n') => return None,
        HirKind::Literal(literal) => Hir::literal(literal.0.clone()),
        HirKind::Class(Class::Unicode(class)) => {
            let mut class = class.clone();
            class.difference(&ClassUnicode::new([ClassUnicodeRange::new('\n', '\n')]));
            Hir::class(Class::Unicode(class))
        }
        HirKind::Class(Class::Bytes(class)) => {
            let mut class = class.clone();
            class.difference(&ClassBytes::new([ClassBytesRange::new(b'\n', b'\n')]));
            Hir::class(Class::Bytes(class))
        }
        HirKind::Look(look) => Hir::look(match look {
            Look::Start | Look::StartLF | Look::StartCRLF => Look::StartLF,
            // A line that ends as on Windows ends before its carriage return.
            Look::End | Look::EndLF | Look::EndCRLF => Look::EndCRLF,
            look => *look,
        }),
        HirKind::Repetition(repetition) => Hir::repetition(Repetition {
            min: repetition.min,
            max: repetition.max,
            greedy: repetition.greedy,
            sub: Box::new(within_lines(&repetition.sub)?),
        }),
        HirKind::Capture(group) => within_lines(&group.sub)?,
        HirKind::Concat(parts) => {
            Hir::concat(parts.iter().map(within_lines).collect::<Option<_>>()?)
        }
        HirKind::Alternation(parts) => {
            Hir::alternation(parts.iter().map(within_lines).collect::<Option<_>>()?)
        }
    })
}

/// The same without conditions on what stands around.
fn without_looks(hir: &Hir) -> Hir {
    match hir.kind() {
        HirKind::Look(_) => Hir::empty(),
        HirKind::Repetition(repetition) => Hir::repetition(Repetition {
            min: repetition.min,
            max: repetition.max,
            greedy: repetition.greedy,
            sub: Box::new(without_looks(&repetition.sub)),
        }),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(without_looks).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(without_looks).collect()),
        _ => hir.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Pattern {
        Pattern::new(text, Meaning::default()).unwrap()
    }

    fn found(pattern: &Pattern, text: &str) -> Vec<String> {
        let found = pattern.lines.find_iter(text.as_bytes());
        found.map(|m| text[m.start()..m.end()].to_owned()).collect()
    }

    #[test]
    fn each_line_is_seen_on_its_own() {
        for (text, wanted) in [
            ("^b", vec!["b"]),
            (r"\Ab", vec!["b"]),
            ("a$", vec!["a"]),
            (r"a\z", vec!["a"]),
            (r"a\s*b", vec![]),
            (r"a[^x]b", vec![]),
            ("(?s)a.b", vec![]),
            (r"(?-u)a[\x00-\xff]b", vec![]),
        ] {
            assert_eq!(found(&pattern(text), "a\nb\n"), wanted, "{text}");
            let naive = ["a", "b"].map(|line| pattern(text).lines.is_match(line.as_bytes()));
            assert_eq!(naive.contains(&true), !wanted.is_empty(), "{text}");
        }
        assert_eq!(found(&pattern("a$"), "a\r\nba\r\n"), ["a", "a"]);
    }

    #[test]
    fn words_letters_and_characters() {
        let meant = |text: &str, literal, ignore_case, words| {
            let meaning = Meaning {
                literal,
                ignore_case,
                words,
            };
            Pattern::new(text, meaning).unwrap()
        };
        let has = |pattern: &Pattern, text: &str| pattern.lines.is_match(text.as_bytes());
        let dot = meant("a.c", true, false, false);
        assert!(has(&dot, "xa.cx") && !has(&dot, "abc"));
        let case = meant("straße|ДОМ", false, true, false);
        assert!(has(&case, "STRAßE") && has(&case, "дом"));
        let word = meant("cat|dog", false, false, true);
        assert!(has(&word, "a cat.") && has(&word, "dog") && !has(&word, "cats hotdog"));
        // What is no letter at its ends is no word, and is found all the same.
        assert!(has(&meant("--no", true, false, true), "x --no y"));
        assert!(has(&meant("数据", true, false, true), "（数据）"));
        assert!(!has(&meant("数据", true, false, true), "数据清洗"));
    }

    #[test]
    fn what_matches_in_a_part_matches_anywhere() {
        for (text, part) in [
            ("^a$", "a"),
            (r"\bword\b", "word"),
            (r"\Bb|^c", "c"),
            ("(^|/)x(?:$|/)", "x"),
        ] {
            let pattern = pattern(text);
            assert!(pattern.lines.is_match(part.as_bytes()), "{text}");
            let around = format!("zz{part}zz");
            assert!(pattern.anywhere.is_match(around.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        let why = |text: &str| Pattern::new(text, Meaning::default()).unwrap_err();
        let error = why("数据(清洗");
        assert_eq!(
            error.to_string(),
            "`数据(清洗` is no regular expression: unclosed group, at character 3: `(`"
        );
        assert_eq!(error.exit_code(), 2);
        assert!(error.hints()[0].contains("-F"));
        for (text, part) in [
            ("(?i", "at its end"),
            ("a{2", "at character 2: `{2`"),
            ("[z-a]", "at character 2: `z-a`"),
            (r"(?<=a)b", "look-around"),
            (r"a\nb", "line break"),
            ("", "empty"),
            (r"(\w{1000}){100}", "too large"),
        ] {
            assert!(
                why(text).to_string().contains(part),
                "{text}: {}",
                why(text)
            );
        }
        let literal = Meaning {
            literal: true,
            ..Meaning::default()
        };
        assert!(Pattern::new("数据(清洗", literal).is_ok());
    }

    trait Code {
        fn exit_code(&self) -> u8;
    }

    impl Code for Error {
        fn exit_code(&self) -> u8 {
            self.kind().exit().code()
        }
    }
}
