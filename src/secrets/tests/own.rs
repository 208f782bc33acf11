//! A person's own rules.

use super::*;
use crate::base::{Error, Result};

fn load(text: &str) -> Result<Rules> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("规则.toml");
    std::fs::write(&path, text).unwrap();
    Rules::load(Some(&path))
}

fn found(rules: &Rules, path: &str, text: &str) -> Vec<String> {
    let matches = rules.scan(Path::new(path), text.as_bytes());
    matches.into_iter().map(|m| m.rule).collect()
}

fn refused(text: &str) -> Error {
    load(text)
        .err()
        .unwrap_or_else(|| panic!("accepted: {text}"))
}

#[test]
fn they_add_to_ours() {
    let rules = load(
        r#"
        title = "ours"
        [[rules]]
        id = "staff-number"
        description = "工号"
        regex = '''(?i)staff[-_ ]no\W{1,3}([0-9]{6})\b'''
        keywords = ["Staff"]
        "#,
    )
    .unwrap();
    let text = format!("STAFF NO: 440123\n{}", github());
    assert_eq!(found(&rules, "x", &text), ["staff-number", "github-token"]);
    let first = &rules.scan(Path::new("x"), text.as_bytes())[0];
    assert_eq!(
        (first.description.as_str(), first.shown.as_str()),
        ("工号", "4…")
    );
    assert_eq!(first.column, 11, "the group is the secret");
}

/// As gitleaks does: the keyword is anywhere in the file, or there is none.
#[test]
fn a_keyword_may_be_far_away() {
    let far = "x".repeat(10_000);
    let rules = "[[rules]]\nid = \"a\"\nregex = 'ticket-[0-9]{4}'\nkeywords = [\"intern\"]\n\
                 [[rules]]\nid = \"b\"\nregex = 'plain-[0-9]{4}'\n";
    let rules = load(rules).unwrap();
    assert_eq!(
        found(&rules, "x", &format!("ticket-1234 {far} intern plain-4321")),
        ["a", "b"]
    );
    assert_eq!(found(&rules, "x", "ticket-1234 plain-4321"), ["b"]);
}

#[test]
fn ours_may_be_left_out() {
    let both = format!("{} https://me:Wq7!pLm2@a.org", github());
    let none = load("[extend]\nuseDefault = false\n").unwrap();
    assert!(found(&none, "x", &both).is_empty());
    let one = load("[extend]\nuseDefault = true\ndisabledRules = [\"basic-auth-url\"]\n").unwrap();
    assert_eq!(found(&one, "x", &both), ["github-token"]);
}

/// A rule with the id of one of ours changes what it says, and keeps the rest.
#[test]
fn one_of_ours_may_be_changed() {
    let token = github();
    let text = format!(
        "[[rules]]\nid = \"github-token\"\ndescription = \"ours\"\n[[rules.allowlists]]\nstopwords = [\"{}\"]\n",
        &token[10..18].to_uppercase()
    );
    let rules = load(&text).unwrap();
    assert!(found(&rules, "x", &token).is_empty());
    let other = format!("gh{}_{}", "o", random(WORD, 37));
    let matches = rules.scan(Path::new("x"), other.as_bytes());
    assert_eq!(
        (matches[0].rule.as_str(), matches[0].description.as_str()),
        ("github-token", "ours")
    );
}

