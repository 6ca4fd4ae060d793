"""Cohere's own client."""

import asyncio

import cohere

from support import DOCUMENTS, QUERY, call, raises, reranks


def rows(answer):
    return [(row.index, row.relevance_score) for row in answer.results]


@reranks("cohere", "Client.rerank (v1)")
def v1(place, query, documents):
    client = cohere.Client(place.key, base_url=place.url)
    asked = dict(model=place.model, query=query, documents=documents, return_documents=True)
    answer = client.rerank(**asked)
    return [(row.index, row.relevance_score, row.document.text) for row in answer.results]


@call("cohere", "Client.rerank (v1), objects and top_n")
def v1_objects(place):
    client = cohere.Client(place.key, base_url=place.url)
    documents = [{"text": text} for text in DOCUMENTS]
    answer = client.rerank(model=place.model, query=QUERY, documents=documents, top_n=2)
    expected = [index for index, _ in place.rank(QUERY, DOCUMENTS)[:2]]
    assert [row.index for row in answer.results] == expected


@reranks("cohere", "ClientV2.rerank")
def v2(place, query, documents):
    client = cohere.ClientV2(place.key, base_url=place.url)
    return rows(client.rerank(model=place.model, query=query, documents=documents))


@reranks("cohere", "AsyncClientV2.rerank")
def v2_awaited(place, query, documents):
    async def ask():
        client = cohere.AsyncClientV2(place.key, base_url=place.url)
        return await client.rerank(model=place.model, query=query, documents=documents)

    return rows(asyncio.run(ask()))


@call("cohere", "ClientV2.rerank, relevance score in the body")
def scores(place):
    client = cohere.ClientV2(place.key, base_url=place.url)
    options = {"additional_body_parameters": {"relevance": "score"}}
    asked = dict(model=place.model, query=QUERY, documents=DOCUMENTS, request_options=options)
    for (index, relevance), (expected, score) in zip(
        rows(client.rerank(**asked)), place.rank(QUERY, DOCUMENTS), strict=True
    ):
        assert index == expected and abs(relevance - (score + 1) / 2) < 1e-6, (index, relevance)


if hasattr(cohere, "RerankRelevantSpans"):

    @call("cohere", "ClientV2.rerank, relevant_spans", ways=("model", "path"))
    def spans(place):
        client = cohere.ClientV2(place.key, base_url=place.url)
        wanted = cohere.RerankRelevantSpans(mode="enabled", threshold=0.2, max_spans=2)
        asked = dict(model=place.model, query=QUERY, documents=DOCUMENTS, relevant_spans=wanted)
        answer = client.rerank(**asked)
        assert [row.index for row in answer.results] == [
            index for index, _ in place.rank(QUERY, DOCUMENTS)
        ]
        best = answer.results[0]
        text = DOCUMENTS[best.index]
        assert 1 <= len(best.relevant_spans) <= 2, best
        found = [text[span.start : span.end].lower() for span in best.relevant_spans]
        assert any(word in each for each in found for word in ("chile", "earthquake")), found
        assert all(0.2 <= span.score <= 1 for span in best.relevant_spans), best
        without = client.rerank(model=place.model, query=QUERY, documents=DOCUMENTS)
        assert rows(without) == rows(answer), "spans change the relevances"


@call("cohere", "refusals raise its exceptions")
def refusals(place):
    rerank = cohere.ClientV2(place.key, base_url=place.url).rerank
    asked = dict(query=QUERY, request_options={"max_retries": 0})
    empty = lambda: rerank(model="default", documents=[], **asked)
    error = raises(cohere.BadRequestError, empty)
    assert error.body["code"] == "empty_list", error.body
    unknown = lambda: rerank(model="rerank-v3.5", documents=DOCUMENTS, **asked)
    error = raises(cohere.NotFoundError, unknown)
    assert error.body["code"] == "unknown_model", error.body


@call("cohere", "a wrong key raises UnauthorizedError", ways=("wrong key",))
def wrong_key(place):
    rerank = cohere.ClientV2(place.key, base_url=place.url).rerank
    asked = dict(model="default", query=QUERY, documents=DOCUMENTS)
    raises(cohere.UnauthorizedError, lambda: rerank(**asked))
