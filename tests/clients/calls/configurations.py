"""The configurations of products that are not run here, filled as those products fill them."""

import json

import requests

from pages import FAR, NEAR, configuration
from support import embeds, reranks


def post(place, url, body):
    """Posts a body to where a configuration says."""
    for base in [NEAR, FAR]:
        url = url.replace(base, place.url)
    headers = {"content-type": "application/json", "authorization": f"Bearer {place.key}"}
    answer = requests.post(url, data=body.encode(), headers=headers, timeout=60)
    answer.raise_for_status()
    return answer.json()


@embeds("requests", "Meilisearch's rest embedder, from its page", ways=("model", "key"))
def meilisearch(place, texts):
    embedder = configuration("meilisearch.md", '"rest"')["cognate"]
    request, response = embedder["request"], embedder["response"]
    assert request["texts"] == ["{{text}}", "{{..}}"], request
    assert response == {"embeddings": ["{{embedding}}", "{{..}}"]}, response
    # Zeros are for a text without a vector; the model here has one for every text.
    answer = post(place, embedder["url"], json.dumps(request | {"texts": texts, "unknown": "hash"}))
    assert all(len(vector) == embedder["dimensions"] for vector in answer["embeddings"])
    return answer["embeddings"]


@reranks("requests", "OpenSearch's connector for rerank, from its page", ways=("model", "key"))
def opensearch(place, query, documents):
    connector = configuration("opensearch.md", "pre_process.cohere.rerank")
    action = connector["actions"][0]
    body = action["request_body"].replace("${parameters.model}", connector["parameters"]["model"])
    body = body.replace("${parameters.query}", json.dumps(query)[1:-1])
    body = body.replace("${parameters.documents}", json.dumps(documents))
    results = post(place, action["url"], body)["results"]
    return [(row["index"], row["relevance_score"]) for row in results]


def elasticsearch(place, named, **values):
    """What an endpoint of the service `custom` is answered."""
    settings = configuration("elasticsearch.md", named)["service_settings"]
    body = settings["request"]
    for name, value in values.items():
        body = body.replace("${" + name + "}", json.dumps(value))
    return post(place, settings["url"], body)


@reranks("requests", "Elasticsearch's custom service for rerank, from its page", ways=("model", "key"))
def elasticsearch_rerank(place, query, documents):
    results = elasticsearch(place, "reranked_index", query=query, input=documents)["results"]
    return [(row["index"], row["relevance_score"]) for row in results]


@embeds("requests", "Elasticsearch's custom service for vectors, from its page", ways=("model", "key"))
def elasticsearch_vectors(place, texts):
    answer = elasticsearch(place, "text_embeddings", input=texts)
    return [row["embedding"] for row in answer["data"]]
