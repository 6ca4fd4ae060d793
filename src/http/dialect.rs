//! The dialects of the service: its own, and those of servers whose clients people already have.
//! What is said in each of them is written in `compatible`.

/// The form of a route's bodies and refusals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    Native,
    OpenAi,
    /// Reranking of documents, as Cohere, Jina and Voyage speak it.
    Rerank,
    Tei,
    /// The client of the Hugging Face Hub.
    Hub,
    Ollama,
    /// The scores of pairs as vLLM gives them.
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

    /// Its name, in settings and in the labels of counters.
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

/// The substitute for the vector of a text that has none, for clients that cannot read `null`.
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
