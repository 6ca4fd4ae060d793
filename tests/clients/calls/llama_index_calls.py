"""LlamaIndex's components for servers of these dialects."""

import asyncio

from llama_index.core.schema import NodeWithScore, TextNode
from llama_index.embeddings.ollama import OllamaEmbedding
from llama_index.embeddings.openai_like import OpenAILikeEmbedding
from llama_index.embeddings.text_embeddings_inference import TextEmbeddingsInference
from llama_index.postprocessor.jinaai_rerank import JinaRerank
from llama_index.postprocessor.tei_rerank import TextEmbeddingInference as TeiRerank

from support import call, embeds, raises, reranks

# Its name of the model is not sent.
PATHS = ("model", "path", "key")
TEI = "llama-index-embeddings-text-embeddings-inference"
TEI_RERANK = "llama-index-postprocessor-tei-rerank"


def tei(place, **options):
    # Its default instruction for a model it does not know is none.
    return TextEmbeddingsInference(
        model_name=place.model, base_url=place.url, auth_token=place.key, **options
    )


@embeds(TEI, "TextEmbeddingsInference", ways=PATHS)
def tei_texts(place, texts):
    return tei(place).get_text_embedding_batch(texts)


@embeds(TEI, "TextEmbeddingsInference, async", ways=PATHS)
def tei_awaited(place, texts):
    return asyncio.run(tei(place).aget_text_embedding_batch(texts))


@embeds(TEI, "TextEmbeddingsInference, query", ways=PATHS)
def tei_queries(place, texts):
    return [tei(place).get_query_embedding(text) for text in texts]


@embeds("llama-index-embeddings-openai-like", "OpenAILikeEmbedding")
def openai_like(place, texts):
    asked = OpenAILikeEmbedding(
        model_name=place.model, api_base=place.url + "/v1", api_key=place.key, max_retries=0
    )
    return asked.get_text_embedding_batch(texts)


@embeds("llama-index-embeddings-ollama", "OllamaEmbedding")
def ollama(place, texts):
    headers = {"headers": {"authorization": f"Bearer {place.key}"}}
    asked = OllamaEmbedding(model_name=place.model, base_url=place.url, client_kwargs=headers)
    return asked.get_text_embedding_batch(texts)


def nodes(documents):
    return [NodeWithScore(node=TextNode(text=text, id_=str(at))) for at, text in enumerate(documents)]


def ranked(reranker, query, documents):
    found = reranker.postprocess_nodes(nodes(documents), query_str=query)
    return [(int(each.node.id_), each.score, each.node.text) for each in found]


@reranks(TEI_RERANK, "TextEmbeddingInference, bare key", ways=PATHS)
def tei_bare(place, query, documents):
    asked = TeiRerank(base_url=place.url, auth_token=place.key, top_n=len(documents))
    return ranked(asked, query, documents)


@reranks(TEI_RERANK, "TextEmbeddingInference, Bearer key", ways=PATHS)
def tei_bearer(place, query, documents):
    token = f"Bearer {place.key}"
    asked = TeiRerank(base_url=place.url, auth_token=token, top_n=len(documents))
    return ranked(asked, query, documents)


@call(TEI, "a wrong key raises", ways=("wrong key",))
def tei_wrong_key(place):
    raises(Exception, lambda: tei(place).get_text_embedding_batch(["a"]))


@reranks("llama-index-postprocessor-jinaai-rerank", "JinaRerank")
def jina_reranked(place, query, documents):
    asked = JinaRerank(
        model=place.model, base_url=place.url + "/v1", api_key=place.key, top_n=len(documents)
    )
    return ranked(asked, query, documents)
