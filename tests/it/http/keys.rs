//! API keys and their quotas: the file, who is let in, and how often.

use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use cognate::model::ModelError;
use cognate_collections::CollectionError;
use cognate_server::http::auth::keys;
use cognate_server::http::auth::keys::{
    FILE_BYTES, HEADER_BYTES, Keys, KeysError, MAX_KEYS, Scope,
};
use cognate_server::http::auth::quota::Quota;
use rustix::process::geteuid;

/// Collections that a key is limited to.
const NAMES: &str = "news,shop-*";

fn line(id: &str, scope: Scope, key: &str) -> String {
    keys::line(id, scope, key).unwrap()
}

fn parse(text: &str) -> Result<Keys, KeysError> {
    Keys::parse(text, Path::new("keys"))
}

fn three() -> Keys {
    let lines = [
        line("first", Scope::Query, "one"),
        "# rotated in spring".to_owned(),
        String::new(),
        line("middle", Scope::Admin, "two"),
        format!("  {}  ", line("last", Scope::Query, "three")),
    ];
    parse(&lines.join("\r\n")).unwrap()
}

#[test]
fn a_key_is_found_wherever_it_stands() {
    let keys = three();
    let found = |key: &str| keys.check(Some(key.as_bytes())).map(|key| (key.index, &*key.id));
    assert_eq!(found("Bearer one"), Some((0, "first")));
    assert_eq!(found("Bearer two"), Some((1, "middle")));
    assert_eq!(found("Bearer three"), Some((2, "last")));
    assert_eq!(found("Bearer four"), None);
    let many: Vec<String> =
        (0..MAX_KEYS).map(|n| line(&format!("k{n}"), Scope::Query, &format!("key {n}"))).collect();
    let many = parse(&many.join("\n")).unwrap();
    assert_eq!(many.all().len(), MAX_KEYS);
    for n in [0, 1, MAX_KEYS / 2, MAX_KEYS - 1] {
        assert_eq!(many.check(Some(format!("key {n}").as_bytes())).map(|key| key.index), Some(n));
    }
}

/// Whoever reads the message is seldom the user that a service in a container is.
#[test]
fn a_refusal_of_permission_names_the_user() {
    let told = |code| {
        let (path, source) = (|| PathBuf::from("data"), || io::Error::from_raw_os_error(code));
        [
            KeysError::Io { path: path(), source: source() }.to_string(),
            CollectionError::Read { path: path(), source: source() }.to_string(),
            CollectionError::Write { path: path(), source: source() }.to_string(),
            ModelError::Io { path: path(), action: "open", source: source() }.to_string(),
        ]
    };
    let end = format!(": Permission denied (os error 13), as user {}", geteuid().as_raw());
    for message in told(13) {
        assert!(message.ends_with(&end), "{message}");
    }
    for message in told(2) {
        assert!(message.ends_with("(os error 2)"), "{message}");
    }
}

#[test]
fn a_key_is_taken_with_its_scheme_or_bare() {
    let keys = three();
    for good in ["one", "Bearer one", "bearer one", "BEARER  one", " Bearer one "] {
        assert_eq!(keys.check(Some(good.as_bytes())).map(|key| key.index), Some(0), "{good}");
    }
    for wrong in ["", "Bearer", "Bearer ", "Bearerone", "Basic one", "one,two", "ONE", "one\0"] {
        let refused = keys.check(Some(wrong.as_bytes())).map(|key| key.index);
        assert_eq!(refused, None, "{wrong}");
    }
    assert_eq!(keys.check(None).map(|key| key.index), None);
    assert!(keys.check(Some(&[0xff; 9])).is_none());
    // A key of nothing would let everybody in who sends none; nor does length make one.
    let empty = parse(&line("none", Scope::Query, "")).unwrap();
    assert_eq!(empty.check(None).map(|key| key.index), None);
    let long = "x".repeat(HEADER_BYTES);
    let keys = parse(&line("long", Scope::Query, &long)).unwrap();
    assert_eq!(keys.check(Some(long.as_bytes())).map(|key| key.index), Some(0));
    let longer = format!(" {long}");
    let refused = keys.check(Some(longer.as_bytes())).map(|key| key.index);
    assert_eq!(refused, None);
}

#[test]
fn admin_includes_query() {
    assert!(Scope::Admin.includes(Scope::Query) && Scope::Admin.includes(Scope::Admin));
    assert!(Scope::Query.includes(Scope::Query) && !Scope::Query.includes(Scope::Admin));
}

