"""LiteLLM, by each provider that takes the address of a server."""

import os

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm

from support import TEXTS, WAYS, call, embeds, raises, reranks

litellm.telemetry = False
litellm.suppress_debug_info = True


def embedding(provider, path, ways=WAYS):
    @embeds("litellm", f"embedding, {provider}/", ways=ways)
    def ask(place, texts):
        answer = litellm.embedding(
            model=f"{provider}/{place.model}",
            input=texts,
            api_base=place.url + path,
            api_key=place.key,
            max_retries=0,
        )
        return [row["embedding"] for row in answer.data]


embedding("openai", "/v1")
embedding("infinity", "")
embedding("hosted_vllm", "/v1")
embedding("jina_ai", "/v1")
embedding("voyage", "/v1")
embedding("ollama", "", ways=("model", "name", "path"))


@embeds("litellm", "embedding, huggingface/", normalize=False, ways=("model", "path", "key"))
def hugging_face(place, texts):
    answer = litellm.embedding(
        model="huggingface/sentence",
        input=texts,
        api_base=place.url,
        api_key=place.key,
        input_type="feature-extraction",
    )
    return [row["embedding"] for row in answer.data]


def rerank(provider, path, text=True, ways=WAYS):
    @reranks("litellm", f"rerank, {provider}/", ways=ways)
    def ask(place, query, documents):
        answer = litellm.rerank(
            model=f"{provider}/{place.model}",
            query=query,
            documents=documents,
            api_base=place.url + path,
            api_key=place.key,
            top_n=len(documents),
            return_documents=text,
        )
        if not text:
            return [(row["index"], row["relevance_score"]) for row in answer.results]
        return [
            (row["index"], row["relevance_score"], row["document"]["text"]) for row in answer.results
        ]


rerank("cohere", "", text=False)
# It reads documents in Infinity's form, but asks as Cohere's clients do, who read another.
rerank("infinity", "", text=False)
rerank("hosted_vllm", "/v1")
# It replaces the path of the address by its own.
rerank("jina_ai", "/v1/rerank", ways=("model", "name", "key"))
rerank("voyage", "/v1")
# Its name of the model is not sent.
rerank("huggingface", "", ways=("model", "path", "key"))


@call("litellm", "refusals raise its exceptions")
def refusals(place):
    asked = dict(api_base=place.url + "/v1", api_key=place.key, max_retries=0)
    embed = lambda model, texts: litellm.embedding(model=model, input=texts, **asked)
    raises(litellm.BadRequestError, lambda: embed("openai/default", []))
    raises(litellm.NotFoundError, lambda: embed("openai/text-embedding-3-small", TEXTS))
    ask = lambda: litellm.rerank(
        model="cohere/rerank-v3.5", query="a", documents=["b"], api_base=place.url, api_key="k"
    )
    raises(litellm.NotFoundError, ask, "no model is named")


@call("litellm", "a wrong key raises AuthenticationError", ways=("wrong key",))
def wrong_key(place):
    asked = dict(api_base=place.url + "/v1", api_key=place.key, max_retries=0)
    embed = lambda: litellm.embedding(model="openai/default", input=["a"], **asked)
    raises(litellm.AuthenticationError, embed)
