//! What each command looks like: on a terminal of 80 columns, on a small and on a wide one, with colour and without,
//! piped, and as JSON. The snapshots are there to be read; the rules hold for every command.

#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_macros,
    clippy::unwrap_used,
    clippy::panic,
    reason = "it lays out folders, and says what does not fit"
)]

mod support;

use insta::assert_snapshot;
use support::lived_in::{API, CRAWLER, DATA, EMOJI, GONE, LONG, OLD, REMOVED};
use support::{Place, Ran, moving};
use unicode_width::UnicodeWidthStr;

/// Commands as a person types them, separated by blanks.
fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

/// What a person sees of commands on a terminal of so many columns, without colour, each below what was typed.
fn seen(place: &Place, columns: u16, lines: &[&str]) -> String {
    let mut out = String::new();
    for line in lines {
        let shown = drawn(
            place,
            columns,
            &[],
            &[&words(line)[..], &["--color=never"]].concat(),
        );
        out.push_str(&format!("$ {line}\n{}\n", settled(place, &shown)));
    }
    out
}

/// What is drawn on a terminal, where no program is but what the test brings.
fn drawn(place: &Place, columns: u16, env: &[(&str, &str)], args: &[&str]) -> String {
    let bare = place.bare();
    let mut all = vec![("PATH", bare.to_str().unwrap()), ("PAGER", "cat")];
    all.extend(env);
    place.on_terminal_with(columns, &all, args)
}

/// A text without what differs from run to run: where the place is, what git and chance have named, and how much room
/// there is, on what.
fn settled(place: &Place, text: &str) -> String {
    let text = text.replace(place.root().to_str().unwrap(), "[ROOT]");
    let text = text.replace(env!("CARGO_BIN_EXE_wbhome"), "[WBHOME]");
    let mut out = String::new();
    for line in text.split_inclusive('\n') {
        let mut line = without_names(line);
        for (before, after) in [("; ", " are free"), ("room         ", " left")] {
            line = between(&line, before, after);
        }
        if let Some((head, rest)) = line.split_once("Rebuilt in ") {
            let took: String = rest
                .chars()
                .map(|c| if c.is_ascii_digit() { 'x' } else { c })
                .collect();
            line = format!("{head}Rebuilt in {took}");
        }
        if let Some((head, _)) = line.split_once("filesystem   ") {
            line = format!("{head}filesystem   [FILESYSTEM]\n");
        }
        // What the repository, packs and the tool's own files take depends on names by chance.
        let varies = [
            "kB  history",
            "kB  .wbhome",
            "kB  other",
            "kB  together",
            ".git",
            "about",
            "packed",
            "packs",
            "store",
            "to pack",
            "the home itself",
            " new",
            "home  ",
            "whole, ",
        ];
        if varies.iter().any(|name| line.contains(name)) {
            line = without_sizes(&line);
        }
        out.push_str(&line);
    }
    out
}

/// Hexadecimal names, each digit as an `x`: columns stay where they are.
fn without_names(line: &str) -> String {
    let mut out = String::new();
    for word in line.split_inclusive(|c: char| !c.is_ascii_alphanumeric()) {
        let name = word.trim_end_matches(|c: char| !c.is_ascii_alphanumeric());
        let is_name = name.len() >= 7
            && name.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
            && name.len() != 8;
        match is_name {
            true => out.push_str(&word.replace(|c: char| c.is_ascii_alphanumeric(), "x")),
            false => out.push_str(word),
        }
    }
    out
}

/// An `x` for each digit of a size that is more than some bytes.
fn without_sizes(line: &str) -> String {
    let mut rest = line;
    let mut out = String::new();
    while let Some(at) = rest.find(" kB") {
        let number = rest[..at].trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        out.push_str(number);
        let digits = rest[number.len()..at].chars();
        out.extend(digits.map(|c| if c == '.' { c } else { 'x' }));
        out.push_str(" kB");
        rest = &rest[at + 3..];
    }
    out + rest
}

/// With `…` for what stands between two parts.
fn between(line: &str, before: &str, after: &str) -> String {
    let found = line.find(before).map(|at| at + before.len());
    let found = found.and_then(|from| Some((from, from + line[from..].find(after)?)));
    match found {
        Some((from, to)) => format!("{}…{}", &line[..from], &line[to..]),
        None => line.to_owned(),
    }
}

