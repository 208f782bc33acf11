//! What people, agents and tools say, escaped once for every way of writing JSON.

use super::text::Style;

/// The phrases in the four styles.
pub struct Phrases([Pool; 4]);

/// All phrases in one style, ready to stand inside a JSON string.
pub struct Pool {
    pub questions: Vec<String>,
    pub answers: Vec<String>,
    pub outputs: Vec<String>,
    /// The text of a command before and after a path, for a JSON string inside a JSON string.
    pub commands: Vec<(String, String)>,
}

impl Phrases {
    pub fn new() -> Phrases {
        Phrases(Style::ALL.map(|style| {
            let all = |from: &[&str]| from.iter().map(|phrase| style.escape(phrase)).collect();
            let command = |(before, after): &(&str, &str)| {
                (style.escape_twice(before), style.escape_twice(after))
            };
            Pool {
                questions: all(&QUESTIONS),
                answers: all(&ANSWERS),
                outputs: all(&OUTPUTS),
                commands: COMMANDS.iter().map(command).collect(),
            }
        }))
    }

    pub fn in_style(&self, style: Style) -> &Pool {
        &self.0[style as usize]
    }
}

/// What a log line says.
pub const EVENTS: [&str; 10] = [
    "tool finished in 412 ms, exit 0",
    "model answered, 1,204 tokens in, 318 out",
    "retry 2 of 5 after HTTP 429, waiting 8 s",
    "checkpoint written",
    "写入产物 output_report.md，3,412 字节",
    "context at 61 % of the window, no compaction yet",
    "检索到 18 条结果，保留 6 条",
    "file changed on disk since it was read, reading again",
    "user interrupted, tool call cancelled",
    "sandbox denied network access to 10.0.0.4:443",
];

const QUESTIONS: [&str; 16] = [
    "The crawler stops after page 40 with a timeout. Can you look at the retry logic and tell me what happens?",
    "把上周的三份销售表合并成一张，按地区汇总，金额保留两位小数。",
    "Please go through the draft once more and shorten the second section. Keep the numbers as they are.",
    "这个脚本在我的电脑上跑得很慢，看看能不能先过滤再排序。",
    "Rename the fields as we agreed yesterday, but leave the public API alone. Run the tests afterwards.",
    "Which of these log lines are new since Monday? I only care about errors and the lines around them.",
    "列名里有全角空格，先清掉，再把日期统一成 YYYY-MM-DD。",
    "Write a summary of what we decided so far, five bullet points at most.",
    "Does the schema allow two rows with the same order number? If so, find them.",
    "周报里“风险”一节太长了，只留两条最重要的。",
    "Why do we get 1.5 here and 1.50 in the export? They should be the same text.",
    "Translate the release notes into Chinese; keep product names in English.",
    "Put the result into the artifacts folder and tell me the path. 😀",
    "I moved the input file. Look for it again, it should be somewhere below the session.",
    "把失败的用例单独列出来，说明原因，先不要改代码。",
    "Undo the last change, the numbers were right before.",
];

const ANSWERS: [&str; 20] = [
    "I read the retry loop. It waits a fixed two seconds and gives up after five attempts, which is exactly what we see after page 40: the site starts to answer with 429 and a Retry-After of 30. I will honour that header and add jitter.",
    "已经合并完成。三份表一共 4,812 行，去掉 37 行重复之后剩 4,775 行。华东的合计与上周的邮件差 0.02，是四舍五入的顺序造成的。",
    "Done. The second section went from 412 to 268 words. I left every figure untouched and moved the table to the end.",
    "The slow part is the sort: it runs on all rows and the filter throws nine tenths of them away afterwards. Filtering first takes 0.4 s instead of 11 s on your file.",
    "Let me look at the file before I change anything.",
    "全角空格在第 3、7、12 列。日期有三种写法：2024/6/3、2024.06.03 和 6月3日，我会统一成 2024-06-03。",
    "There are two tests that fail now and did before: test_empty_page and test_bad_encoding. The rename did not touch them.",
    "Here is what is new since Monday:\n\n- 14 × `connection reset by peer`, all from the same host\n- 2 × `cannot open database`, both at 03:00\n\nThe second one coincides with the nightly backup.",
    "我先把决定记到记忆里，后面的步骤都会用到：\n\n1. 金额一律两位小数\n2. 地区名用标准名称\n3. 不改原始文件",
    "Yes. `order_no` has no unique constraint. I found three pairs; in each one the second row has a later `updated_at` and otherwise equal values.",
    "I will write the report now and then run the checks.",
    "The number is a string in the source. Reading it as a float drops the zero; I now keep the text and only parse for the comparison.",
    "译好了。产品名保留英文，“breaking change” 统一译成“不兼容的改动”。有一处我拿不准：原文第 3 条的 “drain”，暂译“排空”。",
    "Written. The table has 6 columns and 128 rows, and the chart uses the same colours as last month.",
    "I could not find the input where you said it would be. There is one file of the same size and date two folders up; I used it and noted that in the report.",
    "失败的用例有 3 个，原因都是夹具里的时间写死了。没有改任何代码。",
    "Reverted. `git diff` is empty again and all 64 tests pass.",
    "Before I go on: the last step needs about 40 minutes and 2 GB of disk. Shall I start it now or tonight?",
    "结论：慢的是网络，不是解析。每页平均 1.8 秒在等响应，解析只占 40 毫秒。建议并发 4，而不是换解析库。",
    "Everything you asked for is in place. What is left is the wording of the title, which I would rather leave to you.",
];