#[test]
fn allowlists_allow_what_they_say() {
    let token = github();
    let base = "[[rules]]\nid = \"t\"\nregex = 'id=([a-z0-9]{4,8})'\n";
    let with = |list: &str| load(&format!("{base}{list}")).unwrap();
    let t =
        |rules: &Rules, path: &str, text: &str| found(rules, path, text).contains(&"t".to_owned());

    let rules = with("[rules.allowlist]\nregexes = ['^a']\n");
    assert!(!t(&rules, "x", "id=abcd") && t(&rules, "x", "id=bacd"));
    let rules = with("[[rules.allowlists]]\nregexTarget = \"match\"\nregexes = ['^id=b']\n");
    assert!(t(&rules, "x", "id=abcd") && !t(&rules, "x", "id=bacd"));
    let rules = with("[[rules.allowlists]]\nregexTarget = \"line\"\nregexes = ['^ok .* fine$']\n");
    assert!(!t(&rules, "x", "no\nok id=abcd fine\nno") && t(&rules, "x", "ok\nid=abcd fine"));
    let rules = with("[[rules.allowlists]]\nstopwords = [\"TEST\"]\n");
    assert!(!t(&rules, "x", "id=atest1") && t(&rules, "x", "test id=abcd"));
    let rules = with("[[rules.allowlists]]\npaths = ['(^|/)docs/']\n");
    assert!(!t(&rules, "a/docs/x", "id=abcd") && t(&rules, "a/x", "id=abcd"));
    let rules =
        with("[[rules.allowlists]]\ncondition = \"AND\"\npaths = ['^docs/']\nregexes = ['^a']\n");
    assert!(!t(&rules, "docs/x", "id=abcd"));
    assert!(t(&rules, "docs/x", "id=bacd") && t(&rules, "x", "id=abcd"));

    // For all rules, for some, and for whole files.
    let both = format!("id=abcd {token}");
    let rules = with("[[allowlists]]\ntargetRules = [\"t\"]\nregexes = ['.']\n");
    assert_eq!(found(&rules, "x", &both), ["github-token"]);
    let rules = with("[allowlist]\npaths = ['^docs/']\n");
    assert!(found(&rules, "docs/x", &both).is_empty());
    assert_eq!(found(&rules, "x", &both), ["t", "github-token"]);
}

#[test]
fn a_path_limits_a_rule_or_is_the_secret() {
    let rules = load(
        "[[rules]]\nid = \"a\"\nregex = '[0-9]{4}'\npath = '\\.env$'\n\
         [[rules]]\nid = \"key-file\"\ndescription = \"key store\"\npath = '(?i)\\.(p12|jks)$'\n",
    )
    .unwrap();
    assert_eq!(found(&rules, "a/.env", "1234"), ["a"]);
    assert!(found(&rules, "a/x", "1234").is_empty());
    assert_eq!(found(&rules, "密/A.P12", "\0\0"), ["key-file"]);
    let one = &rules.scan(Path::new("A.P12"), b"")[0];
    assert_eq!((one.line, one.shown.as_str()), (1, "the whole file"));
    assert_ne!(one.digest, rules.scan(Path::new("B.P12"), b"")[0].digest);
}

#[test]
fn entropy_and_groups() {
    let rules = load(
        "[[rules]]\nid = \"a\"\nregex = '(k|id)=([a-z]{8})'\nsecretGroup = 2\nentropy = 2.5\n",
    )
    .unwrap();
    assert_eq!(found(&rules, "x", "id=abcdefgh"), ["a"]);
    assert!(found(&rules, "x", "id=aaaabbbb").is_empty());
    assert_eq!(rules.scan(Path::new("x"), b"id=abcdefgh")[0].column, 4);
}

#[test]
fn a_regex_is_ascii_unless_it_can_not_be() {
    let rules = load(
        "[[rules]]\nid = \"a\"\nregex = '[密钥]{2}=\\w{4}'\n[[rules]]\nid = \"b\"\nregex = 'b=\\w+;'\n",
    )
    .unwrap();
    assert_eq!(found(&rules, "x", "密钥=甲乙丙丁"), ["a"]);
    assert_eq!(found(&rules, "x", "b=ab; b=甲;"), ["b"]);
}

