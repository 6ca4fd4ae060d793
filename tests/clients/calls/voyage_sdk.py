"""Voyage's own client."""

import voyageai

from support import call, embeds, raises, reranks


def client(place):
    return voyageai.Client(api_key=place.key, base_url=place.url + "/v1", max_retries=0)


@embeds("voyageai", "Client.embed")
def embed(place, texts):
    return client(place).embed(texts, model=place.model).embeddings


@reranks("voyageai", "Client.rerank")
def rerank(place, query, documents):
    results = client(place).rerank(query, documents, model=place.model).results
    return [(row.index, row.relevance_score, row.document) for row in results]


@call("voyageai", "Client.rerank, top_k")
def rerank_first(place):
    documents = ["cat naps on sofa", "earthquake hits Chile", "quake"]
    results = client(place).rerank("quake", documents, model=place.model, top_k=2).results
    assert [row.index for row in results] == [
        index for index, _ in place.rank("quake", documents)[:2]
    ]


@call("voyageai", "refusals raise its exceptions")
def refusals(place):
    asked = client(place)
    raises(voyageai.error.InvalidRequestError, lambda: asked.embed([], model="default"))
    wrong = lambda: asked.rerank("a", ["b"], model="rerank-2")
    raises(voyageai.error.VoyageError, wrong, "no model is named")


@call("voyageai", "a wrong key raises AuthenticationError", ways=("wrong key",))
def wrong_key(place):
    raises(voyageai.error.AuthenticationError, lambda: client(place).embed(["a"], model="default"))
