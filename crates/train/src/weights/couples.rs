//! Labelled couples of texts, read and divided into those for training and those for validation.

use std::path::PathBuf;

use cognate::model::provenance::TrainingFile;
use cognate::model::{Model, Phrase};
use cognate_files::rows::Pairs;
use rayon::prelude::*;

use crate::run::{trained_on, unfit_data};
use crate::sampling::generator;
use crate::weights::{FOLDS, HALF, HELD_OUT, Kappa, Loss, ORDER_OF_COUPLES, WeightsOptions};
use crate::{Result, TrainError};

#[derive(Debug, Clone)]
pub(super) struct Couple {
    pub(super) related: bool,
    pub(super) texts: (String, String),
}

#[derive(Debug, Default)]
pub(super) struct CoupleSplit {
    pub(super) couples: Vec<Couple>,
    pub(super) by_label: [Vec<usize>; 2],
    pub(super) validation_places: Vec<usize>,
    pub(super) left_out: usize,
    pub(super) files: [Vec<TrainingFile>; 2],
}

impl CoupleSplit {
    pub(super) fn read(model: &Model, options: &WeightsOptions) -> Result<Self> {
        let mut found = Couples::read(model, &options.couples)?;
        let mut by_label = found.by_label();
        let mut files = [std::mem::take(&mut found.files), Vec::new()];
        let validation_places = match &options.validation {
            Some(path) => {
                let mut others = Couples::read(model, std::slice::from_ref(path))?;
                let first = found.usable.len();
                found.usable.append(&mut others.usable);
                found.left_out += others.left_out;
                files[1] = others.files;
                (first..found.usable.len()).collect()
            }
            None => hold_out(&mut by_label, options.seed),
        };
        let Couples { usable: couples, left_out, .. } = found;
        let parted = Self { couples, by_label, validation_places, left_out, files };
        parted.check(options)?;
        Ok(parted)
    }

    fn check(&self, options: &WeightsOptions) -> Result<()> {
        let searched = options.loss == Loss::Median && options.kappa == Kappa::Searched;
        let (least, way_out) = match searched {
            // The couples outside a fold must fill a minibatch.
            true => ((HALF * FOLDS).div_ceil(FOLDS - 1), ", or fewer with --kappa"),
            false => (HALF, ""),
        };
        let [related, others] = self.by_label.each_ref().map(Vec::len);
        let out = self.left_out;
        if related < least || others < least {
            return Err(self.unfit(&format!(
                "expected at least {least} couples of either label to train on{way_out}; found \
                 {related} with 1 and {others} with 0, and {out} with a text without a known word"
            )));
        }
        let judged = self.validation_places.iter().map(|&place| self.couples[place].related);
        let related = judged.filter(|&related| related).count();
        let others = self.validation_places.len() - related;
        if related == 0 || others == 0 {
            return Err(self.unfit(&format!(
                "expected couples of either label to judge by, found {related} with 1 and \
                 {others} with 0"
            )));
        }
        Ok(())
    }

    pub(super) fn unfit(&self, problem: &str) -> TrainError {
        unfit_data(&self.files, problem)
    }
}

#[derive(Debug, Default)]
struct Couples {
    usable: Vec<Couple>,
    left_out: usize,
    files: Vec<TrainingFile>,
}

impl Couples {
    fn read(model: &Model, paths: &[PathBuf]) -> Result<Self> {
        let mut couples = Self::default();
        for path in paths {
            couples.files.push(trained_on(path)?);
            let pairs = Pairs::read(&mut Pairs::open(path)?, |field, _| Ok(field))?;
            let known: Vec<bool> = pairs
                .texts
                .par_iter()
                .map_init(
                    || Phrase::new(model),
                    |phrase, (one, other)| {
                        [one, other].into_iter().all(|text| {
                            phrase.read(text);
                            !phrase.words().is_empty()
                        })
                    },
                )
                .collect();
            couples.left_out += known.iter().filter(|&&known| !known).count();
            let rows = pairs.labels.into_iter().zip(pairs.texts).zip(known);
            couples.usable.extend(
                rows.filter(|(_, known)| *known)
                    .map(|((related, texts), _)| Couple { related, texts }),
            );
        }
        Ok(couples)
    }

    fn by_label(&self) -> [Vec<usize>; 2] {
        let of = |wanted: bool| {
            let places = (0..self.usable.len()).zip(&self.usable);
            places.filter(|(_, couple)| couple.related == wanted).map(|(place, _)| place).collect()
        };
        [of(true), of(false)]
    }
}

/// Removes a random share of the positions of each label, at least one of each; returns them
/// sorted.
fn hold_out(by_label: &mut [Vec<usize>; 2], seed: u64) -> Vec<usize> {
    let mut held_out = Vec::new();
    for (label, places) in by_label.iter_mut().enumerate() {
        generator(seed, ORDER_OF_COUPLES, [HELD_OUT, label as u64]).shuffle(places);
        let share = (places.len() / 10).max(1).min(places.len());
        held_out.extend(places.drain(..share));
        places.sort_unstable();
    }
    held_out.sort_unstable();
    held_out
}
