//! The boundary table of the specification, row by row, in every spelling.

use super::*;

const REFERENCE: &[&str] = &[
    "", "/", "/x/y.md", " ", "\n", "\"", "'", "`", ">", ")", ",", ";", ":", "!", "?", "]", "}",
    "|", "=", "&x", "#L1", "，", "。", "）", "、", "”", "🎉", ". Then", ".", "...", "... and",
    ".\n", ".\"", ".）", " 2 files", " and (1)", " (see", " (old)",
];
const OTHER: &[&str] = &[
    "2/keep",
    "bc",
    "-2/keep",
    "_old",
    "~",
    "+x",
    "@2",
    ".bak",
    ".bak/keep",
    "..x",
    ".备份",
    "./x",
    "../x",
    " (1)/keep",
    "(1)/keep",
    "(12)",
    " 2/keep",
    " 12/x",
    " (me's conflicted copy 2024-06-11)/x",
    " (Case Conflict)",
    "(笔记本的冲突副本1_2024-06-11 10-11-12)",
    " [conflicted]",
    " (SFConflict me@example.org 2024-06-11-10-11-12)",
    "(copia en conflicto de x)",
];
const DOUBTFUL: &[&str] = &["的副本/keep", "目录下的文件", "é", "٣", "\u{301}x", "𠀀"];

const BEFORE_REFERENCE: &[&str] = &[
    "",
    " ",
    "\n",
    "x\n",
    "\t",
    "\"",
    "'",
    "`",
    "=",
    ":",
    "(",
    "<",
    "[",
    "，",
    "（",
    "“",
    "在",
    "打开在",
    "见：",
    "x 在",
    "🎉",
    "cwd=",
    "$",
    "|",
    "a在",
];
const BEFORE_OTHER: &[&str] = &[
    "/Volumes/Backup",
    "x",
    "7",
    "_",
    "-",
    "~",
    "+",
    "@",
    ".",
    "..",
    "/",
    "//",
    "/Volumes/备份",
    "./在",
    "x-备份",
    "v.备份",
    "${ROOT}",
];

fn check(way: Way, before: &str, after: &str, expected: &str) {
    let rewriter = rewriter(&[(OLD, NEW)]);
    let (before, after) = (way.around(before), way.around(after));
    let input = format!("{before}{}{after}", way.write(OLD));
    let (out, found) = run(&rewriter, TextKind::Other, &input);
    let (changed, doubtful) = (found.references.len(), found.doubtful.len());
    let seen = match (changed, doubtful) {
        (1, 0) => "reference",
        (0, 1) => "doubtful",
        (0, 0) => "other",
        _ => "several",
    };
    assert_eq!(seen, expected, "{way:?}: {input}");
    if changed == 1 {
        assert_eq!(
            out,
            format!("{before}{}{after}", way.write(NEW)),
            "{way:?}: {input}"
        );
        let spelling = found.references[0].spelling;
        assert_eq!(spelling, way.spelling(), "{input}");
        assert_eq!(found.references[0].offset as usize, before.len());
        assert_eq!(found.references[0].len as usize, way.write(OLD).len());
    } else {
        assert_eq!(out, input);
    }
}

#[test]
fn what_comes_after() {
    for way in WAYS {
        for (rows, expected) in [
            (REFERENCE, "reference"),
            (OTHER, "other"),
            (DOUBTFUL, "doubtful"),
        ] {
            for row in rows {
                check(*way, " ", row, expected);
                check(*way, "", row, expected);
            }
        }
    }
}

#[test]
fn what_comes_before() {
    for way in WAYS {
        for (rows, expected) in [(BEFORE_REFERENCE, "reference"), (BEFORE_OTHER, "other")] {
            for row in rows {
                check(*way, row, "/x", expected);
                check(*way, row, "", expected);
            }
        }
    }
}

