//! For each rule a text in which it finds something, and one that looks like it and in which no rule does.

use std::collections::BTreeSet;

use super::*;

/// Rule, sample, near miss.
fn samples() -> Vec<(&'static str, String, String)> {
    let r = random;
    let hex = |n| random(LOWER_HEX, n);
    let uuid = "0a1b2c3d-4e5f-4a6b-8c7d-9e0f1a2b3c4d";
    let join = |parts: &[&str]| parts.concat();
    vec![
        (
            "gcp-service-account",
            format!(
                "{{\"private_key_id\": \"{}\", \"private_key\": \"{}\"}}",
                hex(40),
                pem(&join(&["PRIVATE", " KEY"])).replace('\n', "\\n")
            ),
            format!("{{\"private_key\": \"{}\"}}", "PATH_OF_THE_KEY_FILE"),
        ),
        ("private-key", private_key(), pem("CERTIFICATE")),
        (
            "pgp-private-key",
            format!(
                "-----BEGIN {} BLOCK-----\nVersion: 2\n\n{}\n",
                "PGP PRIVATE KEY",
                key_lines()
            ),
            format!("-----BEGIN {} BLOCK-----\n\n{}\n", "PGP PUBLIC KEY", key_lines()),
        ),
        (
            "putty-private-key",
            format!("Private-{}: 8\n{}\nPrivate-MAC: 0", "Lines", key_lines()),
            format!("Public-Lines: 8\n{}", key_lines()),
        ),
        (
            "age-secret-key",
            format!("AGE-SECRET-{}{}", "KEY-1", r(UPPER, 58)),
            format!("age1{}", r(WORD, 58).to_lowercase()),
        ),
        (
            "aws-access-key-id",
            format!("AK{}{}", "IA", r(UPPER, 16)),
            "AKIAIOSFODNN7EXAMPLE".into(),
        ),
        (
            "aws-secret-key",
            format!("AWS_SECRET_{}={}", "ACCESS_KEY", r(BASE64, 40)),
            "AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY".into(),
        ),
        (
            "aws-session-token",
            format!("\"SessionToken\": \"{}\"", r(BASE64, 200)),
            "\"SessionToken\": \"the one that the service gave\"".into(),
        ),
        (
            "gcp-api-key",
            format!("key=AI{}{}", "za", r(URL64, 35)),
            format!("AI{}{}", "za", r(URL64, 34)),
        ),
        (
            "google-oauth",
            format!("GOC{}{}", "SPX-", r(URL64, 28)),
            format!("GOC{}{}", "SPX-", r(URL64, 12)),
        ),
        (
            "azure-storage-key",
            format!("AccountName=a;Account{}={}==", "Key", r(BASE64, 86)),
            "AccountName=a;AccountKey=<key>".into(),
        ),
        (
            "azure-sas",
            format!("https://a.blob.core.windows.net/x?sv=2022&s{}={}%3D", "ig", r(WORD, 43)),
            "https://a.blob.core.windows.net/x?sv=2022&sig=1".into(),
        ),
        (
            "azure-ad-secret",
            format!("{}8Q~{}", r(WORD, 3), r(WORD, 34)),
            "what is 8Q~ here".into(),
        ),
        (
            "tencent-secret-id",
            format!("AK{}{}", "ID", r(WORD, 32)),
            format!("AK{}{}", "ID", r(WORD, 12)),
        ),
        (
            "tencent-secret-key",
            format!("secret{} = '{}'", "Key", r(WORD, 32)),
            "secretKey = getSecretKeyFromTheVault()".into(),
        ),
        (
            "alibaba-access-key-id",
            format!("LT{}{}", "AI5t", r(WORD, 20)),
            "LTAI-2024".into(),
        ),
        (
            "alibaba-access-key-secret",
            format!("access{}: {}", "KeySecret", r(WORD, 30)),
            "accessKeySecret: process.env.ALI_SECRET_1".into(),
        ),
        (
            "baidu-key",
            format!("QIANFAN_{}={}", "AK", r(WORD, 24)),
            "QIANFAN_ENDPOINT=completions_pro".into(),
        ),
        (
            "volcengine-key",
            format!("AK{}{}", "LT", r(WORD, 44)),
            "AKLT".into(),
        ),
        (
            "digitalocean-token",
            format!("dop_{}_{}", "v1", hex(64)),
            "dop_v1_token".into(),
        ),
        ("github-token", github(), format!("gh{}_{}", "p", r(WORD, 20))),
        (
            "github-fine-grained-token",
            format!("github_{}_{}", "pat", r(WORD, 82)),
            "github_pat_your_token".into(),
        ),
        (
            "gitlab-token",
            format!("gl{}-{}", "pat", r(WORD, 20)),
            "glpat-xxxxxxxxxxxxxxxxxxxx".into(),
        ),
        ("npm-token", format!("npm{}{}", "_", r(WORD, 36)), "npm_config_registry".into()),
        (
            "npmrc-auth",
            format!("//npm.a.org/:_auth{}={}", "Token", hex(40)),
            "//npm.a.org/:_authToken=${NPM_TOKEN_OF_THE_CI}".into(),
        ),
        (
            "pypi-token",
            format!("pypi-{}{}", "AgEIcHlwaS5vcmc", r(URL64, 100)),
            "pypi-AgE".into(),
        ),
        (
            "crates-io-token",
            format!("ci{}{}", "o", r(WORD, 32)),
            "precios delicious".into(),
        ),
        (
            "docker-hub-token",
            format!("dckr_{}_{}", "pat", r(URL64, 27)),
            "dckr_pat_".into(),
        ),
        (
            "docker-config-auth",
            format!("\"auths\": {{\"x\": {{\"{}\": \"{}==\"}}}}", "auth", r(BASE64, 26)),
            "\"auth\": \"none\"".into(),
        ),
        ("vault-token", format!("hv{}.{}", "s", r(URL64, 90)), "hvs.a".into()),
        (
            "anthropic-key",
            format!("sk-{}-api03-{}AA", "ant", r(URL64, 93)),
            "sk-ant-xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx".into(),
        ),
        (
            "openrouter-key",
            format!("sk-{}-v1-{}", "or", hex(64)),
            "sk-or-v1-0".into(),
        ),
        (
            "openai-key",
            format!("sk-{}-{}", "proj", r(URL64, 120)),
            "sk-proj-your-key".into(),
        ),
        (
            "sk-key",
            format!("sk{}{}", "-", hex(32)),
            format!("sk-{}", "a".repeat(32)),
        ),
        (
            "zhipu-key",
            format!("ZHIPUAI: {}.{}", hex(32), r(WORD, 16)),
            "zhipu: 4.0".into(),
        ),
        (
            "hugging-face-token",
            format!("h{}_{}", "f", r(LETTERS, 34)),
            "hf_hub_download".into(),
        ),
        (
            "model-service-key",
            format!("gs{}_{}", "k", r(WORD, 52)),
            "gsk_your_key".into(),
        ),
        (
            "slack-token",
            format!("xo{}-{}-{}-{}", "xb", "2489071635", "9750318264", r(WORD, 24)),
            "xoxb-short".into(),
        ),
        (
            "slack-webhook",
            format!("https://hooks.slack.com/{}/T{}/B{}/{}", "services", r(UPPER, 10), r(UPPER, 10), r(WORD, 24)),
            "https://hooks.slack.com/services/".into(),
        ),
        (
            "discord-webhook",
            format!("https://discord.com/api/{}/{}/{}", "webhooks", "123400789012345678", r(URL64, 68)),
            "https://discord.com/api/webhooks/1/a".into(),
        ),
        (
            "discord-token",
            format!("DISCORD_BOT={}{}.{}.{}", "M", r(WORD, 23), r(WORD, 6), r(URL64, 38)),
            "DISCORD_BOT=MODULE.version.number".into(),
        ),
        (
            "telegram-bot-token",
            format!("https://api.telegram.org/bot{}:{}{}/getMe", "1047382956", "AA", r(URL64, 33)),
            "1047382956:AAbcd".into(),
        ),
        (
            "wecom-webhook",
            format!("https://qyapi.weixin.qq.com/cgi-bin/webhook/{}?key={uuid}", "send"),
            "https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=KEY".into(),
        ),
        (
            "feishu-webhook",
            format!("https://open.feishu.cn/open-apis/bot/v2/{}/{uuid}", "hook"),
            "https://open.feishu.cn/open-apis/bot/v2/hook/".into(),
        ),
        (
            "dingtalk-webhook",
            format!("https://oapi.dingtalk.com/robot/{}?access_token={}", "send", hex(64)),
            "https://oapi.dingtalk.com/robot/send?access_token=TOKEN".into(),
        ),
        (
            "app-secret",
            format!("\"app_{}\": \"{}\"", "secret", hex(32)),
            "\"app_secret\": \"$FEISHU_APP_SECRET\"".into(),
        ),
        (
            "stripe-key",
            format!("sk_{}_{}", "live", r(WORD, 24)),
            "sk_live_...".into(),
        ),
        (
            "twilio-key",
            format!("TWILIO_AUTH_{}={}", "TOKEN", hex(32)),
            "TWILIO_NUMBER=15550100".into(),
        ),
        (
            "sendgrid-key",
            format!("SG{}{}.{}", ".", r(URL64, 22), r(URL64, 43)),
            "MSG.sender.name".into(),
        ),
        ("mailgun-key", format!("ke{}-{}", "y", hex(32)), "key-value".into()),
        (
            "jwt",
            format!("ey{}{}.eyJ{}.{}", "J", r(URL64, 160), r(URL64, 60), r(URL64, 43)),
            "eyJhbGciOiJIUzI1NiJ9.payload".into(),
        ),
        (
            "database-url",
            format!("postgres://me:{}@db.a.org/x", "Wq7!pLm2"),
            "postgres://me:${PGPASSWORD}@db.a.org/x postgresql://localhost:5432/x".into(),
        ),
        (
            "basic-auth-url",
            format!("https://me:{}@a.org/x", "Wq7!pLm2"),
            "https://a.org:8080/@me/x git@a.org:x http://user:password@a.org".into(),
        ),
        (
            "netrc-password",
            format!("machine a.org\n  login me\n  {} Wq7pLm2", "password"),
            "the machine has a login and a password".into(),
        ),
        (
            "authorization-header",
            format!("curl -H 'Authorization: {} {}'", "Bearer", r(WORD, 40)),
            "Authorization: Bearer $TOKEN".into(),
        ),
        (
            "generic-password",
            format!("数据库密码：{}，不要外传", "Wq7!pLm2x"),
            "password: string, password = \"changeme1\" password=<password1> passwd: 8 密码是用户的".into(),
        ),
        (
            "generic-key",
            format!("my_{} = \"{}\"", "api_key", r(WORD, 28)),
            "token = get_token2(request) api_key: ${API_KEY_2} \"nextPageToken\": \"CAUQAA1b2C3d4E5f6G7h\" secret: my-secret-prod-2 token=os.environ.X1".into(),
        ),
    ]
}

