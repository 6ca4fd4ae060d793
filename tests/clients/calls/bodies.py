"""Bodies as servers and tools without a client of their own in Python send them, posted plainly."""

import json

import requests

from support import DOCUMENTS, QUERY, TEXTS, call, embeds, equal_numbers, equal_vectors, reranks

PATHS = ("model", "path", "key")


def post(place, path, body):
    headers = {"authorization": f"Bearer {place.key}"}
    answer = requests.post(place.url + path, json=body, headers=headers, timeout=60)
    answer.raise_for_status()
    return answer.json()


def weaviate_posts(place, body):
    """The body of one text goes without a content type, and no key is ever sent."""
    answer = requests.post(place.url + "/vectors", data=json.dumps(body).encode(), timeout=60)
    answer.raise_for_status()
    return answer.json()


@embeds("requests", "Weaviate text2vec-model2vec: POST /vectors", False, ("model", "path"))
def weaviate(place, texts):
    found = []
    for text in texts:
        config = {"task_type": "passage"}
        body = {"text": text, "dims": 0, "vector": None, "error": "", "config": config}
        answer = weaviate_posts(place, body)
        assert answer["text"] == text and answer["dims"] == len(answer["vector"])
        found.append(answer["vector"])
    return found


@embeds("requests", "Weaviate transformers client: POST /vectors, a batch", False, ("model", "path"))
def weaviate_batch(place, texts):
    answer = weaviate_posts(place, {"texts": texts, "config": {"task_type": "query"}})
    assert answer["dims"] == len(answer["vectors"][0])
    return answer["vectors"]


@call("requests", "Weaviate text2vec-model2vec: ready, live and meta", ways=("model", "path"))
def weaviate_ready(place):
    for path in ["/.well-known/ready", "/.well-known/live"]:
        answer = requests.get(place.url + path, timeout=60)
        assert answer.status_code == 204, (path, answer.status_code)
    meta = requests.get(place.url + "/meta", timeout=60)
    assert meta.status_code == 200 and isinstance(meta.json(), dict)


@call("requests", "Weaviate text2vec-model2vec: a refusal has `error`")
def weaviate_refusal(place):
    body = json.dumps({"texts": []}).encode()
    answer = requests.post(place.url + "/vectors", data=body, timeout=60)
    assert answer.status_code == 400 and isinstance(answer.json()["error"], str), answer.text


@embeds("requests", "Meilisearch ollama embedder: POST /api/embed", ways=("model", "name", "key"))
def meilisearch_ollama(place, texts):
    return post(place, "/api/embed", {"model": place.model, "input": texts})["embeddings"]


@embeds("requests", "OpenSearch, Elasticsearch, Open WebUI and Dify: POST /v1/embeddings")
def embeddings(place, texts):
    answer = post(place, "/v1/embeddings", {"input": texts, "model": place.model})
    return [row["embedding"] for row in answer["data"]]


@reranks("requests", "OpenSearch and Elasticsearch: POST /v1/rerank")
def rerank(place, query, documents):
    body = {"model": place.model, "query": query, "documents": documents}
    results = post(place, "/v1/rerank", body)["results"]
    return [(row["index"], row["relevance_score"]) for row in results]


@reranks("requests", "Open WebUI and Dify: POST /v1/rerank, top_n")
def rerank_top(place, query, documents):
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