#[test]
fn what_makes_no_sense_is_refused_with_its_line() {
    let rule = "[[rules]]\nid = \"mine\"\n";
    for (text, line, why) in [
        ("x = [", 1, ""),
        ("\nrulez = 1\n", 2, "rulez"),
        (&format!("{rule}regx = 'a'\n"), 3, "regx"),
        (&format!("{rule}regex = 1\n"), 3, "string"),
        (
            &format!("{rule}\nregex = '(a'\n"),
            4,
            "the rule \"mine\": a regex that can not be read",
        ),
        (&format!("{rule}regex = '(?=a)'\n"), 3, "look-around"),
        (rule, 1, "neither `regex` nor `path`"),
        ("[[rules]]\nregex = 'a'\n", 1, "a rule without `id`"),
        (
            &format!("{rule}regex = 'a'\n{rule}regex = 'b'\n"),
            5,
            "a second rule \"mine\"",
        ),
        (
            &format!("{rule}regex = '(a)'\nsecretGroup = 2\n"),
            4,
            "`secretGroup` 2, and the regex has 1",
        ),
        (
            &format!("{rule}regex = 'a'\nkeywords = [\"a\", \"\"]\n"),
            4,
            "empty keyword",
        ),
        (&format!("{rule}regex = 'a'\npath = '['\n"), 4, "regex"),
        (
            &format!("{rule}regex = 'a'\nskipReport = true\n"),
            4,
            "`skipReport` has no meaning here",
        ),
        (
            &format!("{rule}regex = 'a'\n[[rules.required]]\nid = \"b\"\n"),
            4,
            "`required` has no meaning here",
        ),
        (
            &format!("{rule}regex = 'a'\n[[rules.allowlists]]\ncommits = [\"a\"]\n"),
            5,
            "`commits`",
        ),
        (
            &format!("{rule}regex = 'a'\n[[rules.allowlists]]\n"),
            4,
            "allows nothing",
        ),
        (
            &format!("{rule}regex = 'a'\n[[rules.allowlists]]\nregexes = ['(']\n"),
            5,
            "the rule \"mine\"",
        ),
        (
            "[[allowlists]]\ncondition = \"XOR\"\npaths = ['a']\n",
            2,
            "`condition`",
        ),
        (
            "[[allowlists]]\nregexTarget = \"file\"\nregexes = ['a']\n",
            2,
            "`regexTarget`",
        ),
        (
            "[[allowlists]]\nstopwords = [\"\"]\n",
            2,
            "empty text in `stopwords`",
        ),
        (
            "[[allowlists]]\ntargetRules = [\"a\"]\npaths = ['a']\n",
            2,
            "`targetRules` names \"a\"",
        ),
        (
            "[extend]\ndisabledRules = [\"git-hub\"]\n",
            2,
            "`disabledRules` names \"git-hub\"",
        ),
        (
            "[extend]\npath = \"base.toml\"\n",
            2,
            "`extend.path` has no meaning here",
        ),
        (
            "[extend]\nurl = \"https://a.org\"\n",
            2,
            "`extend.url` has no meaning here",
        ),
    ] {
        let error = refused(text);
        let told = error.to_string();
        assert!(
            told.starts_with(&format!("line {line}: ")),
            "{told}\n{text}"
        );
        assert!(told.contains(why), "{told}\n{text}");
        assert!(told.ends_with("规则.toml"), "{told}");
        assert!(!error.hints().is_empty(), "{told}");
        assert!(!told.contains('\n'), "{told}");
    }
}

#[test]
fn a_file_that_can_not_be_read_is_named() {
    let missing = Rules::load(Some(Path::new("/nowhere/rules.toml"))).unwrap_err();
    assert!(missing.to_string().contains("/nowhere/rules.toml"));
    assert!(missing.hints()[0].contains("wbhome.toml"));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("r.toml");
    std::fs::write(&path, b"title = \"a\"\n# \xff\n").unwrap();
    let told = Rules::load(Some(&path)).unwrap_err().to_string();
    assert!(told.starts_with("line 2 is not UTF-8"), "{told}");
    assert!(Rules::load(Some(folder.path())).is_err());
}

/// A list of ten thousand names takes no longer than it has to, nor the memory of a table for each letter of it.
#[test]
fn megabytes_of_keywords_are_searched_for() {
    let words: Vec<String> = (0..300_000).map(|n| format!("\"名{n:07}\"")).collect();
    let text = format!(
        "[extend]\nuseDefault = false\n[[rules]]\nid = \"names\"\nregex = \"名[0-9]+\"\nkeywords = [{}]\n",
        words.join(",")
    );
    let rules = load(&text).unwrap();
    assert_eq!(
        found(&rules, "a", "x 名0000001 名0299999"),
        ["names", "names"]
    );
}
