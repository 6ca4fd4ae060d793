"""Vector stores' functions for embedding, and smaller libraries."""

import asyncio

import chromadb
from chromadb.utils.embedding_functions import OllamaEmbeddingFunction, OpenAIEmbeddingFunction
from chromadb.utils.embedding_functions import HuggingFaceEmbeddingServer
from openai import OpenAI
from pydantic_ai import Embedder
from pydantic_ai.embeddings.openai import OpenAIEmbeddingModel
from pydantic_ai.providers.openai import OpenAIProvider
from qdrant_client import QdrantClient, models
from rerankers import Reranker

from support import DOCUMENTS, QUERY, TEXTS, call, embeds, reranks


def chroma_openai(place):
    return OpenAIEmbeddingFunction(
        api_key=place.key, model_name=place.model, api_base=place.url + "/v1"
    )


@embeds("chromadb", "OpenAIEmbeddingFunction")
def openai_function(place, texts):
    return chroma_openai(place)(texts)


@embeds("chromadb", "HuggingFaceEmbeddingServer", ways=("model", "path", "key"))
def hugging_face_function(place, texts):
    return HuggingFaceEmbeddingServer(url=place.url + "/embed", api_key=place.key)(texts)


@embeds("chromadb", "OllamaEmbeddingFunction", ways=("model", "name", "path"))
def ollama_function(place, texts):
    return OllamaEmbeddingFunction(url=place.url, model_name=place.model)(texts)


@call("chromadb", "a collection in memory, queried", ways=("name", "path"))
def chroma_collection(place):
    store = chromadb.EphemeralClient()
    made = dict(name="texts", embedding_function=chroma_openai(place))
    collection = store.create_collection(**made, metadata={"hnsw:space": "cosine"})
    try:
        collection.add(ids=[str(at) for at in range(len(DOCUMENTS))], documents=DOCUMENTS)
        found = collection.query(query_texts=[QUERY], n_results=len(DOCUMENTS))
        for at, distance in zip(found["ids"][0], found["distances"][0], strict=True):
            score = place.similarity(QUERY, [DOCUMENTS[int(at)]])[0]
            assert abs(1 - distance - score) < 1e-4, (at, distance, score)
        order = [int(at) for at in found["ids"][0]]
        assert order == [index for index, _ in place.rank(QUERY, DOCUMENTS)], order
    finally:
        store.delete_collection("texts")


@call("qdrant-client", "a collection in memory, queried", ways=("name", "path"))
def qdrant_collection(place):
    client = OpenAI(base_url=place.url + "/v1", api_key=place.key)
    embed = lambda texts: [
        row.embedding for row in client.embeddings.create(input=texts, model=place.model).data
    ]
    store = QdrantClient(":memory:")
    vectors = embed(DOCUMENTS)
    config = models.VectorParams(size=len(vectors[0]), distance=models.Distance.COSINE)
    store.create_collection("texts", vectors_config=config)
    points = [models.PointStruct(id=at, vector=vector) for at, vector in enumerate(vectors)]
    store.upsert("texts", points)
    found = store.query_points("texts", query=embed([QUERY])[0], limit=len(DOCUMENTS)).points
    expected = place.rank(QUERY, DOCUMENTS)
    assert [point.id for point in found] == [index for index, _ in expected], found
    for point, (_, score) in zip(found, expected):
        assert abs(point.score - score) < 1e-5, (point, score)


@embeds("pydantic-ai-slim", "Embedder")
def pydantic_ai(place, texts):
    provider = OpenAIProvider(base_url=place.url + "/v1", api_key=place.key)
    embedder = Embedder(OpenAIEmbeddingModel(place.model, provider=provider))
    return asyncio.run(embedder.embed_documents(texts)).embeddings


def reranked(place, provider, path, query, documents):
    asked = dict(api_provider=provider, model_type="APIRanker", api_key=place.key)
    ranker = Reranker(place.model, url=place.url + path, verbose=0, **asked)
    found = ranker.rank(query=query, docs=documents, doc_ids=list(range(len(documents))))
    return [(each.doc_id, each.score, each.text) for each in found.results]


@reranks("rerankers", "Reranker, cohere")
def cohere(place, query, documents):
    return reranked(place, "cohere", "/v1/rerank", query, documents)


@reranks("rerankers", "Reranker, jina")
def jina(place, query, documents):
    return reranked(place, "jina", "/v1/rerank", query, documents)


@reranks("rerankers", "Reranker, voyage")
def voyage(place, query, documents):
    return reranked(place, "voyage", "/v1/rerank", query, documents)


@reranks("rerankers", "Reranker, text-embeddings-inference", ways=("model", "path", "key"))
def tei(place, query, documents):
    return reranked(place, "text-embeddings-inference", "/rerank", query, documents)
