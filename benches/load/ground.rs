//! What every scenario stands on: the options, the texts, the oracle, and how the server is started.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use tempfile::TempDir;

use crate::generator::Load;
use crate::options::Options;
use crate::oracle::{Oracle, Question};
use crate::server::{Launch, Server};
use crate::texts::Texts;

/// Different one-pair questions asked in turn.
const SMALL: usize = 2048;
/// Different thousand-pair questions asked in turn.
const LARGE: usize = 32;

/// What every scenario stands on.
pub struct Ground {
    /// The flags.
    pub options: Options,
    /// What is compared.
    pub texts: Texts,
    /// Who knows the answers.
    pub oracle: Oracle,
    /// How the server is started.
    pub launch: Launch,
    /// One pair each.
    pub small: Rc<Vec<Question>>,
    /// A thousand pairs each.
    pub large: Rc<Vec<Question>>,
    /// A folder of this run's own.
    pub folder: TempDir,
}

impl Ground {
    /// Prepares everything for one scenario.
    pub fn prepare(options: &Options, log: PathBuf) -> anyhow::Result<Self> {
        let model = options.model.clone().unwrap_or_else(|| {
            Path::new(env!("CARGO_MANIFEST_DIR")).join("models/default.safetensors")
        });
        let binary = options.binary.clone();
        let oracle = Oracle::open(&[&model])?;
        let texts = Texts::load(oracle.engine().model(), options.seed);
        let launch = Launch {
            binary: binary.unwrap_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_cognate"))),
            model,
            flags: Vec::new(),
            environment: Vec::new(),
            address_space_kib: None,
            pinned: options.pin,
            log,
        };
        Ok(Self {
            small: small_questions(&oracle, &texts)?,
            large: large_questions(&oracle, &texts)?,
            options: options.clone(),
            texts,
            oracle,
            launch,
            folder: tempfile::Builder::new().prefix("cognate-load-").tempdir()?,
        })
    }

    /// A load of one-pair questions.
    pub fn load(&self, server: &Server, connections: usize) -> Load {
        Load {
            address: server.address,
            connections,
            questions: Rc::clone(&self.small),
            seconds: self.options.seconds,
            seed: self.options.seed,
        }
    }
}

/// One pair each.
pub fn small_questions(oracle: &Oracle, texts: &Texts) -> anyhow::Result<Rc<Vec<Question>>> {
    let ask = |turn| oracle.pairs(&texts.run(turn, 1));
    Ok(Rc::new((0..SMALL).map(ask).collect::<anyhow::Result<_>>()?))
}

/// A thousand pairs each.
fn large_questions(oracle: &Oracle, texts: &Texts) -> anyhow::Result<Rc<Vec<Question>>> {
    let ask = |turn| oracle.pairs(&texts.run(turn, 1000));
    Ok(Rc::new((0..LARGE).map(ask).collect::<anyhow::Result<_>>()?))
}
