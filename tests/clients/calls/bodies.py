"""Bodies as servers and tools without a client of their own in Python send them, posted plainly."""

import requests

from support import DOCUMENTS, QUERY, TEXTS, call, embeds, equal_numbers, equal_vectors, reranks

PATHS = ("model", "path", "key")


def post(place, path, body):
    headers = {"authorization": f"Bearer {place.key}"}
    answer = requests.post(place.url + path, json=body, headers=headers, timeout=60)
    answer.raise_for_status()
    return answer.json()


@embeds("requests", "Weaviate text2vec-model2vec: POST /vectors, one text", False, PATHS)
def weaviate(place, texts):
    found = []
    for text in texts:
        answer = post(place, "/vectors", {"text": text, "dims": 0, "vector": None, "error": ""})
        assert answer["text"] == text and answer["dims"] == len(answer["vector"])
        found.append(answer["vector"])
    return found


@call("requests", "Weaviate text2vec-model2vec: ready, live and meta", ways=("model", "path"))
def weaviate_ready(place):
    for path in ["/.well-known/ready", "/.well-known/live"]:
        answer = requests.get(place.url + path, timeout=60)
        assert answer.status_code == 204, (path, answer.status_code)
    meta = requests.get(place.url + "/meta", timeout=60)
    assert meta.status_code == 200 and isinstance(meta.json(), dict)


# The source `rest` of Meilisearch fills these shapes; `{{..}}` repeats the text before it.
@embeds("requests", "Meilisearch rest embedder: native POST /embed", ways=("model", "key"))
def meilisearch(place, texts):
    answer = post(place, "/embed", {"texts": texts, "normalize": True, "unknown": "hash"})
    return answer["embeddings"]


@embeds("requests", "Meilisearch rest embedder: POST /v1/embeddings", ways=("model", "name", "key"))
def meilisearch_openai(place, texts):
    answer = post(place, "/v1/embeddings", {"model": place.model, "input": texts})
    return [row["embedding"] for row in answer["data"]]


@embeds("requests", "Meilisearch ollama embedder: POST /api/embed", ways=("model", "name", "key"))
def meilisearch_ollama(place, texts):
    return post(place, "/api/embed", {"model": place.model, "input": texts})["embeddings"]


@reranks("requests", "OpenSearch connector, Cohere rerank functions: POST /v1/rerank")
def opensearch(place, query, documents):
    body = {"documents": documents, "query": query, "model": place.model, "top_n": len(documents)}
    results = post(place, "/v1/rerank", body)["results"]
    return [(row["index"], row["relevance_score"]) for row in results]


@embeds("requests", "OpenSearch connector, OpenAI embedding functions: POST /v1/embeddings")
def opensearch_embeddings(place, texts):
    answer = post(place, "/v1/embeddings", {"input": texts, "model": place.model})
    return [row["embedding"] for row in answer["data"]]


@reranks("requests", "Elasticsearch custom service, rerank: POST /v1/rerank")
def elasticsearch(place, query, documents):
    body = {"model": place.model, "query": query, "documents": documents}
    results = post(place, "/v1/rerank", body)["results"]
    return [(row["index"], row["relevance_score"]) for row in results]


@reranks("requests", "Open WebUI external reranker: POST /v1/rerank")
def open_webui(place, query, documents):
    body = {"model": place.model, "query": query, "documents": documents, "top_n": len(documents)}
    results = post(place, "/v1/rerank", body)["results"]
    return [(row["index"], row["relevance_score"]) for row in results]


@call("requests", "vLLM: POST /score, one against many", ways=PATHS)
def one_to_many(place):
    answer = post(place, "/score", {"model": place.model, "text_1": QUERY, "text_2": DOCUMENTS})
    assert [row["index"] for row in answer["data"]] == list(range(len(DOCUMENTS)))
    found = [row["score"] for row in answer["data"]]
    equal_numbers(found, place.similarity(QUERY, DOCUMENTS))


@call("requests", "vLLM: POST /v1/score, queries and documents zipped", ways=("model", "name", "key"))
def zipped(place):
    body = {"model": place.model, "queries": TEXTS, "documents": DOCUMENTS}
    found = [row["score"] for row in post(place, "/v1/score", body)["data"]]
    equal_numbers(found, [place.similarity(a, [b])[0] for a, b in zip(TEXTS, DOCUMENTS)])


@call("requests", "text-embeddings-inference: POST /similarity", ways=PATHS)
def tei_similarity(place):
    body = {"inputs": {"source_sentence": QUERY, "sentences": DOCUMENTS}}
    equal_numbers(post(place, "/similarity", body), place.similarity(QUERY, DOCUMENTS))


@call("requests", "text-embeddings-inference: POST /embed, one string", ways=PATHS)
def tei_one(place):
    equal_vectors(post(place, "/embed", {"inputs": TEXTS[0]}), place.embed(TEXTS[:1]))