const OUTPUTS: [&str; 12] = [
    "total 48\n-rw-r--r--  1 mei  staff   3412 Jun  3 09:12 output_report.md\n-rw-r--r--  1 mei  staff  18220 Jun  3 09:10 table.csv\n-rwxr-xr-x  1 mei  staff    412 Jun  2 17:44 run.sh\ndrwxr-xr-x  3 mei  staff     96 Jun  2 17:40 code\n",
    "Traceback (most recent call last):\n  File \"main.py\", line 41, in <module>\n    main()\n  File \"main.py\", line 33, in main\n    rows = list(reader)\n  File \"/usr/lib/python3.12/csv.py\", line 116, in __next__\n    row = next(self.reader)\nUnicodeDecodeError: 'utf-8' codec can't decode byte 0xb1 in position 7: invalid start byte\n",
    "order_no,region,amount,date\n10021,华东,1288.50,2024-06-03\n10022,华北,96.00,2024-06-03\n10023,华南,410.25,2024-06-04\n10024,西南,77.10,2024-06-04\n10025,华东,1500.00,2024-06-05\n",
    "running 64 tests\n................................................................\ntest result: ok. 64 passed; 0 failed; 0 ignored; finished in 2.31s\n",
    "{\"status\": \"ok\", \"pages\": 40, \"failed\": [41, 42, 47], \"elapsed\": 83.20, \"retry_after\": 30}\n",
    "diff --git a/crawler/fetch.py b/crawler/fetch.py\n@@ -28,7 +28,9 @@ def fetch(url, attempt=0):\n     try:\n-        return session.get(url, timeout=10)\n+        response = session.get(url, timeout=(5, 30))\n+        response.raise_for_status()\n+        return response\n     except Timeout:\n         if attempt >= MAX_ATTEMPTS:\n             raise\n",
    "2024-06-03T03:00:01Z ERROR cannot open database: locked\n2024-06-03T03:00:31Z WARN  retrying (1/3)\n2024-06-03T03:01:01Z INFO  opened\n2024-06-03T08:15:44Z ERROR connection reset by peer host=img3\n2024-06-03T08:15:52Z ERROR connection reset by peer host=img3\n",
    "# 周报 第 23 周\n\n## 完成\n- 抓取任务恢复，40 页以后不再超时\n- 三张销售表合并，差异 0.02 已说明\n\n## 风险\n- 接口限流，高峰期可能延迟\n- 历史数据缺 6 月 1 日一天\n",
    "CREATE TABLE orders (\n  id        INTEGER PRIMARY KEY,\n  order_no  TEXT NOT NULL,\n  region    TEXT,\n  amount    NUMERIC(12,2) DEFAULT 0.00,\n  updated_at TEXT\n);\nCREATE INDEX orders_by_no ON orders(order_no);\n",
    "warning: unused variable: `attempt`\n  --> src/fetch.rs:19:9\n   |\n19 |     let attempt = 0;\n   |         ^^^^^^^ help: if this is intentional, prefix it with an underscore: `_attempt`\n   |\n   = note: `#[warn(unused_variables)]` on by default\n",
    "col_1\tcol_2\tcol_3\n姓名\t年龄\t城市\n张三\t 34\t杭州\n李四\t 28\t成都\n王五\t 41\t\"广州, 天河\"\n",
    "<html><head><title>Listing</title></head><body><ul class=\"items\"><li><a href=\"/item/41?from=list&amp;page=2\">41</a></li><li><a href=\"/item/42\">42</a></li></ul></body></html>\n",
];

const COMMANDS: [(&str, &str); 6] = [
    ("cd \"", "/artifacts\" && ls -l"),
    ("python3 '", "/artifacts/code/main.py' --dry-run"),
    ("rg -n 'TODO|FIXME' \"", "/artifacts\""),
    ("head -n 20 '", "/artifacts/table.csv' | column -t -s,"),
    (
        "diff -u \"",
        "/artifacts/output_report.md\" /tmp/report.old",
    ),
    ("wc -l \"", "/logs/agent_run.log\""),
];
