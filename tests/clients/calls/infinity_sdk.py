"""The client of Infinity's server."""

import infinity_client
from infinity_client.api.default import embeddings, rerank
from infinity_client.models import OpenAIEmbeddingInputText, RerankInput

from support import embeds, reranks


def client(place):
    headers = {"authorization": f"Bearer {place.key}"}
    return infinity_client.Client(base_url=place.url, headers=headers)


@embeds("infinity-client", "embeddings")
def embed(place, texts):
    body = OpenAIEmbeddingInputText(input_=texts, model=place.model)
    answer = embeddings.sync(client=client(place), body=body)
    return [row.embedding for row in answer.data]


@reranks("infinity-client", "rerank")
def ranked(place, query, documents):
    body = RerankInput(query=query, documents=documents, model=place.model)
    return [
        (row.index, row.relevance_score)
        for row in rerank.sync(client=client(place), body=body).results
    ]


@reranks("infinity-client", "rerank, return_documents")
def ranked_with_documents(place, query, documents):
    asked = dict(query=query, documents=documents, model=place.model, return_documents=True)
    answer = rerank.sync(client=client(place), body=RerankInput(**asked))
    return [(row.index, row.relevance_score, row.document) for row in answer.results]
