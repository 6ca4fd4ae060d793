//! Model files for the scenarios: one that answers otherwise, one that is too large, and broken
//! ones. They are put in place as `cognate pack` does it: written beside, synced, renamed.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;
use std::{fs, io};

use anyhow::Context;
use cognate::model::Model;
use cognate::model::format::Dtype;
use cognate::model::writer::{Draft, Source, Table};

use crate::chance::Chance;

/// Writes the model with other weights of its words, so that nearly every score differs.
pub fn write_variant(model: &Model, target: &Path) -> anyhow::Result<()> {
    let mut draft = Draft::from_model(model);
    let scales = draft.tables.iter_mut().find(|table| table.name == "scales");
    let scales = scales.context("a variant is made from a model with scales")?;
    let Source::Bytes(bytes) = &scales.source else {
        anyhow::bail!("a draft of a model holds bytes");
    };
    let mut changed = Vec::with_capacity(bytes.len());
    for (row, number) in bytes.chunks_exact(4).enumerate() {
        let scale = number.try_into().map(f32::from_le_bytes)?;
        let factor = [0.5, 0.75, 1.0, 1.5, 2.0][row % 5];
        changed.extend_from_slice(&(scale * factor).to_le_bytes());
    }
    scales.source = Source::Bytes(Cow::Owned(changed));
    draft.write(target)?;
    Ok(())
}

/// Writes the model with a section of `bytes` zeros that no method reads.
pub fn write_ballast(model: &Model, target: &Path, bytes: u64) -> anyhow::Result<()> {
    let mut draft = Draft::from_model(model);
    let stream = Box::new(move |out: &mut dyn Write| {
        io::copy(&mut io::Read::take(io::repeat(0), bytes), out).map(|_| ())
    });
    let ballast = Table {
        name: "zeros".to_owned(),
        dtype: Dtype::U8,
        shape: vec![bytes],
        source: Source::Stream(stream),
    };
    draft.set_section("ballast", "{}".to_owned(), vec![ballast]);
    draft.write(target)?;
    Ok(())
}

/// Puts bytes where a model is, so that a reader sees the old file or the new one.
pub fn replace(target: &Path, bytes: &[u8]) -> io::Result<()> {
    let beside = target.with_extension("new");
    let mut file = fs::File::create(&beside)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&beside, target)
}

/// The same without keeping the runtime waiting for the disk.
pub async fn replace_behind(target: &Path, bytes: &std::sync::Arc<Vec<u8>>) -> anyhow::Result<()> {
    let (target, bytes) = (target.to_owned(), std::sync::Arc::clone(bytes));
    tokio::task::spawn_blocking(move || replace(&target, &bytes)).await??;
    Ok(())
}

/// Returns files that a server must refuse as a model, each with the name of its fault.
pub fn broken(good: &[u8], chance: &mut Chance) -> Vec<(String, Vec<u8>)> {
    let mut files = Vec::new();
    let cuts = [0, 1, 7, 8, 9, 64, 1000, good.len() / 2, good.len() - 1];
    for cut in cuts.into_iter().chain((0..4).map(|_| chance.below(good.len()))) {
        files.push((format!("cut after {cut} bytes"), good[..cut].to_vec()));
    }
    for _ in 0..12 {
        let (at, bit) = (chance.below(good.len()), chance.below(8));
        let mut bytes = good.to_vec();
        bytes[at] ^= 1 << bit;
        files.push((format!("bit {bit} of byte {at} flipped"), bytes));
    }
    for length in [0, u64::MAX, 1 << 63, good.len() as u64] {
        let mut bytes = good.to_vec();
        bytes[..8].copy_from_slice(&length.to_le_bytes());
        files.push((format!("a header of {length} bytes"), bytes));
    }
    let mut trailing = good.to_vec();
    trailing.extend_from_slice(&[0; 64]);
    files.push(("bytes after the end".to_owned(), trailing));
    files.push(("text".to_owned(), b"this is no model\n".repeat(1000)));
    files
}