#[test]
fn each_rule_finds_its_sample() {
    for (rule, sample, _) in samples() {
        let spoken = [
            sample.clone(),
            format!("前文 {sample} 后文"),
            format!("x\n{sample}\ny"),
        ];
        for text in spoken {
            let rules = rules_in(&text);
            assert!(
                rules.iter().any(|r| r == rule),
                "{rule}: {rules:?} in {text}"
            );
        }
    }
}

/// A sample has one secret, unless it says more about itself than it must.
#[test]
fn a_secret_is_found_by_one_rule() {
    for (rule, sample, _) in samples() {
        assert_eq!(rules_in(&sample), [rule], "{sample}");
    }
}

#[test]
fn each_rule_is_found_inside_json() {
    for (rule, sample, _) in samples() {
        let mut text = sample.clone();
        for layer in 1..=3 {
            text = serde_json::to_string(&serde_json::json!({"output": text})).unwrap();
            let rules = rules_in(&text);
            assert_eq!(rules, [rule], "layer {layer}: {text}");
        }
    }
}

#[test]
fn what_only_looks_like_a_secret_is_none() {
    for (rule, _, near) in samples() {
        let found = scan(&near);
        assert!(found.is_empty(), "{rule}: {found:?} in {near}");
    }
}

#[test]
fn every_rule_has_a_sample_and_a_line_in_the_documents() {
    let ids: BTreeSet<&str> = built_in().rules.iter().map(|r| r.id.as_str()).collect();
    let sampled: BTreeSet<&str> = samples().into_iter().map(|(rule, ..)| rule).collect();
    assert_eq!(ids, sampled);
    assert_eq!(ids.len(), built_in().rules.len(), "an id twice");
    let page = include_str!("../../../docs/secrets.md");
    for rule in &built_in().rules {
        let line = format!("| `{}` | {} |", rule.id, rule.description);
        assert!(page.contains(&line), "docs/secrets.md lacks: {line}");
    }
}

/// Without keywords a rule would run on every file; one in Unicode is slow in Chinese text.
#[test]
fn the_rules_are_fast_ones() {
    for rule in &built_in().rules {
        assert!(!rule.keywords.is_empty(), "{}", rule.id);
        let regex = rule.regex.as_ref().unwrap();
        let ascii = regex::bytes::RegexBuilder::new(regex.as_str())
            .unicode(false)
            .build();
        assert!(ascii.is_ok(), "{}", rule.id);
    }
}

#[test]
fn no_secret_is_shown() {
    for (rule, sample, _) in samples() {
        for found in scan(&sample) {
            // Four characters from the beginning and two from the end, at most.
            let shown: Vec<&str> = found.shown.split('…').collect();
            assert_eq!(shown.len(), 2, "{rule}: {found:?}");
            assert!(
                shown[0].len() <= 4 && shown[1].len() <= 2,
                "{rule}: {found:?}"
            );
            let told = serde_json::to_string(&found).unwrap();
            let words = sample.split(|c: char| !c.is_ascii_alphanumeric());
            for word in words.filter(|word| word.len() > 12) {
                assert!(!told.contains(word), "{rule}: {word} in {told}");
            }
        }
    }
}
