//! Where bytes go that are meant for a path: symbolic links are followed, and two paths of one file are found out.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::{fs, io};

use rustix::io::Errno;

/// The file that a path leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The file, symbolic links resolved.
    pub path: PathBuf,
    /// The mode of the existing file, which the new file gets; `None` if there is no file yet.
    pub mode: Option<u32>,
}

/// Most symbolic links that are followed one after another, as the kernel has it.
const MAX_LINKS: usize = 40;

impl Target {
    /// Follows symbolic links to their target, which may not exist yet. Only a regular file is ever
    /// replaced.
    pub fn follow(path: &Path) -> io::Result<Self> {
        let mut path = path.to_owned();
        for _ in 0..=MAX_LINKS {
            match fs::symlink_metadata(&path) {
                Ok(found) if found.is_symlink() => {
                    path = directory_of(&path).join(fs::read_link(&path)?);
                }
                Ok(found) if found.is_file() => {
                    let mode = Some(found.permissions().mode() & 0o777);
                    return Ok(Self { path: fs::canonicalize(path)?, mode });
                }
                Ok(_) => {
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    return Ok(Self { path, mode: None });
                }
                Err(error) => return Err(error),
            }
        }
        Err(Errno::LOOP.into())
    }

    /// Whether this path leads to the same file.
    pub fn is(&self, path: &Path) -> bool {
        fs::canonicalize(path).is_ok_and(|path| path == self.path)
    }
}

/// The directory of a file, `.` for a bare name.
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// The problem, if a file to write is also a file to read, or two files to write are the same. `written` has
/// each path with its flag.
pub fn clash<'p>(
    written: &[(&str, &Path)],
    read: impl IntoIterator<Item = &'p Path>,
) -> Option<String> {
    let written: Vec<_> =
        written.iter().map(|&(flag, path)| (flag, path, whereabouts(path))).collect();
    for path in read {
        let place = whereabouts(path);
        if let Some((flag, ..)) = written.iter().find(|(.., known)| *known == place) {
            return Some(format!("{flag}: {} is one of the files that are read", path.display()));
        }
    }
    written.iter().enumerate().find_map(|(at, (flag, path, place))| {
        let (other, ..) = written.iter().take(at).find(|(.., known)| known == place)?;
        Some(format!("{flag}: {} is what {other} names, too", path.display()))
    })
}

/// Returns the canonical form of a path, whether or not a file exists there.
fn whereabouts(path: &Path) -> PathBuf {
    let found = || {
        let path = Target::follow(path).ok()?.path;
        let folder = fs::canonicalize(directory_of(&path)).ok()?;
        Some(folder.join(path.file_name()?))
    };
    found().unwrap_or_else(|| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_read_or_written_twice_is_found_by_any_of_its_paths() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("texts"), "").unwrap();
        std::os::unix::fs::symlink(at("texts"), at("link")).unwrap();
        std::os::unix::fs::symlink(at("new"), at("link-to-new")).unwrap();
        let clash_of = |written: [&str; 2], read: &str| {
            let [one, other] = written.map(at);
            clash(&[("--one", &one), ("--other", &other)], [at(read).as_path()])
        };
        assert_eq!(clash_of(["new", "newer"], "texts"), None);
        let problem = clash_of(["new", "link"], "texts").unwrap();
        assert!(problem.starts_with("--other: ") && problem.contains("are read"), "{problem}");
        let problem = clash_of(["new", "link-to-new"], "texts").unwrap();
        assert!(problem.starts_with("--other: ") && problem.contains("--one names"), "{problem}");
    }
}