#[test]
fn urls_and_their_authorities() {
    for way in [Way::Url, Way::UrlLower, Way::UrlNode] {
        for scheme in [
            "file://",
            "file:",
            "(file://",
            "url: file://localhost",
            "vscode://file",
            "file:\\/\\/",
        ] {
            check_raw(way, scheme, "/a.md", true);
        }
        check_raw(way, "https://example.org", "/a.md", false);
        check_raw(way, "file:///Volumes/Backup", "/a.md", false);
        check_raw(way, "%3D", "/a.md", true);
        check_raw(way, "%E5%A4%87", "/a.md", true);
        check_raw(way, "/%E5%A4%87", "/a.md", false);
        check_raw(way, "file://", "%20(1)/x", false);
        check_raw(way, "file://", "%20%281%29/x", false);
    }
    check_raw(Way::UrlComponent, "vscode://open?path=", "%2Fx", true);
    check_raw(Way::UrlComponent, "file%3A%2F%2F", "%2Fx", true);
}

fn check_raw(way: Way, before: &str, after: &str, changes: bool) {
    let rewriter = rewriter(&[(OLD, NEW)]);
    let (out, _) = run(
        &rewriter,
        TextKind::Other,
        &format!("{before}{}{after}", way.write(OLD)),
    );
    let expected = way.write(if changes { NEW } else { OLD });
    assert_eq!(out, format!("{before}{expected}{after}"));
}

#[test]
fn a_plain_old_in_a_url_needs_a_new_that_is_encoded() {
    let rewriter = rewriter(&[("/a/b", "/n w/工")]);
    let cases = [
        ("file:///a/b/x", "file:///n%20w/%E5%B7%A5/x"),
        ("file:///a/b%20(1)/x", "file:///a/b%20(1)/x"),
        ("file:///a/b%E7%9A%84", "file:///a/b%E7%9A%84"),
        ("/a/b/x", "/n w/工/x"),
    ];
    for (input, expected) in cases {
        assert_eq!(run(&rewriter, TextKind::Other, input).0, expected);
    }
}