#[test]
fn a_wrong_line_is_named_and_not_quoted() {
    let good = line("web", Scope::Query, "secret-key");
    let digest = good.rsplit_once(':').unwrap().1;
    let table = [
        ("secret-key".to_owned(), "it is not id:scope:blake3-hex"),
        (format!("web:query:{digest}:a:b"), "it is not id:scope:blake3-hex"),
        (format!("web:query:{digest}:"), "the collections are not names"),
        (format!("web:query:{digest}:Shop"), "the collections are not names"),
        (format!("web:query:{digest}:a,,b"), "the collections are not names"),
        (format!("web:query:{digest}:a*b"), "the collections are not names"),
        (format!("web:query:{digest}:*"), "`*` alone is every collection"),
        (format!("web:{digest}"), "it is not id:scope:blake3-hex"),
        (format!(":query:{digest}"), "the id is not 1 to 64 of"),
        (format!("a b:query:{digest}"), "the id is not 1 to 64 of"),
        (format!("{}:query:{digest}", "x".repeat(65)), "the id is not 1 to 64 of"),
        (format!("ü:query:{digest}"), "the id is not 1 to 64 of"),
        (format!("web:root:{digest}"), "the scope is none of query, collection and admin"),
        (format!("web:Query:{digest}"), "the scope is none of query, collection and admin"),
        ("web:query:secret-key".to_owned(), "the digest is not 64 hex digits"),
        (format!("web:query:{}", &digest[1..]), "the digest is not 64 hex digits"),
        (format!("{good}\nweb:query:{}", "0".repeat(64)), "the id is taken by a line above"),
        (format!("{good}\nother:query:{digest}"), "the key is that of a line above"),
    ];
    for (text, expected) in table {
        let text = format!("# keys\n{text}\n");
        let error = parse(&text).unwrap_err();
        let told = format!("{error} {error:?}");
        let number = text.lines().count();
        assert!(error.to_string().starts_with(&format!("keys:{number}: {expected}")), "{error}");
        assert!(!told.contains("secret") && !told.contains(&digest[1..]), "{told}");
    }
    for empty in ["", "\n\n", "# web\n"] {
        assert!(parse(empty).unwrap_err().to_string().contains("has no key"));
    }
    let keys = parse(&good).unwrap();
    assert!(!format!("{keys:?}").contains(&digest[..8]), "{keys:?}");
}

#[test]
fn too_many_keys_and_too_large_files_are_refused() {
    let all = |most: usize| -> String {
        (0..most).map(|n| line(&format!("k{n}"), Scope::Query, &n.to_string()) + "\n").collect()
    };
    let error = parse(&all(MAX_KEYS + 1)).unwrap_err();
    assert!(matches!(error, KeysError::Line { line, .. } if line == MAX_KEYS + 1), "{error}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    let mut text = all(1);
    text += &"#".repeat(FILE_BYTES as usize - text.len());
    std::fs::write(&path, &text).unwrap();
    assert_eq!(Keys::read(&path).unwrap().all().len(), 1);
    std::fs::write(&path, text + "#").unwrap();
    assert!(matches!(Keys::read(&path), Err(KeysError::Whole { .. })));
    std::fs::write(&path, b"a:query:\xff").unwrap();
    assert!(matches!(Keys::read(&path), Err(KeysError::Whole { .. })));
    assert!(matches!(Keys::read(folder.path()), Err(KeysError::NotAFile { .. })));
    let missing = Keys::read(&folder.path().join("none")).unwrap_err();
    assert!(matches!(missing, KeysError::Io { .. }), "{missing}");
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    assert!(matches!(Keys::read(&pipe), Err(KeysError::NotAFile { .. })));
}

#[test]
fn a_quota_counts_each_key_for_itself_and_refills() {
    let quota = Quota::new(2, Some(2));
    let take = |key: usize, milliseconds: u64| {
        let now = Duration::from_millis(milliseconds);
        quota.bucket(key).unwrap().take_at(NonZeroU32::MIN, now)
    };
    assert_eq!(quota.bucket(0).unwrap().per_second().get(), 2);
    for _ in 0..2 {
        assert_eq!(take(0, 0), Ok(()));
    }
    assert_eq!(take(0, 0), Err(Duration::from_millis(500)));
    assert_eq!(take(1, 0), Ok(()));
    assert_eq!(take(0, 499), Err(Duration::from_millis(1)));
    assert_eq!(take(0, 501), Ok(()));
    assert_eq!(take(0, 501), Err(Duration::from_millis(499)));
    let within = (0..100).filter(|_| take(0, 3_600_000).is_ok()).count();
    assert_eq!(within, 2);
}

#[test]
fn a_bucket_gives_several_requests_at_once_and_never_more_than_it_holds() {
    let quota = Quota::new(1, Some(10));
    let take = |requests: u32, milliseconds: u64| {
        let requests = NonZeroU32::new(requests).unwrap();
        quota.bucket(0).unwrap().take_at(requests, Duration::from_millis(milliseconds))
    };
    assert_eq!(take(7, 0), Ok(()));
    assert_eq!(take(7, 0), Err(Duration::from_millis(400)));
    assert_eq!(take(7, 400), Ok(()));
    assert_eq!(take(1000, 1400), Ok(()), "as many as there are in a second");
    assert!(take(1, 1400).is_err());
}

/// However many threads ask, a bucket gives no more than its rate.
#[test]
fn threads_share_a_bucket() {
    let quota = Quota::new(1, Some(1000));
    let bucket = quota.bucket(0).unwrap();
    let taken =
        || (0..1000).filter(|_| bucket.take_at(NonZeroU32::MIN, Duration::ZERO).is_ok()).count();
    let sum: usize = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4).map(|_| scope.spawn(taken)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    });
    assert_eq!(sum, 1000);
}

