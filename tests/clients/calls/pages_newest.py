"""The pages whose clients are the newest."""

from pages import page_runs, run_shell

page_runs("openai", "openai.md")
page_runs("cohere", "cohere.md")
page_runs("huggingface_hub", "hugging-face.md")
page_runs("langchain-openai", "langchain.md")
page_runs("llama-index-postprocessor-tei-rerank", "llama-index.md")
page_runs("haystack-ai", "haystack.md")
page_runs("ollama", "ollama.md")
page_runs("voyageai", "voyage-jina-infinity.md")
page_runs("chromadb", "vector-stores.md")
page_runs("duckdb", "tables.md")
for page in ["README.md", "hugging-face.md", "ollama.md", "vllm.md", "voyage-jina-infinity.md"]:
    page_runs("requests", page, run_shell)
