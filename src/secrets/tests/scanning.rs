//! Where a secret may stand, and how it is told.

use super::*;
use crate::secrets::Allowed;

#[test]
fn place_and_words() {
    let token = github();
    let found = scan(format!("first\n密钥在 {token}\n"));
    assert_eq!(found.len(), 1);
    let found = &found[0];
    assert_eq!((found.line, found.column), (2, 5));
    assert_eq!(found.rule, "github-token");
    assert_eq!(found.description, "GitHub token");
    assert_eq!(found.shown, format!("ghp_…{}", &token[38..]));
    let json = serde_json::to_value(found).unwrap();
    let keys: Vec<&String> = json.as_object().unwrap().keys().collect();
    assert_eq!(
        keys,
        ["rule", "description", "line", "column", "shown", "digest"]
    );
    assert!(!json.to_string().contains(&token));
}

/// What a program printed in colour, what stands in an address or in a name: everyday text of a session.
#[test]
fn colours_and_names_hide_nothing() {
    let token = github();
    for text in [
        format!("\u{1b}[32m{token}\u{1b}[0m\n"),
        format!("{{\"o\": \"\\u001b[1;32m{token}\\u001b[0m\"}}\n"),
        format!("echo -e '\\033[32m{token}\\x1b[0m'\n"),
        format!("https://x/?token%3D{token}&a=b\n"),
        format!("MY_{token}\n"),
        format!("dump_{token}_old\n"),
    ] {
        let found = scan(&text);
        assert_eq!(found.len(), 1, "{text:?}: {found:?}");
        assert_eq!((found[0].rule.as_str(), found[0].line), ("github-token", 1));
    }
}

#[test]
fn a_key_file_in_a_session() {
    let key = private_key();
    let plain = scan(&key);
    // As a session has it, in one long line, with slashes and dashes escaped as some writers do.
    for text in [
        format!("{{\"a\": \"{}\"}}", key.replace('\n', "\\n")),
        format!(
            "{{\"a\": \"{}\"}}",
            key.replace('\n', "\\r\\n").replace("\\r", "")
        ),
        format!(
            "\n{{\"a\": \"{}\"}}",
            key.replace('/', "\\/").replace('\n', "\\n")
        ),
        format!(
            "{{\"a\": \"{}\"}}",
            key.replace('-', "\\u002d").replace('\n', "\\u000A")
        ),
        format!(
            "{{\"a\": \"{{\\\"b\\\": \\\"{}\\\"}}\"}}",
            key.replace('\n', "\\\\n")
        ),
    ] {
        let found = scan(&text);
        assert_eq!(found.len(), 1, "{found:?} in {text}");
        assert_eq!(found[0].rule, "private-key");
        assert_eq!(found[0].digest, plain[0].digest, "the same secret: {text}");
        let line = text.chars().take_while(|c| *c == '\n').count() as u64 + 1;
        assert_eq!(found[0].line, line);
        // Directly after the line end of the header.
        let begin = &key.lines().nth(1).unwrap()[..8].replace('/', "\\/");
        let at = text.lines().last().unwrap().find(begin).unwrap();
        if !text.contains("\\/") {
            assert_eq!(found[0].column, at as u64 + 1);
        }
    }
}

#[test]
fn a_torn_key_is_a_secret_still() {
    let key = private_key();
    assert_eq!(rules_in(&key[..key.len() - 40]), ["private-key"]);
    // One that goes on for longer than what is looked at first.
    let body = format!("{}\n", random(BASE64, 64)).repeat(200);
    let text = format!("-----BEGIN {} KEY-----\n{body}", "PRIVATE");
    let long = scan(format!("{text}-----END"));
    assert_eq!(long.len(), 1);
    assert_ne!(long[0].digest, scan(&text[..9000])[0].digest);
    let padded = format!("{} {text}", "token ".repeat(1000));
    assert_eq!(scan(format!("{padded}-----END"))[0].digest, long[0].digest);
}

#[test]
fn a_value_in_quotes_that_are_escaped() {
    let secret = random(WORD, 30);
    let plain = scan(format!("\"api_key\": \"{secret}\""));
    let escaped = scan(format!("{{\"x\": \"\\\"api_key\\\": \\\"{secret}\\\"\"}}"));
    assert_eq!(plain.len(), 1);
    assert_eq!(plain[0].digest, escaped[0].digest);
    assert_eq!(escaped[0].column, 23);
    let dashes = format!("\\u0067hp{}{}", "\\u005f", random(WORD, 36));
    assert_eq!(rules_in(dashes), ["github-token"]);
    // In Chinese, escaped.
    assert_eq!(
        rules_in("{\"x\": \"\\u5bc6\\u7801\\uff1aWq7!pLm2x\"}"),
        ["generic-password"]
    );
}

#[test]
fn utf16_is_read() {
    let token = github();
    let text = format!("第一行\n令牌 {token}\n");
    for big in [true, false] {
        let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
        let content: Vec<u8> = units
            .flat_map(|u: u16| {
                if big {
                    u.to_be_bytes()
                } else {
                    u.to_le_bytes()
                }
            })
            .collect();
        let found = scan(content);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].line, found[0].column), (2, 4));
        assert_eq!(found[0].digest, scan(&token)[0].digest);
    }
}