#[test]
fn a_key_that_stays_goes_on_with_its_quota() {
    let same = |key: &str| line(key, Scope::Query, key);
    let (old, new) = (["a", "b"].map(same).join("\n"), ["c", "b"].map(same).join("\n"));
    let (old, new) = (parse(&old).unwrap(), parse(&new).unwrap());
    assert_eq!(new.places_in(&old), [None, Some(1)]);
    let before = Quota::new(2, Some(1));
    let take = |quota: &Quota, key: usize| quota.bucket(key).unwrap().take(NonZeroU32::MIN);
    assert!((0..2).all(|key| take(&before, key).is_ok()));
    let after = Quota::new(2, Some(1)).going_on(&before, &new.places_in(&old));
    assert!(take(&after, 0).is_ok(), "a new key begins anew");
    assert!(take(&after, 1).is_err(), "a reload does not refill the others");
}

#[test]
fn without_a_rate_there_is_no_quota() {
    let quota = Quota::new(1, None);
    assert!(quota.bucket(0).is_none());
}

#[test]
fn a_drawn_key_is_let_in_by_its_line() {
    let draw = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_cognate"));
        command.arg("keygen").args(arguments).output().unwrap()
    };
    let mut drawn = Vec::new();
    for (arguments, scope) in [
        (&["web.1_a-B"][..], Scope::Query),
        (&["web.1_a-B", "--scope", "query"], Scope::Query),
        (&["web.1_a-B", "--scope", "admin"], Scope::Admin),
        (&["web.1_a-B", "--scope", "collection", "--collections", NAMES], Scope::Collection),
    ] {
        let output = draw(arguments);
        assert!(output.status.success());
        let text = String::from_utf8(output.stdout).unwrap();
        let [key, line] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
        assert!(key.starts_with("cog_") && key.len() == 4 + 43, "{key}");
        assert!(String::from_utf8(output.stderr).unwrap().contains("shown this once"));
        let keys = parse(line).unwrap();
        let found = keys.check(Some(format!("Bearer {key}").as_bytes())).cloned().unwrap();
        assert_eq!((&*found.id, found.scope), ("web.1_a-B", scope));
        let names = found.collections.map(|names| names.to_string());
        assert_eq!(names.as_deref(), (scope == Scope::Collection).then_some(NAMES));
        drawn.push(key.to_owned());
    }
    drawn.sort();
    drawn.dedup();
    assert_eq!(drawn.len(), 4);
    let wrong = [
        &["a b"][..],
        &["web", "--scope", "root"],
        &["web", "--collections", "*"],
        &["web", "--collections", "Shop"],
        &[],
    ];
    for wrong in wrong {
        let output = draw(wrong);
        assert_eq!(output.status.code(), Some(2), "{wrong:?}");
        assert!(output.stdout.is_empty());
    }
}
