//! The dialects of the service: its own, and the dialects of other servers, for their clients. The
//! module `compatible` has the routes of each.

/// A format of bodies and errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Native,
    OpenAi,
    /// Reranking of documents, as in the APIs of Cohere, Jina and Voyage.
    Rerank,
    Tei,
    /// The client of the Hugging Face Hub.
    Hub,
    Ollama,
    /// The scores of pairs as in vLLM.
    Vllm,
    /// Weaviate's `text2vec-model2vec`.
    Weaviate,
}

impl Dialect {
    /// Every dialect, in the order of declaration.
    pub const ALL: [Self; 8] = [
        Self::Native,
        Self::OpenAi,
        Self::Rerank,
        Self::Tei,
        Self::Hub,
        Self::Ollama,
        Self::Vllm,
        Self::Weaviate,
    ];

    pub fn others() -> impl Iterator<Item = Self> {
        Self::ALL.into_iter().filter(|&dialect| dialect != Self::Native)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::OpenAi => "openai",
            Self::Rerank => "rerank",
            Self::Tei => "tei",
            Self::Hub => "hub",
            Self::Ollama => "ollama",
            Self::Vllm => "vllm",
            Self::Weaviate => "weaviate",
        }
    }
}

/// The substitute for the vector of a text without one, for clients that cannot read `null`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StandIn {
    /// A hashed vector if the model makes such vectors for unknown words, else zeros.
    #[default]
    Auto,
    Zero,
    /// A vector made from the text.
    Hash,
    /// No substitute: the request is refused.
    Error,
}