#[test]
fn each_secret_once_in_order() {
    let (a, b) = (github(), format!("sk-{}", random(LOWER_HEX, 32)));
    let text = format!("x\ntoken = \"{b}\"\n{a}\n{b}\nexport TOKEN={a}\n{{\"t\": \"\\n{a}\"}}");
    let found = scan(&text);
    let told: Vec<_> = found.iter().map(|f| (f.rule.as_str(), f.line)).collect();
    assert_eq!(told, [("sk-key", 2), ("github-token", 3)]);
}

/// The vague rule saw it first, the one that knows it saw it later: one finding, by the better name.
#[test]
fn the_best_rule_names_it() {
    let key = random(WORD, 32);
    let text = format!("token: {key}\nSecretKey: {key}\n");
    let found = scan(&text);
    assert_eq!(found.len(), 1);
    assert_eq!(
        (found[0].rule.as_str(), found[0].line),
        ("tencent-secret-key", 1)
    );
}

#[test]
fn allowed_ones_are_told_by_digest() {
    let found = scan(github());
    let allowed = Allowed::new(&[found[0].digest.to_uppercase()]).unwrap();
    assert!(allowed.allows(&found[0]));
    let other = scan(format!("sk-{}", random(LOWER_HEX, 32)));
    assert!(!allowed.allows(&other[0]));
    for bad in ["", "abc", "g0000000000000000000000000000000", "\x1b[2J"] {
        let error = Allowed::new(&[found[0].digest.clone(), bad.into()]).unwrap_err();
        let told = error.to_string();
        assert!(
            told.contains("[secrets] allow") && !told.contains('\x1b'),
            "{told}"
        );
        assert!(error.hints()[0].contains("32 hex digits"));
    }
}

/// The digest is the format of a home: what a person has allowed must stay allowed.
#[test]
fn the_digest_of_a_known_secret() {
    let found = scan(format!("https://me:{}@a.org", "Wq7!pLm2"));
    let whole = blake3::hash(b"basic-auth-url\0Wq7!pLm2").to_string();
    assert_eq!(found[0].digest, whole[..32]);
}

#[test]
fn ordinary_session_text_is_quiet() {
    for text in [
        r#"{"usage": {"input_tokens": 1234, "output_tokens": 87, "cache_read_input_tokens": 120034}}"#,
        r#"{"type":"message","id":"msg_01XFDUDYJgAACzvnptvVoYEL","sessionId":"0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d"}"#,
        "fn token(&self) -> Token { let token = self.tokens.next_token2(); token }",
        "const password = document.getElementById('password2').value;",
        "passwd:x:1000:1000::/home/me:/bin/bash  PWD=/home/me/project1/src OLDPWD=/tmp/x2",
        "commit 3f2a1b0c9d8e7f6a5b4c3d2e1f0a9b8c7d6e5f4a  sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "请在设置里填写密码：至少8位，包含字母。 token 的作用是标识用户身份，见第2章",
        "export OPENAI_API_KEY=$MY_KEY; api_key=os.getenv(\"OPENAI_API_KEY_2\") token: ${{ secrets.GITHUB_TOKEN }}",
        "<input type=\"password\" name=\"password\" placeholder=\"password: 12 characters\">",
        "int login(const char *user, password: *const u8, secret: &SomeTypeOfSecret) http://a:abc@x.org",
        "npm WARN deprecated; task-1234567 disk-usage risk-assessment mask-image-1 asking for sk-",
    ] {
        assert!(scan(text).is_empty(), "{:?} in {text}", scan(text));
        let json = serde_json::to_string(text).unwrap();
        assert!(scan(&json).is_empty(), "{:?} in {json}", scan(&json));
    }
}

/// Found in what agents read: manuals, licences, sources.
#[test]
fn what_everybody_may_know_is_quiet() {
    for text in [
        "and:\n\n  cvs://:pserver:anoncvs@sources.redhat.com:/cvs/src",
        "ftp://anonymous:anonymous@ftp.gnu.org/gnu",
        "#!/bin/sh\necho machine a.org login username password password\n",
        "[\"machine a login b password \",\n\"more\"]",
    ] {
        let mut text = text.to_owned();
        for layer in 0..4 {
            assert!(
                scan(&text).is_empty(),
                "layer {layer}: {:?} in {text}",
                scan(&text)
            );
            text = serde_json::to_string(&text).unwrap();
        }
    }
}

/// What follows a password in a string inside a string is not a part of it.
#[test]
fn a_netrc_is_the_same_however_deep_it_stands() {
    let plain = format!("machine a.org login me {} Wq7pLm2\n", "password");
    let digest = scan(&plain)[0].digest.clone();
    let mut text = plain;
    for _ in 0..4 {
        let found = scan(&text);
        assert_eq!((found.len(), &found[0].digest), (1, &digest), "{text}");
        text = serde_json::to_string(&text).unwrap();
    }
}

/// One line of megabytes, full of what almost matches.
#[test]
fn a_long_line_takes_no_longer_than_many() {
    let parts = [
        "token=",
        "\\\"password\\\": \\\"",
        "://a:b",
        "-----BEGIN PRIVATE KEY-----\\n",
        "sk-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
        "eyJaaaaaaaaaaaa.eyJ",
        "\\\\",
        "machine a login ",
    ];
    for part in parts {
        let started = std::time::Instant::now();
        scan(part.repeat((2 << 20) / part.len()));
        // Seconds in an unoptimised build; a quadratic search would take hours.
        assert!(started.elapsed().as_secs() < 60, "{part}");
    }
    let mixed = parts.concat().repeat(20_000);
    scan(mixed);
}
