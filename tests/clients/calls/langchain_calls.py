"""LangChain's components for servers of these dialects."""

from langchain_community.document_compressors import InfinityRerank, JinaRerank
from langchain_community.document_compressors import jina_rerank
from langchain_community.embeddings import InfinityEmbeddings, JinaEmbeddings
from langchain_community.embeddings import jina
from langchain_core.documents import Document
from langchain_ollama import OllamaEmbeddings
from langchain_openai import OpenAIEmbeddings
from langchain_voyageai import VoyageAIRerank

from support import call, embeds, raises, reranks


@embeds("langchain-openai", "OpenAIEmbeddings, check_embedding_ctx_length=False")
def openai_documents(place, texts):
    asked = OpenAIEmbeddings(
        model=place.model,
        base_url=place.url + "/v1",
        api_key=place.key,
        check_embedding_ctx_length=False,
    )
    return asked.embed_documents(texts)


@embeds("langchain-ollama", "OllamaEmbeddings")
def ollama_documents(place, texts):
    headers = {"headers": {"authorization": f"Bearer {place.key}"}}
    asked = OllamaEmbeddings(model=place.model, base_url=place.url, client_kwargs=headers)
    return asked.embed_documents(texts)


@embeds("langchain-community", "InfinityEmbeddings", ways=("model", "name", "path"))
def infinity_documents(place, texts):
    asked = InfinityEmbeddings(model=place.model, infinity_api_url=place.url + "/v1")
    return asked.embed_documents(texts)


@embeds("langchain-community", "JinaEmbeddings, JINA_API_URL set in its module")
def jina_documents(place, texts):
    jina.JINA_API_URL = place.url + "/v1/embeddings"
    return JinaEmbeddings(model_name=place.model, jina_api_key=place.key).embed_documents(texts)


def compressed(compressor, query, documents):
    given = [Document(text, metadata={"index": at}) for at, text in enumerate(documents)]
    return [
        (each.metadata["index"], each.metadata["relevance_score"], each.page_content)
        for each in compressor.compress_documents(given, query)
    ]


@reranks("langchain-community", "JinaRerank, JINA_API_URL set in its module")
def jina_reranked(place, query, documents):
    jina_rerank.JINA_API_URL = place.url + "/v1/rerank"
    asked = JinaRerank(model=place.model, jina_api_key=place.key, top_n=len(documents))
    return compressed(asked, query, documents)


@call("langchain-community", "JinaRerank, a refusal is raised", ways=("wrong key",))
def jina_refusal(place):
    jina_rerank.JINA_API_URL = place.url + "/v1/rerank"
    asked = JinaRerank(model=place.model, jina_api_key=place.key)
    raises(RuntimeError, lambda: asked.rerank(["a"], "b"), "a valid key is needed")


@reranks("langchain-community", "InfinityRerank")
def infinity_reranked(place, query, documents):
    from infinity_client import Client

    headers = {"authorization": f"Bearer {place.key}"}
    client = Client(base_url=place.url, headers=headers)
    asked = InfinityRerank(client=client, model=place.model, top_n=len(documents))
    return compressed(asked, query, documents)


@reranks("langchain-voyageai", "VoyageAIRerank")
def voyage_reranked(place, query, documents):
    asked = VoyageAIRerank(
        model=place.model, voyage_api_key=place.key, base_url=place.url + "/v1", top_k=9
    )
    return compressed(asked, query, documents)
