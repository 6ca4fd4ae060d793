//! A folder, a log or a lock that was replaced, removed, or was something else from the beginning.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use super::{item, log_of, open, with_batches};
use crate::embedded::{EmbeddedCollection, EmbeddedHome};
use crate::{Collection, CollectionError, Home, Limits, Result, Settings, Write, back_up};

fn is_away<T: std::fmt::Debug>(answer: Result<T>) -> bool {
    matches!(answer, Err(CollectionError::Away { .. }))
}

fn put(news: &EmbeddedCollection, at: usize) -> Result<()> {
    news.put(vec![item(at, "the flood", 0)], 0).map(drop)
}

fn holding(count: usize) -> (tempfile::TempDir, EmbeddedHome, Arc<EmbeddedCollection>) {
    let folder = with_batches(count);
    let home = open(folder.path());
    let news = home.named("news").unwrap();
    (folder, home, news)
}

fn replace_log(folder: &tempfile::TempDir) {
    let (log, copy) = (log_of(folder), folder.path().join("copy"));
    fs::copy(&log, &copy).unwrap();
    fs::rename(&copy, &log).unwrap();
}

#[test]
fn nothing_is_acknowledged_into_a_log_that_was_replaced_or_deleted() {
    for replaced in [true, false] {
        let (folder, home, news) = holding(3);
        let log = log_of(&folder);
        match replaced {
            true => replace_log(&folder),
            false => fs::remove_file(&log).unwrap(),
        }
        let before = fs::read(&log).ok();
        assert!(is_away(put(&news, 7)), "the first write after it");
        // Acknowledged items are shown; items without acknowledgement are undone.
        assert_eq!((news.told(0).unwrap().items, news.get("n7", 0).is_none()), (3, true));
        assert!(is_away(put(&news, 8)) && is_away(news.compact(0)));
        assert!(is_away(home.delete("news")), "another's log is not deleted");
        assert_eq!(home.unwritable(), 1);
        news.tidy(0).expect("it was told when it was found");
        drop((news, home));
        assert_eq!(fs::read(&log).ok(), before, "nothing is written there");
    }
}

#[test]
fn nothing_is_acknowledged_behind_the_end_of_a_log_that_was_cut_off() {
    for by_chores in [true, false] {
        let (folder, home, news) = holding(3);
        let file = fs::OpenOptions::new().write(true).open(log_of(&folder)).unwrap();
        file.set_len(100).unwrap();
        match by_chores {
            true => assert!(is_away(news.tidy(0))),
            false => assert!(is_away(put(&news, 7))),
        }
        assert!(is_away(put(&news, 8)));
        assert_eq!((news.told(0).unwrap().items, home.unwritable()), (3, 1));
        drop((news, home));
        assert_eq!(fs::metadata(log_of(&folder)).unwrap().len(), 100, "nothing is written there");
    }
}

#[test]
fn a_folder_that_was_deleted_or_moved_takes_nothing_more() {
    for deleted in [true, false] {
        let (folder, home, news) = holding(3);
        let (more, _) = home.make("more", Settings::default(), 0).unwrap();
        let away = folder.path().with_extension("away");
        fs::rename(folder.path(), &away).unwrap();
        match deleted {
            true => fs::remove_dir_all(&away).unwrap(),
            false => {
                let copied = Command::new("cp").arg("-r").args([&away, folder.path()]).status();
                assert!(copied.unwrap().success());
            }
        }
        assert!(is_away(home.make("third", Settings::default(), 0)));
        home.look_after().expect("it is told once");
        assert_eq!(home.unwritable(), 2);
        for one in [&news, &more] {
            assert!(is_away(put(one, 7)));
        }
        assert!(is_away(home.delete("news")));
        assert_eq!(news.told(0).unwrap().items, 3, "it is shown as it was");
        drop((news, more, home));
        assert_eq!(folder.path().join("news").exists(), !deleted, "nothing is made there");
        let _ = fs::remove_dir_all(&away);
    }
}