#[test]
fn browsing() {
    let place = Place::lived_in();
    assert_snapshot!(seen(&place, 80, &["ls", "ls -l", "ls --status archived", "ls nothing"]), @r"
    $ ls
    SESSION                                  STATUS    ACTIVE       PROJECT  …
    20240605_api_refactor                    active    3 days ago   -
    20240603_crawler                         active    4 days ago   alpha
    20240607_🚀发布                          active    8 days ago   -
    20240606_quarterly_report_for_the_board  active    9 days ago   alpha
    20240604_数据清洗                        active    11 days ago  -
    20240522_lost                            missing   13 days ago  -
    20240520_pricing                         archived  2 weeks ago  -
    hint: activity and sizes are those of 2 days ago: wbhome index looks again

    $ ls -l
    SESSION                                  STATUS    ACTIVE       TURNS  CONTEXT …
    20240605_api_refactor                    active    3 days ago       3    152 B
    20240603_crawler                         active    4 days ago       3    278 B
    20240607_🚀发布                          active    8 days ago       1     27 B
    20240606_quarterly_report_for_the_board  active    9 days ago       1     27 B
    20240604_数据清洗                        active    11 days ago      2     77 B
    20240522_lost                            missing   13 days ago      -        -
    20240520_pricing                         archived  2 weeks ago      1     27 B
    7 sessions, 295.2 kB
    hint: activity and sizes are those of 2 days ago: wbhome index looks again

    $ ls --status archived
    SESSION           STATUS    ACTIVE       ARCHIVE  TITLE
    20240520_pricing  archived  2 weeks ago    919 B  What the others ask
    hint: activity and sizes are those of 2 days ago: wbhome index looks again

    $ ls nothing
    hint: none of 8 sessions is what was asked for
    hint: activity and sizes are those of 2 days ago: wbhome index looks again
    ");
    assert_snapshot!(seen(&place, 80, &["show crawler", "show 数据", "show pricing", "show crawler/memory", "show crawler/context/turn_003.json", "path 发布"]), @r"
    $ show crawler
    20240603_crawler   active

      project    alpha
      tags       web, prices
      created    2024-06-03 08:00 (12 days ago)
      active     2024-06-11 09:00 (4 days ago)
      turns      3, the last context/turn_003.json
      holds      7 files, 3.5 kB
                 context       278 B   3 files
                 memory         28 B   1 file
                 logs         3.1 kB   2 files
                 other         111 B   1 file
      folder     [ROOT]/me/workbuddy_home/sessions/20240603_crawler
      largest       2.8 kB   logs/agent_run.log-20240608T030000Z
                     260 B   logs/agent_run.log
                     128 B   context/turn_002.json
                     123 B   context/turn_003.json
                     111 B   session.json
      commit     xxxxxxx 2024-06-08 03:00 (7 days ago)
                 7 sessions: +10 turns, 2 memories, 1 artifact, 8 files
      backup     [ROOT]/cold 2024-06-13 03:00 (2 days ago)

    last turns
      turn_002  user      the crawler stops with a timeout after 30 seconds, whatev…
      turn_003  assistant 爬虫在第三页停下来了：timeout 没有传给下载器 🕷️ so I pass…

    $ show 数据
    20240604_数据清洗   active
    五月销售 Sales 📈 cleaned, joined with the returns and checked against the
    ledger

      shared     laptop
      tags       销售
      created    2024-06-04 08:00 (11 days ago)
      active     2024-06-04 09:00 (11 days ago)
      turns      2, the last context/turn_002.json
      holds      6 files, 40.3 kB
                 context       127 B   3 files
                 memory         27 B   1 file
                 artifacts   40.0 kB   1 file
                 other         121 B   1 file
      folder     [ROOT]/me/workbuddy_home/sessions/20240604_数据清洗
      largest      40.0 kB   artifacts/五月销售.csv
                     121 B   session.json
                      50 B   context/turn_002 (1).json
                      50 B   context/turn_002.json
                      27 B   context/turn_001.json
      commit     xxxxxxx 2024-06-08 03:00 (7 days ago)
                 7 sessions: +10 turns, 2 memories, 1 artifact, 8 files
      backup     [ROOT]/cold 2024-06-13 03:00 (2 days ago)

    last turns
      turn_002  user      清洗销售数据

    $ show pricing
    20240520_pricing   archived
    What the others ask

      created    2024-06-01 08:00 (2 weeks ago)
      active     2024-06-01 09:00 (2 weeks ago)
      turns      1, the last context/turn_001.json
      holds      2 files, 138 B
                 context        27 B   1 file
                 other         111 B   1 file
      archive    archive/20240520_pricing.tar.zst, 919 B
                 made 2024-06-08 03:00 (7 days ago), with a digest of each file
      largest        111 B   session.json
                      27 B   context/turn_001.json
      backup     [ROOT]/cold 2024-06-13 03:00 (2 days ago)

    $ show crawler/memory
    28 B  notes.md

    $ show crawler/context/turn_003.json
    turn 3

    assistant
      爬虫在第三页停下来了：timeout 没有传给下载器 🕷️ so I pass it on

    $ path 发布
    [ROOT]/me/workbuddy_home/sessions/20240607_🚀发布
    ");
    assert_snapshot!(seen(&place, 80, &["search timeout", "search timeout -C 1 crawler", "search timeout -l", "search timeout --count", "search nowhere"]), @r"
    $ search timeout
    20240605_api_refactor   3 days ago
      context/turn_002.json  user: raise the timeout

    20240603_crawler   4 days ago
      context/turn_002.json  user: …r stops with a timeout after 30 seconds, whatev…
      context/turn_003.json  assistant: …三页停下来了：timeout 没有传给下载器 🕷️ so…
      memory/notes.md  2: the timeout is 30 s

    20240604_数据清洗   11 days ago   五月销售 Sales 📈 cleaned, joined with the r…
      memory/要点.md  1: 去重；timeout 设为 60

    $ search timeout -C 1 crawler
    20240603_crawler   4 days ago
      context/turn_002.json  user: …r stops with a timeout after 30 seconds, whatev…
      --
      context/turn_003.json  assistant: …三页停下来了：timeout 没有传给下载器 🕷️ so…
      --
      memory/notes.md  1- # Notes
      memory/notes.md  2: the timeout is 30 s

    $ search timeout -l
    20240605_api_refactor/context/turn_002.json
    20240603_crawler/context/turn_002.json
    20240603_crawler/context/turn_003.json
    20240603_crawler/memory/notes.md
    20240604_数据清洗/memory/要点.md

    $ search timeout --count
    20240605_api_refactor   1 line in 1 file
    20240603_crawler   3 lines in 3 files
    20240604_数据清洗   1 line in 1 file
    5 lines in 3 sessions

    $ search nowhere
    hint: 1 archived session was not searched: --archived does
    ");
    assert_snapshot!(seen(&place, 80, &["du --top 4", "du crawler"]), @r"
    $ du --top 4
    SESSION                                       ALL  CONTEXT  MEMORY  ARTIFACTS  …
    20240605_api_refactor                    250.3 kB    164 B       -   250.0 kB
    20240604_数据清洗                         40.3 kB    127 B    27 B    40.0 kB
    20240603_crawler                           3.5 kB    278 B    28 B          -
    20240520_pricing                                -        -       -          -
    20240606_quarterly_report_for_the_board     211 B     27 B       -       27 B
    20240607_🚀发布                             144 B     27 B       -          -
      294.4 kB  sessions   26 files
         919 B  archives   1 file
       xx.x kB  history    18 files
         378 B  trash      3 files
        x.x kB  .wbhome    5 files
        x.x kB  other      3 files
      xxx.x kB  together   56 files
    +80 B since the last record, 2 days ago

    Largest files
      250.0 kB  sessions/20240605_api_refactor/artifacts/model.bin
       40.0 kB  sessions/20240604_数据清洗/artifacts/五月销售.csv
        x.x kB  .git/objects/pack/pack-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.pack
        x.x kB  .git/index

    $ du crawler
    SESSION              ALL  CONTEXT  MEMORY    LOGS  OTHER  GROWTH
    20240603_crawler  3.5 kB    278 B    28 B  3.1 kB  111 B    +0 B
        3.5 kB  sessions   7 files
    +0 B since the last record, just now

    Largest files
        2.8 kB  sessions/20240603_crawler/logs/agent_run.log-20240608T030000Z
         260 B  sessions/20240603_crawler/logs/agent_run.log
         128 B  sessions/20240603_crawler/context/turn_002.json
         123 B  sessions/20240603_crawler/context/turn_003.json
         111 B  sessions/20240603_crawler/session.json
          28 B  sessions/20240603_crawler/memory/notes.md
          27 B  sessions/20240603_crawler/context/turn_001.json
    ");
    assert_snapshot!(seen(&place, 80, &["history api", "history api -v", "diff api"]), @r#"
    $ history api
    xxxxxxx  2024-06-13 03:00, 2 days ago   3 sessions: +2 -2 turns, -2 files
        +turn_002, +turn_003
    xxxxxxx  2024-06-08 03:00, 7 days ago   7 sessions: +10 turns, 2 memories, 1
             artifact, 8 files
        +context/checkpoint.json, +turn_001, +session.json

    $ history api -v
    xxxxxxx  2024-06-13 03:00, 2 days ago   3 sessions: +2 -2 turns, -2 files
        added    context/turn_002.json   49 B
        added    context/turn_003.json   41 B
    xxxxxxx  2024-06-08 03:00, 7 days ago   7 sessions: +10 turns, 2 memories, 1
             artifact, 8 files
        added    context/checkpoint.json   35 B
        added    context/turn_001.json   27 B
        added    session.json   121 B

    $ diff api
    20240605_api_refactor  since xxxxxxx, 2024-06-13 03:00 (2 days ago): 1 added

    added    context/turn_005.json   12 B
      shown as it is stored, because the newer version is no whole JSON: EOF while parsing a string at line 1 column 12
    +{"role": "us
    \ no line break at the end
    "#);
    assert_snapshot!(seen(&place, 80, &["show nothing", "show 2024", "show", "ls --stauts active"]), @r"
    $ show nothing
    error: there is no session `nothing`
    hint: `wbhome ls` lists them

    $ show 2024
    error: `2024` may mean 7 sessions
    hint: 20240605_api_refactor
    hint: 20240603_crawler
    hint: 20240607_🚀发布
    hint: 20240606_quarterly_report_for_the_board
    hint: 20240604_数据清洗
    hint: 20240522_lost
    hint: 20240520_pricing

    $ show
    error: the following required arguments were not provided:
      <SESSION[/PATH]>

    Usage: wbhome show --color <WHEN> <SESSION[/PATH]>

    For more information, try '--help'.

    $ ls --stauts active
    error: unexpected argument '--stauts' found

      tip: a similar argument exists: '--status'

    Usage: wbhome ls --status <STATUS> [PATTERN]

    For more information, try '--help'.
    ");
}

/// What of it is coloured: `{1}` begins bold, `{0}` ends all, `{2}` is faint, `{31}` red, `{32}` green, `{33}` yellow.
#[test]
fn coloured() {
    let place = Place::lived_in();
    let mut out = String::new();
    for line in [
        "ls",
        "show pricing",
        "search timeout board api",
        "check api",
        "history api",
        "diff api",
        "show nothing",
    ] {
        let shown = drawn(&place, 80, &[], &words(line));
        let mut parts = shown.split("\u{1b}[");
        let mut marked = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let (code, rest) = part.split_once('m').unwrap();
            marked.push_str(&format!("{{{code}}}{rest}"));
        }
        out.push_str(&format!("$ {line}\n{}\n", settled(&place, &marked)));
    }
    assert_snapshot!(out, @r#"
    $ ls
    {2}SESSION                                  STATUS    ACTIVE       PROJECT  …{0}
    20240605_api_refactor                    active    3 days ago   -
    20240603_crawler                         active    4 days ago   alpha
    20240607_🚀发布                          active    8 days ago   -
    20240606_quarterly_report_for_the_board  active    9 days ago   alpha
    20240604_数据清洗                        active    11 days ago  -
    20240522_lost                            missing   13 days ago  -
    20240520_pricing                         archived  2 weeks ago  -
    {2}hint:{0} activity and sizes are those of 2 days ago: wbhome index looks again

    $ show pricing
    {1}20240520_pricing{0}   archived
    What the others ask

      {2}created   {0} 2024-06-01 08:00 (2 weeks ago)
      {2}active    {0} 2024-06-01 09:00 (2 weeks ago)
      {2}turns     {0} 1, the last context/turn_001.json
      {2}holds     {0} 2 files, 138 B
                 context        27 B   1 file
                 other         111 B   1 file
      {2}archive   {0} archive/20240520_pricing.tar.zst, 919 B
                 made 2024-06-08 03:00 (7 days ago), with a digest of each file
      {2}largest   {0}     111 B   session.json
      {2}          {0}      27 B   context/turn_001.json
      {2}backup    {0} [ROOT]/cold 2024-06-13 03:00 (2 days ago)

    $ search timeout board api
    {1}20240605_api_refactor{0}   3 days ago
      {2}context/turn_002.json  user: {0}raise the {1}{31}timeout{0}

    $ check api
    {1}1 session · 7 files · 250.3 kB{0}

    2 problems
      {1}torn-json        1{0}   20240605_api_refactor  context/turn_005.json ends in
                           mid-record
      {1}missing-turn     1{0}   20240605_api_refactor  004 between 003 and 005

    $ history api
    {1}xxxxxxx{0}  2024-06-13 03:00, 2 days ago   3 sessions: +2 -2 turns, -2 files
        +turn_002, +turn_003
    {1}xxxxxxx{0}  2024-06-08 03:00, 7 days ago   7 sessions: +10 turns, 2 memories, 1
             artifact, 8 files
        +context/checkpoint.json, +turn_001, +session.json

    $ diff api
    {1}20240605_api_refactor{0}  since xxxxxxx, 2024-06-13 03:00 (2 days ago): 1 added

    {1}added    context/turn_005.json{0}   12 B
      shown as it is stored, because the newer version is no whole JSON: EOF while parsing a string at line 1 column 12
    {32}+{"role": "us{0}
    \ no line break at the end

    $ show nothing
    {1}{31}error:{0} there is no session `nothing`
    {2}hint:{0} `wbhome ls` lists them
    "#);
}

#[test]
fn on_a_small_terminal() {
    let place = Place::lived_in();
    assert_snapshot!(seen(&place, 40, &["ls", "ls -l", "ls crawler -l"]), @r"
    $ ls
    SESSION                STATUS    ACTIVE
    20240605_api_refactor  active    3d
    20240603_crawler       active    4d
    20240607_🚀发布        active    8d
    20240606_quarterly_report_for_the_board
                           active    9d
    20240604_数据清洗      active    11d
    20240522_lost          missing   13d
    20240520_pricing       archived  2w
    hint: activity and sizes are those of 2 days ago: wbhome index looks again

    $ ls -l
    SESSION                STATUS    ACTIVE
    20240605_api_refactor  active    3d
    20240603_crawler       active    4d
    20240607_🚀发布        active    8d
    20240606_quarterly_report_for_the_board
                           active    9d
    20240604_数据清洗      active    11d
    20240522_lost          missing   13d
    20240520_pricing       archived  2w
    7 sessions, 295.2 kB
    hint: activity and sizes are those of 2 days ago: wbhome index looks again

    $ ls crawler -l
    SESSION           STATUS  ACTIVE  …
    20240603_crawler  active  4 days ago
    1 session, 3.5 kB
    hint: activity and sizes are those of 2 days ago: wbhome index looks again
    ");
    assert_snapshot!(seen(&place, 40, &["show crawler", "show board"]), @r"
    $ show crawler
    20240603_crawler   active

      project    alpha
      tags       web, prices
      created    2024-06-03 08:00
                 (12 days ago)
      active     2024-06-11 09:00
                 (4 days ago)
      turns      3, the last
                 context/turn_003.json
      holds      7 files, 3.5 kB
                 context       278 B
                 memory         28 B
                 logs         3.1 kB
                 other         111 B
      folder     [ROOT]/me/workbuddy_home/sessions/20240603_crawler
      largest       2.8 kB   …240608T030000Z
                     260 B   …/agent_run.log
                     128 B   …/turn_002.json
                     123 B   …/turn_003.json
                     111 B   session.json
      commit     xxxxxxx 2024-06-08 03:00
                 (7 days ago)
                 7 sessions: +10 turns, 2
                 memories, 1 artifact, 8
                 files
      backup     [ROOT]/cold
                 2024-06-13 03:00
                 (2 days ago)

    last turns
      turn_002  user      the crawler stops…
      turn_003  assistant 爬虫在第三页停下…

    $ show board
    20240606_quarterly_report_for_the_board
      active
    Q2 report 👨‍👩‍👧 for the board

      project    alpha
      created    2024-06-06 08:00
                 (9 days ago)
      active     2024-06-06 09:00
                 (9 days ago)
      turns      1, the last
                 context/turn_001.json
      holds      4 files, 211 B
                 context        27 B
                 artifacts      27 B
                 other         157 B
      folder     [ROOT]/me/workbuddy_home/sessions/20240606_quarterly_report_for_the_board
      largest        157 B   session.json
                      27 B   …/turn_001.json
                      18 B   …/report (1).md
                       9 B   …/report.md
      commit     xxxxxxx 2024-06-08 03:00
                 (7 days ago)
                 7 sessions: +10 turns, 2
                 memories, 1 artifact, 8
                 files
      backup     [ROOT]/cold
                 2024-06-13 03:00
                 (2 days ago)
    ");
    assert_snapshot!(seen(&place, 40, &["search timeout", "search --count ."]), @r"
    $ search timeout
    20240605_api_refactor   3 days ago
      …/turn_002.json  user: …e the timeout

    20240603_crawler   4 days ago
      …/turn_002.json  user: …h a timeout a…
      …urn_003.json  assistant: …：timeout …
      memory/notes.md  2: the timeout is 3…

    20240604_数据清洗   11 days ago   五月…
      memory/要点.md  1: …重；timeout 设为 …

    $ search --count .
    20240605_api_refactor
       10 lines in 6 files
    20240603_crawler   430 lines in 7 files
    20240607_🚀发布   4 lines in 2 files
    20240606_quarterly_report_for_the_board
       7 lines in 4 files
    20240604_数据清洗   9 lines in 5 files
    460 lines in 5 sessions
    ");
    assert_snapshot!(seen(&place, 40, &["du --top 2", "history crawler", "show crawler/logs"]), @r"
    $ du --top 2
    SESSION                     ALL  CONTEXT
    20240605_api_refactor  250.3 kB    164 B
    20240604_数据清洗       40.3 kB    127 B
    20240603_crawler         3.5 kB    278 B
    20240520_pricing              -        -
    20240606_quarterly_report_for_the_board
                              211 B     27 B
    20240607_🚀发布           144 B     27 B
      294.4 kB  sessions   26 files
         919 B  archives   1 file
       xx.x kB  history    18 files
         378 B  trash      3 files
        x.x kB  .wbhome    5 files
        x.x kB  other      3 files
      xxx.x kB  together   56 files
    +80 B since the last record, 2 days ago

    Largest files
      250.0 kB  …/artifacts/model.bin
       40.0 kB  …/artifacts/五月销售.csv

    $ history crawler
    xxxxxxx  2024-06-08 03:00, 7 days ago
             7 sessions: +10 turns, 2
             memories, 1 artifact, 8 files
        +3 turns, +2 files

    $ show crawler/logs
     260 B  agent_run.log
    2.8 kB  agent_run.log-20240608T030000Z
    ");
    assert_snapshot!(seen(&place, 40, &["ls --help"]), @r"
    $ ls --help
    List sessions, the most recently active
    first

    Usage: wbhome ls [OPTIONS] [PATTERN]

    Arguments:
      [PATTERN]  Part of an id or title, or
                 a glob for the whole of one

    Options:
          --status <STATUS>
              active, archived, missing or
              removed; running: an agent
              works in it now
          --agent <AGENT>
              Of this agent
          --tag <TAG>
              With this tag; with every one
              of several
          --project <PROJECT>
              Of this project
          --since <WHEN>
              Active then or later:
              2024-06-03, yesterday, 2w
          --until <WHEN>
              Active then or earlier
          --sort <SORT>
              The order [default: updated]
              [possible values: updated,
              created, size, id]
          --reverse
              The other way round
      -l, --long
              Also turns, size by kind, size
              of the archive, and the agents
              that are running
      -h, --help
              Print help

    Global options: --home DIR, --json, -n,
    -q, -v, -y, --color WHEN, --no-progress,
    --lock-wait TIME

    Examples:
      wbhome ls
      all but removed ones
      wbhome ls crawler --since 2w -l
      by name, active within two weeks, with
      sizes
      wbhome ls --project alpha --json | jq
      -r '.sessions[].id'
    ");
}

#[test]
fn on_a_wide_terminal() {
    let place = Place::lived_in();
    assert_snapshot!(seen(&place, 200, &["ls", "ls -l"]), @r"
    $ ls
    SESSION                                  STATUS    ACTIVE       PROJECT  TAGS              TITLE
    20240605_api_refactor                    active    3 days ago   -
    20240603_crawler                         active    4 days ago   alpha    web prices
    20240607_🚀发布                          active    8 days ago   -
    20240606_quarterly_report_for_the_board  active    9 days ago   alpha                      Q2 report 👨‍👩‍👧 for the board
    20240604_数据清洗                        active    11 days ago  -        销售 sync:laptop  五月销售 Sales 📈 cleaned, joined with the returns and checked against the ledger
    20240522_lost                            missing   13 days ago  -
    20240520_pricing                         archived  2 weeks ago  -                          What the others ask
    hint: activity and sizes are those of 2 days ago: wbhome index looks again

    $ ls -l
    SESSION                                  STATUS    ACTIVE       TURNS  CONTEXT  MEMORY  ARTIFACTS    LOGS  ARCHIVE  PROJECT  TAGS              TITLE
    20240605_api_refactor                    active    3 days ago       3    152 B     0 B   250.0 kB     0 B        -  -
    20240603_crawler                         active    4 days ago       3    278 B    28 B        0 B  3.1 kB        -  alpha    web prices
    20240607_🚀发布                          active    8 days ago       1     27 B     0 B        0 B     0 B        -  -
    20240606_quarterly_report_for_the_board  active    9 days ago       1     27 B     0 B        9 B     0 B        -  alpha                      Q2 report 👨‍👩‍👧 for the board
    20240604_数据清洗                        active    11 days ago      2     77 B    27 B    40.0 kB     0 B        -  -        销售 sync:laptop  五月销售 Sales 📈 cleaned, joined with the returns and c…
    20240522_lost                            missing   13 days ago      -        -       -          -       -        -  -
    20240520_pricing                         archived  2 weeks ago      1     27 B     0 B        0 B     0 B    919 B  -                          What the others ask
    7 sessions, 295.2 kB
    hint: activity and sizes are those of 2 days ago: wbhome index looks again
    ");
    assert_snapshot!(seen(&place, 200, &["show board", "search timeout"]), @r"
    $ show board
    20240606_quarterly_report_for_the_board   active
    Q2 report 👨‍👩‍👧 for the board

      project    alpha
      created    2024-06-06 08:00 (9 days ago)
      active     2024-06-06 09:00 (9 days ago)
      turns      1, the last context/turn_001.json
      holds      4 files, 211 B
                 context        27 B   1 file
                 artifacts      27 B   2 files
                 other         157 B   1 file
      folder     [ROOT]/me/workbuddy_home/sessions/20240606_quarterly_report_for_the_board
      largest        157 B   session.json
                      27 B   context/turn_001.json
                      18 B   artifacts/report (1).md
                       9 B   artifacts/report.md
      commit     xxxxxxx 2024-06-08 03:00 (7 days ago)
                 7 sessions: +10 turns, 2 memories, 1 artifact, 8 files
      backup     [ROOT]/cold 2024-06-13 03:00 (2 days ago)

    $ search timeout
    20240605_api_refactor   3 days ago
      context/turn_002.json  user: raise the timeout

    20240603_crawler   4 days ago
      context/turn_002.json  user: the crawler stops with a timeout after 30 seconds, whatever I set; look at the retry logic first
      context/turn_003.json  assistant: 爬虫在第三页停下来了：timeout 没有传给下载器 🕷️ so I pass it on
      memory/notes.md  2: the timeout is 30 s

    20240604_数据清洗   11 days ago   五月销售 Sales 📈 cleaned, joined with the returns and checked against the ledger
      memory/要点.md  1: 去重；timeout 设为 60
    ");
    assert_snapshot!(seen(&place, 200, &["du --top 2", "history crawler"]), @r"
    $ du --top 2
    SESSION                                       ALL  CONTEXT  MEMORY  ARTIFACTS    LOGS  OTHER  ARCHIVE  GROWTH
    20240605_api_refactor                    250.3 kB    164 B       -   250.0 kB       -  121 B        -   +12 B
    20240604_数据清洗                         40.3 kB    127 B    27 B    40.0 kB       -  121 B        -   +50 B
    20240603_crawler                           3.5 kB    278 B    28 B          -  3.1 kB  111 B        -    +0 B
    20240520_pricing                                -        -       -          -       -      -    919 B    +0 B
    20240606_quarterly_report_for_the_board     211 B     27 B       -       27 B       -  157 B        -   +18 B
    20240607_🚀发布                             144 B     27 B       -          -       -  117 B        -    +0 B
      294.4 kB  sessions   26 files
         919 B  archives   1 file
       xx.x kB  history    18 files
         378 B  trash      3 files
        x.x kB  .wbhome    5 files
        x.x kB  other      3 files
      xxx.x kB  together   56 files
    +80 B since the last record, 2 days ago

    Largest files
      250.0 kB  sessions/20240605_api_refactor/artifacts/model.bin
       40.0 kB  sessions/20240604_数据清洗/artifacts/五月销售.csv

    $ history crawler
    xxxxxxx  2024-06-08 03:00, 7 days ago   7 sessions: +10 turns, 2 memories, 1 artifact, 8 files
        +3 turns, +2 files
    ");
}

#[test]
fn what_is_wrong() {
    let place = Place::lived_in();
    assert_snapshot!(seen(&place, 80, &["check", "check crawler", "check --repair -n"]), @r"
    $ check
    5 sessions · 30 files · 301.1 kB

    5 problems
      missing-session     1   20240522_lost  is in the index, and found nowhere
      torn-json           1   20240605_api_refactor  context/turn_005.json ends in
                              mid-record
      missing-turn        1   20240605_api_refactor  004 between 003 and 005
      conflict-copy       2   20240604_数据清洗  context/turn_002 (1).json is the
                              same as turn_002.json
                              20240606_quarterly_report_for_the_board
                              artifacts/report (1).md goes on where report.md ends

    Good to know
      bad-name     2   20240606_quarterly_report_for_the_board  the name has 39
                       characters, 30 are the limit
                       20240607_🚀发布  the name holds more than letters, digits,
                       `_` and `-`

    $ check crawler
    1 session · 7 files · 3.5 kB

    Nothing is wrong.

    $ check --repair -n
      put away      1   sessions/20240604_数据清洗/context/turn_002 (1).json is the same as turn_002.json

    Left for you
      sessions/20240606_quarterly_report_for_the_board/artifacts/report (1).md   goes on where report.md ends
      sessions/20240606_quarterly_report_for_the_board/artifacts/report.md

    This would be done. Nothing was changed.
    ");
    assert_snapshot!(seen(&place, 80, &["doctor", "schedule show --with cron"]), @r"
    $ doctor
    warning index        1 session is missing: 20240522_lost
                  cure:  wbhome restore 20240522_lost --from backup
                  hint:  when it is meant to be gone: `wbhome rm 20240522_lost`
    warning history      last commit 2 days ago; 3 files in 3 sessions in no commit
                  cure:  wbhome commit
    warning backup       [ROOT]/cold, last snapshot 2 days ago
                  cure:  wbhome backup run
    warning backup       [ROOT]/cold lies on the same filesystem as
                         the home: it helps against slips, and not against a dead
                         disk
                  hint:  DIR is a folder on another disk; several stores may be set:
                         `wbhome backup init DIR`
    ok      home         [ROOT]/me/workbuddy_home, your usual one
    ok      permissions  0700, yours alone
    ok      filesystem   [FILESYSTEM]
    ok      room         … left
    ok      layout       everything that makes a home is there
    ok      settings     wbhome.toml is understood
    ok      logs         3.1 kB as last counted; cut daily, 7 kept
    ok      lock         free
    ok      journal      nothing left over
    ok      drill        none yet; there has been a store since 7 days ago
    ok      schedule     nothing runs `wbhome nightly`; `wbhome schedule install`
                         has the machine do it
    ok      trash        1 act, 138 B

    0 errors, 4 warnings.

    $ schedule show --with cron
    Nothing of this home is installed.
    A line in the crontab would run the night at 03:00   you named it
      [WBHOME] nightly --home [ROOT]/me/workbuddy_home

    your crontab:
      0 3 * * * [WBHOME] nightly --home [ROOT]/me/workbuddy_home # wbhome-nightly xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx

    It can not be installed: there is no `crontab` here
    ");
    assert_snapshot!(seen(&place, 80, &["drill -n", "drill"]), @r"
    $ drill -n
    warning: the store lies on the same disk as the home, and goes with it: [ROOT]/cold
    The home would be rebuilt from [ROOT]/cold, snapshot 2024-06-13 03:00, and [ROOT]/me/workbuddy_home/.git/
    It takes about xxx.x kB; … are free.

    $ drill
    warning: the store lies on the same disk as the home, and goes with it: [ROOT]/cold
    [ROOT]/me/workbuddy_home    [ROOT]/cold, snapshot 2024-06-13 03:00 (2 days ago)

      sessions             5   2 as now · 3 as of 2024-06-13 03:00 (3 files are newer now)
      archives             1   as now
      index, settings      1   as of 2024-06-13 03:00 (2 files are newer now)
      history              1   as now

    No backup holds
      [ROOT]/me/workbuddy_home/.git   18 files, xx.x kB   the
        history lies in the home and goes with it: `[git] dir` on another disk, or a
        remote and `wbhome commit --push`, keep it
        (docs/configuration.md says how it is moved)
      [ROOT]/me/workbuddy_home/.wbhome/trash   3 files, 378 B
        what commands have replaced or removed is not backed up

    The oldest state of what has changed since: 2 days 9 h old (RPO). Rebuilt in x.x
    s (RTO); 35 files, 301.7 kB compared.
    A disaster now would lose nothing that was backed up.
    ");
}

#[test]
fn what_would_be_done() {
    let place = Place::lived_in();
    assert_snapshot!(seen(&place, 80, &["index -n", "label crawler --tag new --untag web -n", "mv crawler spider -n", "rm crawler -n", "new 试验 -n", "init -n"]), @r"
    $ index -n
    8 entries, all as on the disk.

    $ label crawler --tag new --untag web -n
    20240603_crawler   +new  -web

    $ mv crawler spider -n
    20240603_crawler would become 20240603_spider

    [ROOT]/me/workbuddy_home/sessions/20240603_crawler → [ROOT]/me/workbuddy_home/sessions/20240603_spider
    would change 0 references in 0 files and 0 links, of 29 looked at

    Nothing was changed.

    $ rm crawler -n
    20240603_crawler   7 files, 3.5 kB
    1 session would be removed. Nothing was changed.

    $ new 试验 -n
    20240615_试验

    $ init -n
    [ROOT]/me/workbuddy_home is a home already; nothing would be written.
    ");
    assert_snapshot!(seen(&place, 80, &["commit -n", "rotate -n", "archive --idle 5d -n", "unarchive pricing -n", "nightly -n"]), @r"
    $ commit -n
    3 sessions: +2 turns, 1 artifact
      3 files would be committed
    Left out: 1 binary (250.0 kB)   -v names each
    Nothing was changed.

    $ rotate -n
    sessions/20240603_crawler/logs/agent_run.log   260 B   due: the day has changed
    sessions/20240603_crawler/logs/agent_run.log-20240608T030000Z   would be compressed
    1 log due, 0 not. Nothing was changed.

    $ archive --idle 5d -n
    20240604_数据清洗   6 files, 40.3 kB
    20240606_quarterly_report_for_the_board   4 files, 211 B
    20240607_🚀发布   2 files, 144 B
    2 sessions left, active since:
      20240603_crawler   2024-06-11
      20240605_api_refactor   2024-06-14
    3 sessions would be archived: 12 files, 40.6 kB. Nothing was changed.

    $ unarchive pricing -n
    20240520_pricing   2 files, 138 B
    1 session would be brought back. Nothing was changed.

    $ nightly -n
    rotate   1 log due, 260 B
    index    8 entries, all as on the disk
    commit   3 sessions: +2 turns, 1 artifact
    backup   [ROOT]/cold: 4 things to pack, xxx.x kB; 4 unchanged
    prune    [ROOT]/cold: nothing to let go of; 2 snapshots kept
    Nothing was changed.
    ");
    assert_snapshot!(seen(&place, 80, &["backup ls", "backup ls api", "backup verify", "backup run -n", "backup prune -n", "backup adopt cold -n", "backup accept 20240522_lost -n"]), @r"
    $ backup ls
    [ROOT]/cold
      2024-06-13 03:00    6 sessions           3 packed    xxx.x kB, 1 missing
      2024-06-08 03:00    8 sessions          10 packed    xxx.x kB
    2 snapshots, 13 packs, xxx.x kB

    $ backup ls api
    [ROOT]/cold
      2024-06-13 03:00       6 files    250.3 kB, 3 turns
          packs/sessions/20240605_api_refactor/20240613T030000Z.tar.zst
      2024-06-08 03:00       4 files    250.2 kB, 1 turn
          packs/sessions/20240605_api_refactor/20240608T030000Z.tar.zst

    $ backup verify
    [ROOT]/cold
    10 of 10 packs whole, xxx.x kB, 1 snapshot

    $ backup run -n
    [ROOT]/cold    after the snapshot of 2024-06-13 03:00

      pack  the home itself  6 files, x.x kB  (.wbhome/du.json is new)
      pack  20240604_数据清洗  6 files, xx.x kB  (context/turn_002 (1).json is new)
      pack  20240605_api_refactor  7 files, 250.3 kB  (artifacts/model.bin was changed and 6 more)
      pack  20240606_quarterly_report_for_the_board  4 files, 211 B  (artifacts/report (1).md is new)

    4 things to pack, xxx.x kB; 4 unchanged

    $ backup prune -n
    [ROOT]/cold
    0 snapshots and 0 packs would be removed, 0 B; 2 snapshots and 13 packs stay

    $ backup adopt cold -n
    [ROOT]/cold belongs to [ROOT]/me/workbuddy_home already.

    $ backup accept 20240522_lost -n
    [ROOT]/cold
      20240522_lost  gone: its last pack goes after [backup] keep_deleted
    ");
    assert_snapshot!(seen(&place, 80, &["restore api --from git -n", "restore api --from backup -n", "restore --all --from cold --to new -n", "check --empty-trash -n"]), @r"
    $ restore api --from git -n
    20240605_api_refactor  from xxxxxxx, 3 sessions: +2 -2 turns, -2 files
    0 files back, 5 as in the commit already, 2 not in the commit, which stay.
    This would be done. Nothing was changed.

    $ restore api --from backup -n
    error: 7 files are newer than the pack of 2024-06-13T03:00:00Z, or not in it, so nothing was changed
    hint: session.json
    hint: artifacts/model.bin
    hint: context/checkpoint.json
    hint: context/turn_001.json
    hint: context/turn_002.json
    hint: context/turn_003.json
    hint: context/turn_005.json
    hint: --force puts what is there into the trash; --to DIR brings it back elsewhere

    $ restore --all --from cold --to new -n
    [ROOT]/new    as of 2024-06-13 03:00 (2 days ago), from [ROOT]/cold

      home             1   5 files, x.x kB
      agents           1   0 files, 0 B
      sessions         7   26 files, 295.4 kB, 1 as archives
      missing          1   the home itself had lost them: 20240522_lost
      removed          1   on purpose, and stay in the store: 20240521_scratch

    It needs about xxx.x kB; … are free.
    Nothing was changed.

    $ check --empty-trash -n
      20240613T030000Z   138 B
    1 act, 2 files, 138 B would go for good.
    Nothing was changed.
    ");
}

/// One day's work, in an order that a person might follow.
const DONE: &[&str] = &[
    "new 试验 --tag try",
    "label crawler --tag new --title Spider",
    "index",
    "rotate",
    "commit",
    "mv 发布 20240607_release",
    "archive board",
    "unarchive pricing",
    "rm 试验",
    "backup run",
    "backup accept 20240522_lost",
    "backup prune",
    "restore lost --from backup",
    "relink /old/place cold",
    "check --repair -y",
    "check --empty-trash -y",
    "nightly",
];

#[test]
fn what_was_done() {
    let place = Place::lived_in();
    support::cold::rest();
    assert_snapshot!(seen(&place, 80, DONE), @r"
    $ new 试验 --tag try
    20240615_试验

    $ label crawler --tag new --title Spider
    20240603_crawler   +new  title: none → Spider

    $ index
    9 entries, all as on the disk.

    $ rotate
    sessions/20240603_crawler/logs/agent_run.log   260 B → agent_run.log-20240615T120000Z   lossless
    Logs: 1 cut · 1 compressed

    $ commit
    4 sessions: +2 turns, 1 artifact, 1 file
      main xxxxxxxxxx   5 files, x.x kB new
    Left out: 1 binary (250.0 kB)   -v names each

    $ mv 发布 20240607_release
    20240607_🚀发布 is 20240607_release now

    0 references in 0 files and 0 links, of 31 looked at

    $ archive board
    20240606_quarterly_report_for_the_board   4 files, 211 B → 1.2 kB
    Back again: wbhome unarchive 20240606_quarterly_report_for_the_board

    $ unarchive pricing
    20240520_pricing   2 files, 138 B

    $ rm 试验
    20240615_试验   1 file, 281 B
    In the trash.  Back again: wbhome restore 20240615T120000Z --from trash

    $ backup run
    [ROOT]/cold    snapshot 2024-06-15 12:00

      packed         7   40 files, xxx.x kB; xxx.x kB in the store
      unchanged      1
      missing        1   20240522_lost: not there any more; the last packs are kept
      removed        1   20240521_scratch: kept for [backup] keep_deleted

    $ backup accept 20240522_lost
    [ROOT]/cold
      20240522_lost  gone: its last pack goes after [backup] keep_deleted

    $ backup prune
    [ROOT]/cold
    0 snapshots and 0 packs removed, 0 B; 3 snapshots and 20 packs stay

    $ restore lost --from backup
    20240522_lost  as of 2024-06-08 03:00 (7 days ago), from [ROOT]/cold, snapshot 2024-06-15 12:00
      back     sessions/20240522_lost
    2 files back, 132 B, compared.

    $ relink /old/place cold
    0 references in 0 files and 0 links, of 30 looked at

    $ check --repair -y
      put away      1   sessions/20240604_数据清洗/context/turn_002 (1).json is the same as turn_002.json

    To take it back: wbhome restore 20240615T120000Z-2 --from trash

    2 problems left.  See them: wbhome check

    $ check --empty-trash -y
      20240615T120000Z-2   50 B
      20240615T120000Z   281 B
      20240613T030000Z   138 B
    3 acts, 4 files, 469 B removed for good.

    $ nightly
    rotate   no log is due
    index    9 entries, all as on the disk
    commit   7 sessions: +3 -3 turns, -2 artifacts, 3 files, -3 files
    backup   [ROOT]/cold: 3 things packed, xx.x kB in the store; 6 unchanged
    prune    [ROOT]/cold: nothing to let go of; 4 snapshots kept
    ");
}

#[test]
fn moving_in() {
    let place = Place::of_usual_length();
    let drive = place.path("drive");
    std::fs::create_dir(place.path("packed")).unwrap();
    moving::small_home(&place, "drive", drive.to_str().unwrap());
    place.put(
        "drive/sessions/20240601_one/context/turn_003.json",
        "{\"turn\": 3, \"cw",
    );
    let lines = [
        "migrate drive home --no-state -n",
        "migrate drive home --no-state -y",
        "migrate status --home home",
        "migrate verify --home home",
        "migrate finish --to packed --home home",
        "migrate undo --home home",
    ];
    assert_snapshot!(seen(&place, 80, &lines), @r"
    $ migrate drive home --no-state -n
    1 session · 8 files · 686 B    from [ROOT]/drive
    would be copied to home

    References that would be rewritten, in any spelling:
             8   [ROOT]/drive → [ROOT]/home

    Nothing was changed.

    $ migrate drive home --no-state -y
    1 session · 8 files · 686 B    from [ROOT]/drive (untouched)

      copied           2   read back, equal
      rewritten        6   8 references to [ROOT]/drive
      folders          9
      together        17   everything in the source

    The sync drive had damaged 1 session
      torn-json        1   20240601_one  context/turn_003.json ends in mid-record
      missing-turn     1   20240601_one  002 between 001 and 003

    Sessions: 1 in the source, 1 in the home. Index: 1 entry before, 1 now (0 added, 0 missing).

    Keep the original until 2024-06-29.  Next: wbhome check -v --home [ROOT]/home

    $ migrate status --home home
    Migrated 2024-06-15 12:00 (just now)

    1 session · 8 files · 686 B    from [ROOT]/drive (untouched)

      copied           2   read back, equal
      rewritten        6   8 references to [ROOT]/drive
      folders          9
      together        17   everything in the source

    The sync drive had damaged 1 session
      torn-json        1   20240601_one  context/turn_003.json ends in mid-record
      missing-turn     1   20240601_one  002 between 001 and 003

    Sessions: 1 in the source, 1 in the home. Index: 1 entry before, 1 now (0 added, 0 missing).

    Keep the original until 2024-06-29.  Next: wbhome check -v --home [ROOT]/home
    Record: [ROOT]/home/.wbhome/migrations/20240615T120000Z

    $ migrate verify --home home
    16 entries compared with [ROOT]/drive: 16 as they should be, 0 not.
    index.json follows the home, and is not compared.

    $ migrate finish --to packed --home home
    warning: the pack would lie in [ROOT], the folder that holds the original: if that is synced, the pack is carried to every device, and goes when that folder goes; another disk is safer
    8 files · 686 B    from [ROOT]/drive
    packed into [ROOT]/packed/drive-20240615T120000Z.tar.zst, x.x kB; read back and compared
    BLAKE3 xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx

    The pack is new: from 2024-06-29 on, the original may go; removing it is for you, in the sync client's own way: it goes on every device.

    $ migrate undo --home home
    error: there is nothing to take back: the migration has changed no state folder, or that was taken back before
    hint: `wbhome migrate status` shows what was done
    ");
}

#[test]
fn help() {
    let place = Place::of_usual_length();
    assert_snapshot!(seen(&place, 80, &["--help"]), @r"
    $ --help
    A home for every agent session: move it off the sync drive, keep it sound, find
    things in it

    Usage: wbhome [OPTIONS] <COMMAND>

    Making and browsing:
      init         Make a home, or adopt a folder that has sessions already
      new          Make a session; prints its id
      ls           List sessions, the most recently active first
      show         Show a session at a glance, or a file in it
      path         Print the absolute path of a session, or of a file in it
      search       Search what sessions hold: context, memory, artifacts, logs
      du           Say what takes the room, by session and kind, what of it grows,
                   and what helps
      label        Tag sessions, give them a project, a sync tag or a title
      mv           Give a session another name
      rm           Put sessions into the trash; the index keeps a tombstone with
                   their labels
      index        Make index.json agree with the disk, and say what changed
      check        Look for all that is wrong: damage by sync clients, missing
                   pieces, stale references
      relink       Let references follow a folder that was moved or renamed
      doctor       Say whether this set-up is sound, a line a check, with the cure
                   for what is not

    Moving in:
      migrate      Move a home off a sync drive, every path reference rewritten

    Keeping:
      commit       Put session text into git: what changed, in one commit
      history      List the commits that touched a session, or something in it, the
                   newest first
      diff         Show what changed in a session since a commit
      archive      Put sessions into archive/, each as one .tar.zst, and take their
                   folders away
      unarchive    Bring archived sessions back into sessions/, exactly as they were
      rotate       Cut the logs that are due while agents go on writing to them, and
                   lose no line
      backup       Back up the home into cold stores, which are folders on other
                   disks
      restore      Bring back a session, a file, what one command has put away, or a
                   whole home
      drill        Rehearse a disaster: rebuild the home in a scratch folder, and
                   compare
      nightly      Do all that is to be done every night: rotate, index, commit,
                   backup, prune, relay
      schedule     Have the machine run `wbhome nightly` every night

    Sharing:
      relay        Carry tagged sessions to other devices, through a folder that a
                   sync client syncs
      lease        Say which device writes to a session that travels, one at a time
      export       Put sessions, or what is in them, into a folder, to be carried by
                   hand

    In the shell:
      completions  Print what turns completion on in a shell
      shell-init   Print what a shell takes in at its start: completion, and wbcd
      man          Write the manual pages into a folder

    Options:
          --home <DIR>            The home [default: $WBHOME, the nearest one above,
                                  ~/workbuddy_home]
          --json                  Print the result as one JSON document
      -n, --dry-run               Show what would be done, and change nothing
      -q, --quiet                 Print only what was asked for, warnings and errors
      -v, --verbose               Name each thing instead of counting
      -y, --yes                   Answer every question with yes
          --color <WHEN>          Colour: auto, always or never [default: auto]
          --no-progress           Draw no progress bar
          --lock-wait <DURATION>  How long to wait for somebody else's lock
                                  [default: 10s]
      -h, --help                  Print help
      -V, --version               Print version

    Examples:
      wbhome migrate ~/Drive/workbuddy_home ~/workbuddy_home    off the sync drive,
      once
      wbhome ls --since 2w                                      what was done of
      late
      wbhome show @1                                            where the last
      session stands

    Exit codes: 0 done · 1 failed · 2 usage · 3 done in part · 4 problems found · 10
    no home · 11 locked · 12 newer format · 130 interrupted
    ");
}

/// What only looks, or only says what it would do: it can be asked again and again. Not all of them succeed.
const ASKED: &[&str] = &[
    "--help",
    "du --help",
    "backup --help",
    "nonsense",
    "ls",
    "ls -l",
    "ls --status archived",
    "ls nothing",
    "show crawler",
    "show 数据",
    "show pricing",
    "show board",
    "show nothing",
    "show 2024",
    "show crawler/memory",
    "show crawler/memory/notes.md",
    "path crawler",
    "search timeout",
    "search timeout -C 1",
    "search timeout -l",
    "search timeout --count",
    "du -n",
    "du crawler",
    "history api",
    "history api -v",
    "diff api",
    "index -n",
    "check",
    "check -v",
    "check --repair -n",
    "check --empty-trash -n",
    "doctor",
    "drill -n",
    "label crawler --tag new -n",
    "mv crawler spider -n",
    "rm crawler -n",
    "new 试验 -n",
    "init -n",
    "init new -n",
    "commit -n",
    "rotate -n",
    "archive --idle 5d -n",
    "unarchive pricing -n",
    "nightly -n",
    "backup init other -n",
    "backup ls",
    "backup ls api",
    "backup verify",
    "backup run -n",
    "backup prune -n",
    "backup adopt cold -n",
    "backup accept 20240522_lost -n",
    "restore api --from git -n",
    "restore api --from backup -n",
    "restore --all --from cold --to new -n",
    "relink /a cold -n",
    "migrate status",
    "schedule show",
    "schedule show --with cron",
    "completions bash",
    "shell-init bash",
];

/// Whether a text would change how the terminal writes. What moves the cursor counts, too.
fn is_coloured(text: &str) -> bool {
    text.contains('\u{1b}')
}

fn without_colour(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// Seconds that something took are not the same twice.
fn comparable(place: &Place, ran: &Ran) -> (Option<i32>, String, String) {
    (
        ran.code,
        settled(place, &ran.stdout),
        settled(place, &ran.stderr),
    )
}

#[test]
fn piped_there_is_no_colour() {
    let place = Place::lived_in();
    for line in ASKED {
        for color in [&[][..], &["--color", "auto"]] {
            let ran = place.alone(&[&words(line)[..], color].concat());
            assert!(
                !is_coloured(&ran.stdout) && !is_coloured(&ran.stderr),
                "{line}: {ran:#?}"
            );
        }
    }
}

#[test]
fn colour_changes_nothing_but_colour() {
    let place = Place::lived_in();
    let mut coloured = Vec::new();
    for line in ASKED {
        let with = |when: &str| place.alone(&[&words(line)[..], &["--color", when]].concat());
        let (plain, mut colour) = (with("never"), with("always"));
        let both = [&colour.stdout, &colour.stderr];
        if both.iter().any(|text| is_coloured(text)) {
            coloured.push(*line);
        }
        assert!(
            !is_coloured(&plain.stdout) && !is_coloured(&plain.stderr),
            "{line}: {plain:#?}"
        );
        colour.stdout = without_colour(&colour.stdout);
        colour.stderr = without_colour(&colour.stderr);
        assert_eq!(
            comparable(&place, &colour),
            comparable(&place, &plain),
            "{line}"
        );
    }
    for line in [
        "--help",
        "nonsense",
        "show crawler",
        "search timeout",
        "du crawler",
        "history api",
        "check",
        "doctor",
        "diff api",
        "show nothing",
    ] {
        assert!(
            coloured.contains(&line),
            "{line} is never coloured: {coloured:?}"
        );
    }
}

#[test]
fn whoever_wants_no_colour_on_a_terminal_gets_none() {
    let place = Place::lived_in();
    let mut coloured = 0;
    for line in ASKED {
        for env in [("NO_COLOR", "1"), ("TERM", "dumb")] {
            let shown = drawn(&place, 80, &[env], &words(line));
            assert!(!is_coloured(&shown), "{env:?} {line}: {shown:?}");
        }
        let never = drawn(
            &place,
            80,
            &[],
            &[&words(line)[..], &["--color=never"]].concat(),
        );
        assert!(!is_coloured(&never), "{line}: {never:?}");
        let shown = drawn(&place, 80, &[], &words(line));
        coloured += u32::from(is_coloured(&shown));
        assert_eq!(
            settled(&place, &without_colour(&shown)),
            settled(&place, &never),
            "{line}"
        );
    }
    assert!(coloured > 20, "{coloured}");
}

/// All ids of the home, and how the rest of a line may go on that can not be cut.
const IDS: [&str; 8] = [CRAWLER, DATA, API, LONG, EMOJI, OLD, REMOVED, GONE];

#[test]
fn tables_have_room() {
    let place = Place::lived_in();
    let tables = [
        "ls",
        "ls -l",
        "ls --status archived",
        "du",
        "du board",
        "show crawler",
        "show 数据",
        "show pricing",
        "show board",
        "search timeout",
        "search timeout -C 2",
        "search . board",
        "search --count .",
        "history api",
        "--help",
        "ls --help",
    ];
    for columns in [40, 60, 80, 200] {
        for line in tables {
            let shown = drawn(
                &place,
                columns,
                &[],
                &[&words(line)[..], &["--color=never"]].concat(),
            );
            for text in shown
                .lines()
                .filter(|text| text.width() > usize::from(columns))
            {
                // An id alone, or a path, behind what it is; a hint is no table.
                let words: Vec<&str> = text.split_whitespace().collect();
                let is_whole = IDS.contains(&text.trim())
                    || text.starts_with("hint: ")
                    || words.len() <= 2 && words.last().is_some_and(|word| word.contains('/'));
                assert!(
                    is_whole,
                    "{line} at {columns}: {} columns: {text:?}\n{shown}",
                    text.width()
                );
            }
        }
    }
    // No id is cut, wherever it stands.
    for columns in [10, 40, 80] {
        for line in ["ls", "ls -l", "du"] {
            let shown = drawn(&place, columns, &[], &words(line));
            for id in [CRAWLER, DATA, API, LONG, EMOJI, OLD] {
                assert!(
                    without_colour(&shown).contains(id),
                    "{line} at {columns}: {id}\n{shown}"
                );
            }
        }
    }
}

#[test]
fn json_is_one_document() {
    let place = Place::lived_in();
    // What is printed to be put into a file or a shell is the same with and without.
    let plain = [
        "--help",
        "completions",
        "shell-init",
        "show crawler/memory/notes.md",
    ];
    for line in ASKED {
        if plain.iter().any(|plain| line.contains(plain)) {
            continue;
        }
        let ran = place.alone(&[&words(line)[..], &["--json", "--color=always"]].concat());
        assert!(
            !is_coloured(&ran.stdout) && !ran.stderr.contains("\u{1b}[31m{"),
            "{line}: {ran:#?}"
        );
        let documents: Vec<serde_json::Value> = ran
            .stdout
            .lines()
            .map(|text| {
                serde_json::from_str(text).unwrap_or_else(|e| panic!("{line}: {e}: {text}"))
            })
            .collect();
        let many = line.starts_with("search") || line.starts_with("check -v");
        match many {
            true => assert!(documents.len() > 1, "{line}"),
            // What fails says so on standard error.
            false => assert_eq!(
                documents.len(),
                usize::from(ran.stderr.is_empty() || ran.code == Some(0) || ran.code == Some(4)),
                "{line}: {ran:#?}"
            ),
        }
        if documents.is_empty() {
            assert_eq!(ran.error()["exit"], ran.code.unwrap(), "{line}");
        }
        let verb = words(line)[0];
        for document in &documents {
            let schema = document["schema"].as_str().unwrap();
            assert!(
                schema.starts_with("wbhome/") && schema.ends_with("/1"),
                "{schema}"
            );
            assert!(
                schema.contains(verb)
                    || schema == "wbhome/finding/1"
                    || schema == "wbhome/empty-trash-plan/1",
                "{line}: {schema}"
            );
        }
    }
}

#[test]
fn moments_are_ages_on_a_terminal_and_exact_elsewhere() {
    let place = Place::lived_in();
    for line in ["ls", "ls -l", "search timeout", "du"] {
        let shown = without_colour(&drawn(&place, 80, &[], &words(line)));
        // The day in an id, and the name of a cut log, are names.
        let is_exact = |text: &str| text.contains("2024-06-") || text.contains("2024-05-");
        assert!(
            shown.contains(" ago") && !is_exact(&shown),
            "{line}\n{shown}"
        );
        let piped = place.alone(&words(line)).stdout;
        assert!(
            !piped.contains(" ago") && is_exact(&piped),
            "{line}\n{piped}"
        );
    }
    // What tells both is for both.
    for line in ["show crawler", "history api"] {
        let piped = place.alone(&words(line)).stdout;
        assert!(
            piped.contains("2024-06-13 03:00") || piped.contains("2024-06-08 03:00"),
            "{line}\n{piped}"
        );
    }
}

/// The same work in two homes, with colour and without, says the same and does the same.
#[test]
fn what_is_done_looks_the_same_with_colour() {
    let (plain, coloured) = (Place::lived_in(), Place::lived_in());
    support::cold::rest();
    for line in DONE {
        let piped = plain.alone(&words(line));
        assert!(
            !is_coloured(&piped.stdout) && !is_coloured(&piped.stderr),
            "{line}"
        );
        let mut ran = coloured.alone(&[&words(line)[..], &["--color=always"]].concat());
        ran.stdout = without_colour(&ran.stdout);
        ran.stderr = without_colour(&ran.stderr);
        assert_eq!(
            comparable(&coloured, &ran),
            comparable(&plain, &piped),
            "{line}"
        );
    }
}
