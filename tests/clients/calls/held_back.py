"""Libraries that hold back to older clients of Cohere, OpenAI and the Hugging Face Hub."""

import cohere
import openai
from huggingface_hub import AsyncInferenceClient, InferenceClient
from langchain_cohere import CohereRerank
from langchain_core.documents import Document
from langchain_huggingface import HuggingFaceEndpointEmbeddings
from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.postprocessor.cohere_rerank import CohereRerank as LlamaIndexCohereRerank

from support import TEXTS, call, embeds, reranks


@embeds(
    "langchain-huggingface",
    "HuggingFaceEndpointEmbeddings with a client of the Hub",
    normalize=False,
    ways=("model", "path", "key"),
)
def endpoint(place, texts):
    # It takes no address itself: its clients of the Hub are replaced by those of this server.
    asked = HuggingFaceEndpointEmbeddings(model="cognate/any", huggingfacehub_api_token=place.key)
    asked.client = InferenceClient(model=place.url, token=place.key)
    asked.async_client = AsyncInferenceClient(model=place.url, token=place.key)
    return asked.embed_documents(texts)


@reranks("langchain-cohere", "CohereRerank")
def langchain_rerank(place, query, documents):
    asked = dict(model=place.model, cohere_api_key=place.key, base_url=place.url)
    given = [Document(text, metadata={"at": at}) for at, text in enumerate(documents)]
    found = CohereRerank(top_n=len(documents), **asked).compress_documents(given, query)
    return [
        (each.metadata["at"], each.metadata["relevance_score"], each.page_content) for each in found
    ]


@reranks("llama-index-postprocessor-cohere-rerank", "CohereRerank")
def llama_index_rerank(place, query, documents):
    asked = dict(model=place.model, api_key=place.key, base_url=place.url)
    nodes = [NodeWithScore(node=TextNode(text=text, id_=str(at))) for at, text in enumerate(documents)]
    reranker = LlamaIndexCohereRerank(top_n=len(documents), **asked)
    found = reranker.postprocess_nodes(nodes, query_str=query)
    return [(int(each.node.id_), each.score, each.node.text) for each in found]


@reranks("cohere", "Client.rerank (v1)")
def cohere_v1(place, query, documents):
    asked = cohere.Client(place.key, base_url=place.url)
    answer = asked.rerank(model=place.model, query=query, documents=documents)
    return [(row.index, row.relevance_score) for row in answer.results]


@reranks("cohere", "ClientV2.rerank")
def cohere_v2(place, query, documents):
    asked = cohere.ClientV2(place.key, base_url=place.url)
    answer = asked.rerank(model=place.model, query=query, documents=documents)
    return [(row.index, row.relevance_score) for row in answer.results]


@embeds("openai", "embeddings.create")
def openai_two(place, texts):
    asked = openai.OpenAI(base_url=place.url + "/v1", api_key=place.key, max_retries=0)
    answer = asked.embeddings.create(input=texts, model=place.model)
    return [row.embedding for row in answer.data]


@embeds("huggingface_hub", "feature_extraction", False, ("model", "path", "key"))
def hub_one(place, texts):
    asked = InferenceClient(model=place.url, token=place.key)
    return asked.feature_extraction(texts).tolist()


@call("huggingface_hub", "sentence_similarity", ways=("model", "path", "key"))
def hub_similarity(place):
    asked = InferenceClient(model=place.url, token=place.key)
    found = asked.sentence_similarity(TEXTS[0], TEXTS[1:])
    for one, other in zip(found, place.similarity(TEXTS[0], TEXTS[1:]), strict=True):
        assert abs(one - other) < 1e-6, (one, other)