#[test]
fn a_lock_that_is_removed_lets_no_second_process_in() {
    let (folder, home, news) = holding(2);
    fs::remove_file(folder.path().join(".lock")).unwrap();
    let second = EmbeddedHome::open(folder.path(), Limits::DEFAULT).unwrap_err();
    assert!(matches!(second, CollectionError::InUse { .. }), "{second}");
    // The first process accepts no more changes either, since it cannot know how long it stays
    // alone.
    assert!(is_away(home.look_after()));
    assert!(is_away(put(&news, 7)));
    drop((news, home));
    assert_eq!(open(folder.path()).named("news").unwrap().told(0).unwrap().items, 2);

    // Where there is no log that another would have to open, none is made.
    let folder = tempfile::tempdir().unwrap();
    let (first, lock) = (open(folder.path()), folder.path().join(".lock"));
    fs::remove_file(&lock).unwrap();
    let second = open(folder.path());
    assert!(is_away(first.make("news", Settings::default(), 0)));
    second.make("news", Settings::default(), 0).unwrap();
    assert_eq!(first.unwritable(), 1);
}

/// The process does not stop when it rewrites, creates or deletes a log itself.
#[test]
fn what_the_process_does_itself_is_not_taken_for_it() {
    let (folder, home, news) = holding(2);
    let (_, pending) = news.write(Write::Put(vec![item(5, "a", 0)]), 0).unwrap();
    news.compact(0).unwrap();
    news.wait_durable(pending).unwrap();
    put(&news, 6).unwrap();
    // The new log is locked as the old one was.
    fs::remove_file(folder.path().join(".lock")).unwrap();
    let second = EmbeddedHome::open(folder.path(), Limits::DEFAULT).unwrap_err();
    assert!(matches!(second, CollectionError::InUse { .. }), "{second}");
    drop((news, home));
    let home = open(folder.path());
    let news = home.named("news").unwrap();
    let (_, pending) = news.write(Write::Put(vec![item(7, "a", 0)]), 0).unwrap();
    home.delete("news").unwrap();
    news.wait_durable(pending).expect("it was written before the collection was deleted");
    assert_eq!(home.unwritable(), 0);
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn a_collection_without_its_log_is_no_empty_one() {
    let folder = with_batches(2);
    let log = log_of(&folder);
    let kept = folder.path().join("kept");
    fs::rename(&log, &kept).unwrap();
    let odd: [(&dyn Fn(), &str); 4] = [
        (&|| (), "items.log: it is missing"),
        (&|| fs::create_dir(&log).unwrap(), "items.log: it is not a regular file"),
        (&|| make_pipe(&log), "items.log: it is not a regular file"),
        (&|| symlink("/dev/null", &log).unwrap(), "items.log: it is not a regular file"),
    ];
    for (put, says) in odd {
        put();
        let refused = EmbeddedHome::open(folder.path(), Limits::DEFAULT).unwrap_err();
        assert!(matches!(refused, CollectionError::NoLog { .. }), "{refused}");
        assert!(refused.to_string().contains(says), "{refused}");
        let copy = folder.path().with_extension("copy");
        let refused = back_up(folder.path(), &copy, &Default::default()).unwrap_err();
        assert!(refused.to_string().contains("items.log"), "{refused}");
        assert!(!copy.exists());
        let _ = fs::remove_file(&log).or_else(|_| fs::remove_dir(&log));
    }
    fs::rename(&kept, &log).unwrap();
    assert_eq!(open(folder.path()).named("news").unwrap().told(0).unwrap().items, 2);
}

#[test]
fn a_log_longer_than_what_is_copied_at_once_is_copied_whole() {
    let (folder, _home, news) = holding(2);
    news.put((0..400).map(|at| item(at, &"long ".repeat(600), 0)).collect(), 0).unwrap();
    let copy = folder.path().with_extension("copy");
    let done = back_up(folder.path(), &copy, &Default::default()).unwrap();
    let copied = fs::read(copy.join("news/items.log")).unwrap();
    assert!(copied == fs::read(log_of(&folder)).unwrap() && copied.len() > 1 << 20);
    assert_eq!(done.bytes, copied.len() as u64);
    fs::remove_dir_all(&copy).unwrap();
}

#[test]
fn a_link_to_nothing_is_called_so() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("data");
    symlink("gone/away", &link).unwrap();
    for path in [link.clone(), link.join("more")] {
        let refused = EmbeddedHome::open(&path, Limits::DEFAULT).unwrap_err().to_string();
        let says = format!("{} is a link to gone/away, which is not there", link.display());
        assert!(refused.contains(&says), "{refused}");
    }
}
