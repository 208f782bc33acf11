//! Kinds of text and what is around them: JSON fields, escapes that NEW needs, UTF-16, holes, links, binary data,
//! other roots, refused mappings.

use super::*;

#[test]
fn what_new_needs_is_escaped_where_it_stands() {
    let rewriter = rewriter(&[
        ("/a/b", "/n \"q\"\\w"),
        ("/s p", "/it's (x)\"$"),
        ("/p/q", r"C:\w"),
    ]);
    let cases = [
        (
            TextKind::Json,
            r#"{"p": "/a/b/x"}"#,
            r#"{"p": "/n \"q\"\\w/x"}"#,
        ),
        (
            TextKind::Json,
            r#"{"j": "{\"p\": \"/a/b\"}"}"#,
            r#"{"j": "{\"p\": \"/n \\\"q\\\"\\\\w\"}"}"#,
        ),
        (
            TextKind::Json,
            r#"{"j": "{\"j\":\"{\\\"p\\\":\\\"/a/b\\\"}\"}"}"#,
            r#"{"j": "{\"j\":\"{\\\"p\\\":\\\"/n \\\\\\\"q\\\\\\\"\\\\\\\\w\\\"}\"}"}"#,
        ),
        (TextKind::Other, "x /a/b/x", "x /n \"q\"\\w/x"),
        (TextKind::Other, "k: \"/a/b\"", "k: \"/n \\\"q\\\"\\\\w\""),
        (TextKind::Other, r"cd /s\ p/x", r#"cd /it\'s\ \(x\)\"\$/x"#),
        (
            TextKind::Json,
            r#""cd /s\\ p/x""#,
            r#""cd /it\\'s\\ \\(x\\)\\\"\\$/x""#,
        ),
        (TextKind::Other, "cd '/s p'", r#"cd '/it'\''s (x)"$'"#),
        (
            TextKind::Json,
            r#""cd '/s p'""#,
            r#""cd '/it'\\''s (x)\"$'""#,
        ),
        (
            TextKind::Json,
            r#"["/p/q/x", "\/p\/q", "{\"p\":\"/p/q\"}"]"#,
            r#"["C:\\w/x", "C:\\w", "{\"p\":\"C:\\\\w\"}"]"#,
        ),
        (
            TextKind::Other,
            "/p/q file:///p/q/x",
            "C:\\w file:///C:/w/x",
        ),
        (TextKind::Other, "file:///s%20p", "file:///it's%20(x)%22$"),
        (
            TextKind::Json,
            r#""\u002fs\u0020p\u002f""#,
            r#""\u002fit's\u0020(x)\"$\u002f""#,
        ),
    ];
    for (kind, input, expected) in cases {
        let (out, _) = run(&rewriter, kind, input);
        assert_eq!(out, expected, "{input}");
        if kind == TextKind::Json {
            serde_json::from_str::<serde_json::Value>(&out).expect("still JSON");
        }
    }
    let odd = super::rewriter(&[("/o\"d/x\\y", "/n\"/z")]);
    assert_eq!(
        run(
            &odd,
            TextKind::Json,
            r#"["/o\"d/x\\y", "{\"p\":\"/o\\\"d/x\\\\y/1\"}"]"#
        )
        .0,
        r#"["/n\"/z", "{\"p\":\"/n\\\"/z/1\"}"]"#
    );
    assert_eq!(run(&odd, TextKind::Other, "/o\"d/x\\y/1").0, "/n\"/z/1");
}

fn fields() -> Rewriter {
    with(
        &[("/a/b", "/n")],
        Options {
            fields_only: true,
            ..Options::default()
        },
    )
}

#[test]
fn only_fields_that_identify_a_place() {
    let cases = [
        (
            r#"{"cwd":"/a/b","content":"/a/b","path" : "/a/b/x"}"#,
            r#"{"cwd":"/n","content":"/a/b","path" : "/n/x"}"#,
            1,
        ),
        (
            r#"{"cwds":["/a/b",["/a/b"],{"x":"/a/b","file_path":"/a/b"}],"text":["/a/b"]}"#,
            r#"{"cwds":["/n",["/n"],{"x":"/a/b","file_path":"/n"}],"text":["/a/b"]}"#,
            2,
        ),
        (
            r#"{"/a/b":1,"path":{"text":"/a/b"},"a":"x","workspaceRoot":"\/a\/b"}"#,
            r#"{"/a/b":1,"path":{"text":"/a/b"},"a":"x","workspaceRoot":"\/n"}"#,
            2,
        ),
        (
            r#"{"arguments":"{\"workdir\":\"/a/b\",\"command\":\"ls /a/b\"}"}"#,
            r#"{"arguments":"{\"workdir\":\"/n\",\"command\":\"ls /a/b\"}"}"#,
            1,
        ),
        (r#""/a/b" ["/a/b"]"#, r#""/a/b" ["/a/b"]"#, 2),
        (
            r#"{"say":"a \"quoted, \\\" \"","cwd":"/a/b"}{"x":"/a/b"}"#,
            r#"{"say":"a \"quoted, \\\" \"","cwd":"/n"}{"x":"/a/b"}"#,
            1,
        ),
        (
            "{\"a\":\"torn /a/b\n{\"cwd\":\"/a/b\"}",
            "{\"a\":\"torn /a/b\n{\"cwd\":\"/n\"}",
            1,
        ),
        (
            "{\"cwd\":\"torn\0\0\0{\"cwd\":\"/a/b\",\"x\":\"/a/b\"}",
            "{\"cwd\":\"torn\0\0\0{\"cwd\":\"/n\",\"x\":\"/a/b\"}",
            1,
        ),
    ];
    for (input, expected, left) in cases {
        let (out, found) = run(&fields(), TextKind::JsonLines, input);
        assert_eq!((out.as_str(), found.left), (expected, left), "{input}");
    }
    let (out, found) = run(&fields(), TextKind::Other, "cwd: /a/b /a/b的");
    assert_eq!(
        (out.as_str(), found.left, found.doubtful.len()),
        ("cwd: /a/b /a/b的", 1, 1)
    );
    for key in [
        "source_cwd",
        "filePath",
        "targetURI",
        "root_dir",
        "basedir",
        "paths",
        "directories",
        "file-path",
        "homes",
    ] {
        assert!(super::super::fields::is_place(key.as_bytes()), "{key}");
    }
    for key in [
        "content",
        "text",
        "command",
        "profile_name",
        "xpath",
        "",
        "cwdx",
        "thome",
    ] {
        assert!(!super::super::fields::is_place(key.as_bytes()), "{key}");
    }
}

fn utf16(text: &str, big: bool) -> Vec<u8> {
    let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
    units
        .flat_map(|u| {
            if big {
                u.to_be_bytes()
            } else {
                u.to_le_bytes()
            }
        })
        .collect()
}

#[test]
fn utf16_keeps_every_unit() {
    let rewriter = rewriter(&[(OLD, "/家😀")]);
    for (kind, big) in [(TextKind::Utf16Le, false), (TextKind::Utf16Be, true)] {
        let text = |path: &str| {
            let mut bytes = utf16(&format!("😀é见{path}/x\r\n{path}的 \"{path}\""), big);
            let lone: [u8; 2] = if big { [0xD8, 0x01] } else { [0x01, 0xD8] };
            bytes.extend(lone.repeat(2));
            bytes.push(7);
            bytes
        };
        let (out, found) = run_bytes(&rewriter, kind, &text(OLD));
        let expected = text("/家😀");
        let doubtful: Vec<u8> = utf16(&format!("{OLD}的"), big)[2..].to_vec();
        let replaced: Vec<u8> = utf16("/家😀的", big)[2..].to_vec();
        let at = memchr::memmem::find(&expected, &replaced).expect("it is there");
        let expected = [&expected[..at], &doubtful, &expected[at + replaced.len()..]].concat();
        assert_eq!(out, expected);
        let width = u32::try_from(OLD.encode_utf16().count() * 2).expect("short");
        assert_eq!(
            (found.references[0].offset, found.references[0].len),
            (2 + 2 * 4, width)
        );
        assert_eq!((found.references.len(), found.doubtful.len()), (2, 1));
        assert_eq!(found.doubtful[0].offset, 10 + u64::from(width) + 2 * 4);
    }
}

#[test]
fn a_hole_is_a_boundary_and_moves_offsets() {
    let rewriter = rewriter(&[("/a/b", "/n")]);
    for kind in [TextKind::Other, TextKind::Utf16Le] {
        let encode = |text: &str| match kind {
            TextKind::Other => text.as_bytes().to_vec(),
            _ => utf16(text, false)[2..].to_vec(),
        };
        let size = encode("x").len() as u64;
        let mut out = Vec::new();
        let mut stream = rewriter.stream(kind);
        stream.push(&encode("x/a/b /a/b"), &mut out);
        stream.zeros(4096, &mut out);
        assert_eq!(out, encode("x/a/b /n"));
        stream.push(&encode("/a/b."), &mut out);
        stream.zeros(0, &mut out);
        stream.push(&encode("x /a/b"), &mut out);
        stream.finish(&mut out);
        assert_eq!(out, encode("x/a/b /n/a/b.x /n"));
        let offsets: Vec<u64> = stream.drain().references.iter().map(|r| r.offset).collect();
        assert_eq!(offsets, [6 * size, 10 * size + 4096 + 7 * size]);
    }
    // A hole that begins in the middle of a unit.
    let mut out = Vec::new();
    let mut stream = rewriter.stream(TextKind::Utf16Le);
    stream.push(b"x\0y", &mut out);
    stream.zeros(2, &mut out);
    stream.push(b"\x01/\0a\0/\0b\0", &mut out);
    stream.finish(&mut out);
    assert_eq!(out, b"x\0y\x01/\0n\0");
    assert_eq!(stream.drain().references[0].offset, 6);
}

#[test]
fn links_are_exactly_old_or_below() {
    let rewriter = rewriter(&[("/a/b", "/n"), ("/a/b/c", "/m"), (r"C:\x", r"D:\y")]);
    let cases: &[(&[u8], Option<&[u8]>)] = &[
        (b"/a/b", Some(b"/n")),
        (b"/a/b/", Some(b"/n/")),
        (b"/a/b/c/\xFF", Some(b"/m/\xFF")),
        (b"/a/b (1)/x", None),
        (b"/a/b\xE7\x9A\x84", None),
        (b"/a/bc", None),
        (b"a/b", None),
        (b"../a/b", None),
        (b"/x/a/b", None),
        (b"/mnt/c/x/1", Some(b"/mnt/d/y/1")),
        (b"c:\\x\\1", Some(b"d:\\y\\1")),
        (b"", None),
    ];
    for (target, expected) in cases {
        assert_eq!(
            rewriter.link_target(target).map(|(_, new)| new).as_deref(),
            *expected
        );
    }
}

#[test]
fn binary_data_is_counted_in_any_spelling() {
    let rewriter = rewriter(&[(OLD, NEW)]);
    let mut data = vec![0xFF; 70_000];
    let mut expected = 0;
    for way in WAYS {
        data.extend_from_slice(b"\x00\xC3");
        data.extend_from_slice(way.write(OLD).as_bytes());
        data.extend_from_slice(b"\xA0x\0");
        data.extend_from_slice(way.write(OLD).as_bytes());
        data.extend_from_slice(b"2\0");
        expected += 1;
    }
    // Columns of a database touch; a longer path is one there, too.
    data.extend_from_slice(format!("\0id-7{OLD}/x\0/Volumes/Backup{OLD}/x\0").as_bytes());
    expected += 1;
    for size in [1, 13, 100_000] {
        let mut scan = rewriter.scan_binary();
        data.chunks(size).for_each(|chunk| scan.push(chunk));
        assert_eq!(scan.count(), expected);
    }
}

#[test]
fn classes() {
    use TextKind::*;
    let text = Content::Text;
    let cases: &[(&[u8], &[u8], Content)] = &[
        (b"a.json", b"\0\0\0", text(Json)),
        (b"a.JSONL", b"{}\0", text(JsonLines)),
        (b"dir/a.md", b"x\0y", text(Other)),
        (b"a.log", b"\x1b[0m x\n\0\0\0\0y\x07", text(Other)),
        (
            b"000003.log",
            b"\x9a\x12\xc3\x88\x2a\0\x01\x02\0\0\0\0\0\0\0/a/b",
            Content::Binary,
        ),
        (b"a.db", b"SQLite format 3\0x", Content::Binary),
        (b"a.json", b"SQLite format 3\0x", Content::Binary),
        (b"a.bin", b"x\0y", Content::Binary),
        (b"config", b"[core]\n", text(Other)),
        (b"lock", b"{\"pid\": 1}", text(Json)),
        (b"history", b"{\"a\":1}\n{\"b\":2}\n", text(JsonLines)),
        (b"a.txt", b"\xFF\xFEa\0b\0", text(Utf16Le)),
        (b"a", b"\xFE\xFF\0a\0b", text(Utf16Be)),
        (b"a", b"\xFF\xFE\0\0a\0\0\0", Content::Binary),
        (b"", b"", text(Other)),
        (b"turn.json", b"", text(Json)),
    ];
    for (name, head, expected) in cases {
        assert_eq!(
            classify(name, head),
            *expected,
            "{}",
            String::from_utf8_lossy(name)
        );
    }
}

#[test]
fn other_roots_with_known_sessions() {
    let options = Options {
        known_ids: vec!["s1".into(), "2024_数据".into()],
        ..at_home()
    };
    let rewriter = with(&[("/a/b", "/n"), ("/Users/me/d", "/m")], options);
    let cases: &[(&str, &[(&str, u64)])] = &[
        (
            "x /Volumes/Old Disk/wb/sessions/s1/a.md and /Volumes/Old Disk/wb/sessions/s1",
            &[("/Volumes/Old Disk/wb", 2)],
        ),
        (
            r#"{"cwd":"\/v\/w\/sessions\/2024_\u6570\u636e\/x"}"#,
            &[("/v/w", 1)],
        ),
        (
            "file:///v%20x/w/sessions/2024_%E6%95%B0%E6%8D%AE/a",
            &[("/v x/w", 1)],
        ),
        (r"cd /v\ x/w/sessions/s1", &[("/v x/w", 1)]),
        (
            r#""C:\\Users\\nobody\\wb\\sessions\\s1""#,
            &[(r"C:\Users\nobody\wb", 1)],
        ),
        (
            "/c:/x/sessions/s1 ~/old/sessions/s1. $HOME/old/sessions/s1",
            &[("c:/x", 1), ("~/old", 2)],
        ),
        ("在/q/w/sessions/s1里", &[]),
        ("在/q/w/sessions/s1，", &[("/q/w", 1)]),
        ("cp /x/y /q/sessions/s1", &[("/q", 1)]),
        (
            "/a/b (1)/sessions/s1 /a/b/sessions/s1 /n/sessions/s1 ~/d/sessions/s1",
            &[("/a/b (1)", 1)],
        ),
        (
            "/v/sessions/s2\nv/sessions/s1\n./v/sessions/s1 v/sessions/s1 /v/mysessions/s1 https://h.org/sessions/s1",
            &[],
        ),
        ("see\\n/v/w/sessions/s1\\n", &[("/v/w", 1)]),
    ];
    for (input, expected) in cases {
        let (_, found) = run(&rewriter, TextKind::Other, input);
        let expected = expected
            .iter()
            .map(|(p, n)| ((*p).to_owned(), *n))
            .collect();
        assert_eq!(found.foreign, expected, "{input}");
    }
}

#[test]
fn refused_mappings() {
    let refused = |old: &str, new: &str| {
        let mapping = Mapping {
            old: old.into(),
            new: new.into(),
        };
        Rewriter::new(vec![mapping], Options::default()).expect_err("it is refused")
    };
    assert!(matches!(refused("", "/n"), MappingError::Empty));
    assert!(matches!(refused("a/b", "/n"), MappingError::NotAbsolute(_)));
    assert!(matches!(refused("/a", "n"), MappingError::NotAbsolute(_)));
    assert!(matches!(refused("/", "/n"), MappingError::Root(_)));
    assert!(matches!(refused("C:\\", "/n"), MappingError::Root(_)));
    assert!(matches!(refused("/a", "/"), MappingError::Root(_)));
    assert!(matches!(refused("/a\0", "/n"), MappingError::Nul(_)));
    assert!(matches!(refused("~/a", "/n"), MappingError::NotAbsolute(_)));
    let two = ["/n", "/m"].map(|new| Mapping {
        old: "/a/".into(),
        new: new.into(),
    });
    assert!(matches!(
        Rewriter::new(two.to_vec(), Options::default()),
        Err(MappingError::Conflict { .. })
    ));
    let same = ["/a", "/a/"].map(|old| Mapping {
        old: old.into(),
        new: "/n".into(),
    });
    assert_eq!(
        Rewriter::new(same.to_vec(), Options::default()).map(|r| r.mappings().len()),
        Ok(1)
    );
    let none = Rewriter::new(Vec::new(), Options::default()).expect("nothing to do is fine");
    assert_eq!(run(&none, TextKind::Other, "/a/b").0, "/a/b");
}

#[test]
fn shared_by_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Rewriter>();
}
