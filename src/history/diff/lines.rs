//! Lines as a person can read them: a long one in pieces, each a sentence or some words.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A line of at most so many columns is one piece.
const WHOLE: usize = 100;
/// So long a word is cut in its middle.
const WORD: usize = 400;

/// Ends a piece after which the line goes on.
pub(super) const GOES_ON: char = '↩';

/// The pieces of a line, which put together are the line. What is in them depends on nothing but the line, and a
/// changed sentence changes no other piece.
pub(super) fn pieces(line: &str) -> Vec<&str> {
    if line.len() <= WHOLE || line.width() <= WHOLE {
        return vec![line];
    }
    let mut pieces = Vec::new();
    for sentence in sentences(line) {
        match sentence.width() <= WHOLE {
            true => pieces.push(sentence),
            false => words(sentence, &mut pieces),
        }
    }
    pieces
}

/// Cut after `。！？` and what closes behind them, and after `.`, `!` or `?` with white space.
fn sentences(line: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut begin = 0;
    let mut chars = line.char_indices().peekable();
    while let Some((_, c)) = chars.next() {
        let wide = matches!(c, '。' | '！' | '？' | '；');
        let narrow = matches!(c, '.' | '!' | '?');
        if !wide && !narrow {
            continue;
        }
        let closes = |c: char| matches!(c, '”' | '’' | '」' | '』' | '）' | '"' | '\'' | ')');
        let ends = |c: char| matches!(c, '。' | '！' | '？' | '.' | '!' | '?');
        while chars.next_if(|(_, c)| closes(*c) || ends(*c)).is_some() {}
        let mut spaces = 0;
        while chars.next_if(|(_, c)| *c == ' ').is_some() {
            spaces += 1;
        }
        if let (true, Some((end, _))) = (wide || spaces > 0, chars.peek()) {
            sentences.push(&line[begin..*end]);
            begin = *end;
        }
    }
    sentences.push(&line[begin..]);
    sentences
}

/// Cut at the last white space, or mark between clauses, before the line is too wide.
fn words<'t>(sentence: &'t str, pieces: &mut Vec<&'t str>) {
    let mut begin = 0;
    let mut width = 0;
    let mut gap = None;
    for (at, c) in sentence.char_indices() {
        let wide = c.width().unwrap_or(0);
        if width + wide > WHOLE
            && let Some(end) = gap.take().or_else(|| (width >= WORD).then_some(at))
        {
            pieces.push(&sentence[begin..end]);
            width = sentence[end..at].width();
            begin = end;
        }
        width += wide;
        // Between two ideographs a line may be broken anywhere.
        if c.is_whitespace() || matches!(c, '，' | '、' | ',') || wide == 2 {
            gap = Some(at + c.len_utf8());
        }
    }
    pieces.push(&sentence[begin..]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_lost_and_a_sentence_is_a_piece() {
        let chinese = "今天我们把数据从网盘搬到了本地。之后每个会话都有自己的文件夹！你还记得上一次同步时丢了哪一轮吗？是第四轮。";
        assert_eq!(pieces(chinese).len(), 4);
        assert_eq!(pieces(chinese)[2], "你还记得上一次同步时丢了哪一轮吗？");
        let english = format!("One sentence. {}", "word ".repeat(60));
        assert_eq!(pieces(&english)[0], "One sentence. ");
        let blob = "A".repeat(5000);
        for line in [chinese, &english, &blob, "", "short.", &"字".repeat(900)] {
            assert_eq!(pieces(line).concat(), line);
            assert!(pieces(line).iter().all(|piece| piece.width() <= WORD));
        }
        assert_eq!(pieces("version 1.2.3 of it"), ["version 1.2.3 of it"]);
    }
}