#[test]
fn escapes_before_and_after() {
    let rewriter = rewriter(&[("/a/b", "/n")]);
    let cases = [
        (r#""see\n/a/b\tand\r\n/a/b""#, r#""see\n/n\tand\r\n/n""#),
        (
            r#""{\"p\": \"/a/b\", \"l\": \"x\\n/a/b\\t\"}""#,
            r#""{\"p\": \"/n\", \"l\": \"x\\n/n\\t\"}""#,
        ),
        (r#""{\"p\":\"\\/a\\/b\\/c\"}""#, r#""{\"p\":\"\\/n\\/c\"}""#),
        (r#""\\\/a\\\/b\\\/c""#, r#""\\\/n\\\/c""#),
        (
            r#""\/a\/b2 \/x\/a\/b \/a\/b""#,
            r#""\/a\/b2 \/x\/a\/b \/n""#,
        ),
        (
            r#""/a/b\u526f /a/b\u002d2 /a/b\u0020(1) /a/b\u3002""#,
            r#""/a/b\u526f /a/b\u002d2 /a/b\u0020(1) /n\u3002""#,
        ),
        (r#""/a/b\\u526f""#, r#""/a/b\\u526f""#),
        (
            r#""\u5728/a/b /x\u5728 \u002f\u5728/a/b""#,
            r#""\u5728/n /x\u5728 \u002f\u5728/a/b""#,
        ),
        ("\u{1b}[0m/a/b\u{1b}[1m", "\u{1b}[0m/n\u{1b}[1m"),
        (
            r"\u001b[31;1m/a/b\u001b[0m \x1b[K/a/b",
            r"\u001b[31;1m/n\u001b[0m \x1b[K/n",
        ),
        (
            r"cd /a/b\ \(1\)/x; cd /a/b\ 2/x; cd /a/b\ x",
            r"cd /a/b\ \(1\)/x; cd /a/b\ 2/x; cd /n\ x",
        ),
        (
            r#"{"p": "/a/b 2", "q": "/a/b 2 files"}"#,
            r#"{"p": "/a/b 2", "q": "/n 2 files"}"#,
        ),
        (r"/a/b\_old", r"/a/b\_old"),
        (
            "gitdir: /a/b/.git\n#!/a/b/bin/python\nVIRTUAL_ENV=/a/b\nPATH=/x:/a/b:/y",
            "gitdir: /n/.git\n#!/n/bin/python\nVIRTUAL_ENV=/n\nPATH=/x:/n:/y",
        ),
        ("从/tmp/y移到/a/b", "从/tmp/y移到/a/b"),
    ];
    for (input, expected) in cases {
        assert_eq!(
            run(&rewriter, TextKind::Other, input).0,
            expected,
            "{input}"
        );
    }
}

/// `/mnt/c/x` may be what is called `C:\x` elsewhere; whoever names it means it.
#[test]
fn a_folder_that_was_named_wins_over_what_another_may_be_called() {
    let mut pairs = [(r"C:\Users", r"C:\Users\me\新"), ("/mnt/c/Users", "/u")];
    for _ in 0..2 {
        let rewriter = rewriter(&pairs);
        let text = "/mnt/c/Users/me /mnt/C/Users/me /c/Users/me";
        let (out, _) = run(&rewriter, TextKind::Other, text);
        assert_eq!(out, "/u/me /mnt/C/Users/me/新/me /c/Users/me/新/me");
        pairs.reverse();
    }
}

#[test]
fn the_longest_wins_and_a_folder_mapped_to_itself_stays() {
    let rewriter = rewriter(&[
        ("/a/b", "/x"),
        ("/a/b/c", "/y"),
        ("/a/b/keep", "/a/b/keep"),
        ("/q (1)/a/b", "/z"),
    ]);
    let (out, found) = run(
        &rewriter,
        TextKind::Other,
        "/a/b/c/1 /a/b/c2 /a/b/d /a/b/keep/x /q (1)/a/b/c /a/b/c目",
    );
    assert_eq!(out, "/y/1 /x/c2 /x/d /a/b/keep/x /z/c /a/b/c目");
    assert_eq!(
        found
            .references
            .iter()
            .map(|r| r.mapping)
            .collect::<Vec<_>>(),
        [1, 0, 0, 3]
    );
    assert_eq!(found.doubtful.len(), 1);
}

#[test]
fn new_inside_old_is_written_once() {
    let rewriter = rewriter(&[("/a/b", "/a/b/c")]);
    assert_eq!(
        run(&rewriter, TextKind::Other, "/a/b/x /a/b/c/x").0,
        "/a/b/c/x /a/b/c/c/x"
    );
}

#[test]
fn home_forms() {
    let below = with(&[(OLD, "/Users/me/w b")], at_home());
    let outside = with(&[(OLD, "/srv/w b")], at_home());
    let rest = "Cloud Drive/工作 (old)+[1]/workbuddy_home";
    let quoted = shell(rest, "\\");
    for (input, to_home, absolute) in [
        (format!("~/{rest}/x"), "~/w b/x", "/srv/w b/x"),
        (
            format!("cd $HOME/{quoted}/x"),
            "cd $HOME/w\\ b/x",
            "cd /srv/w\\ b/x",
        ),
        (
            format!("\"${{HOME}}/{rest}\""),
            "\"${HOME}/w b\"",
            "\"/srv/w b\"",
        ),
        (format!("host:~/{rest}"), "host:~/w b", "host:/srv/w b"),
        (
            format!("\"~/{rest}\"").replace('/', "\\/"),
            "\"~\\/w b\"",
            "\"\\/srv\\/w b\"",
        ),
    ] {
        let (out, found) = run(&below, TextKind::Other, &input);
        assert_eq!(out, to_home);
        assert_eq!(found.references[0].spelling, Spelling::Home);
        assert_eq!(run(&outside, TextKind::Other, &input).0, absolute);
    }
    for input in [
        format!("~/{rest}2/keep"),
        format!("x~/{rest}"),
        format!("$HOMER/{rest}"),
        format!("~me/{rest}"),
        format!("/~/{rest}"),
    ] {
        assert_eq!(run(&below, TextKind::Other, &input).0, input);
    }
}

#[test]
fn windows_forms() {
    let rewriter = rewriter(&[(r"C:\Users\me\One Drive\工作", r"D:\wb 家")]);
    let to_posix = super::rewriter(&[("C:/Users/me/One Drive/工作", "/home/me/wb")]);
    for (input, expected, posix) in [
        (
            r"C:\Users\me\One Drive\工作\x",
            r"D:\wb 家\x",
            r"/home/me/wb\x",
        ),
        (
            r#""c:\\Users\\me\\One Drive\\工作\\x""#,
            r#""d:\\wb 家\\x""#,
            r#""/home/me/wb\\x""#,
        ),
        (
            r#""C:\\Users\\me\\One Drive\\\u5de5\u4f5c\\u1234""#,
            r#""D:\\wb \u5bb6\\u1234""#,
            r#""/home/me/wb\\u1234""#,
        ),
        (
            "C:/Users/me/One Drive/工作/x",
            "D:/wb 家/x",
            "/home/me/wb/x",
        ),
        (
            "/c/Users/me/One\\ Drive/工作/x",
            "/D/wb\\ 家/x",
            "/home/me/wb/x",
        ),
        (
            "/mnt/c/Users/me/One Drive/工作/x",
            "/mnt/d/wb 家/x",
            "/home/me/wb/x",
        ),
        (
            r"\\?\C:\Users\me\One Drive\工作",
            r"\\?\D:\wb 家",
            "/home/me/wb",
        ),
        (
            r#""\\\\?\\C:\\Users\\me\\One Drive\\工作\\x""#,
            r#""\\\\?\\D:\\wb 家\\x""#,
            r#""/home/me/wb\\x""#,
        ),
        (
            "file:///C:/Users/me/One%20Drive/%E5%B7%A5%E4%BD%9C/x",
            "file:///D:/wb%20%E5%AE%B6/x",
            "file:///home/me/wb/x",
        ),
        (
            "file:///c%3A/Users/me/One%20Drive/%E5%B7%A5%E4%BD%9C",
            "file:///d%3A/wb%20%E5%AE%B6",
            "file:///home/me/wb",
        ),
    ] {
        let expected = if input.starts_with("/c/") {
            expected.replace("/D/", "/d/")
        } else {
            expected.to_owned()
        };
        let (out, found) = run(&rewriter, TextKind::Other, input);
        assert_eq!(out, expected, "{input}");
        assert_eq!(found.references[0].spelling, Spelling::Windows);
        assert_eq!(run(&to_posix, TextKind::Other, input).0, posix, "{input}");
    }
    for input in [
        r"C:\Users\me\One Drive\工作2",
        r"C:\Users\me\One Drive\工作 (1)\x",
        r"C:\Users\me\One Drive\工作 2\x",
        r"C:\Users\me\One Drive\工作.bak\x",
        r"xC:\Users\me\One Drive\工作",
        r"E:\Users\me\One Drive\工作",
        "/x/c/Users/me/One Drive/工作",
    ] {
        assert_eq!(run(&rewriter, TextKind::Other, input).0, input);
    }
}

#[test]
fn slugs() {
    let rewriter = rewriter(&[("/Users/me/My 工/wb", "/home/m e/x")]);
    let cases = [
        (
            "projects/Users-me-My----wb/1.jsonl",
            "projects/Users-me-My----wb/1.jsonl",
        ),
        (
            "projects/Users-me-My---wb/1.jsonl",
            "projects/home-m-e-x/1.jsonl",
        ),
        ("projects/-Users-me-My---wb/", "projects/-home-m-e-x/"),
        (
            r#""projects\/Users-me-My---wb-sessions-2024""#,
            r#""projects\/home-m-e-x-sessions-2024""#,
        ),
        (
            "Users-me-My---wb-agents Users-me-My---wb",
            "home-m-e-x-agents home-m-e-x",
        ),
        (
            "Users-me-My---wb2 Users-me-My---wb_x xUsers-me-My---wb a-Users-me-My---wb",
            "Users-me-My---wb2 Users-me-My---wb_x xUsers-me-My---wb a-Users-me-My---wb",
        ),
    ];
    for (input, expected) in cases {
        assert_eq!(
            run(&rewriter, TextKind::Other, input).0,
            expected,
            "{input}"
        );
    }
    let (_, found) = run(
        &rewriter,
        TextKind::Other,
        "Users-me-My---wb-2 Users-me-My---wb-sessionsx",
    );
    assert_eq!((found.references.len(), found.doubtful.len()), (0, 2));
    assert_eq!(slug("/Users/alice/x.y z"), "Users-alice-x-y-z");
    assert_eq!(slug(r"C:\Users\a"), "c-Users-a");
    let windows = super::rewriter(&[(r"C:\Users\me\wb", "/home/me/wb")]);
    assert_eq!(
        run(&windows, TextKind::Other, "c-Users-me-wb C--Users-me-wb").0,
        "home-me-wb home-me-wb"
    );
    let empty = super::rewriter(&[("/Users/me/wb", "/工作")]);
    let text = "projects/Users-me-wb/1";
    assert_eq!(run(&empty, TextKind::Other, text).0, text);
    let short = super::rewriter(&[("/a/b", "/home/me/wb"), ("/workbuddy_home", "/x")]);
    assert_eq!(
        run(&short, TextKind::Other, "a-b workbuddy-home").0,
        "a-b workbuddy-home"
    );
}

#[test]
fn percent_signs_in_names() {
    let rewriter = rewriter(&[("/a/100% x%41", "/n/5%")]);
    let cases = [
        ("/a/100% x%41/y", "/n/5%/y"),
        ("file:///a/100%25%20x%2541/y", "file:///n/5%25/y"),
    ];
    for (input, expected) in cases {
        assert_eq!(run(&rewriter, TextKind::Other, input).0, expected);
    }
}

/// The separator before them looks like an escape of the first character.
#[test]
fn folders_whose_names_begin_with_a_space_or_a_sign() {
    for (old, new) in [
        (r"C:\Users\ 2", r"D:\新"),
        (r"C:\Users\(2", r"D:\新"),
        (r"/b\ c 2", "/n"),
    ] {
        let rewriter = rewriter(&[(old, new)]);
        let (out, _) = run(&rewriter, TextKind::Other, old);
        assert_eq!(out, new);
        let json = |path: &str| format!("{{\"cwd\": \"{}\"}}", path.replace('\\', r"\\"));
        let (out, _) = run(&rewriter, TextKind::Json, &json(old));
        assert_eq!(out, json(new));
        // However it is written: what the slow way finds.
        for text in [
            old.replace('\\', "/"),
            old.replace('\\', r"\\")
                .replace(" 2", r"\ 2")
                .replace("(2", r"\(2"),
            old.replace('\\', "/")
                .replace(" 2", r"\ 2")
                .replace("(2", r"\(2"),
            old.replace('\\', "/")
                .replace(" 2", r"\\ 2")
                .replace("(2", r"\\(2"),
            old.replace('\\', r"\/").replace(" 2", r"\u00202"),
        ] {
            let (out, found) = run(&rewriter, TextKind::Other, &text);
            let (slowly, references, doubtful) =
                oracle::oracle(&rewriter, TextKind::Other, text.as_bytes());
            assert_eq!(out.as_bytes(), slowly, "{text}");
            assert_eq!(oracle::places(&found), (references, doubtful), "{text}");
        }
    }
}
