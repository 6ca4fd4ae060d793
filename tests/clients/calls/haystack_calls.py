"""Haystack's components for servers of these dialects."""

from haystack import Document
from haystack.components.embedders import OpenAIDocumentEmbedder, OpenAITextEmbedder
from haystack.utils import Secret
from haystack_integrations.components.embedders.huggingface_api import (
    HuggingFaceAPIDocumentEmbedder,
    HuggingFaceAPITextEmbedder,
)
from haystack_integrations.components.embedders.ollama import OllamaDocumentEmbedder
from haystack_integrations.components.embedders.vllm import VLLMDocumentEmbedder
from haystack_integrations.components.rankers.cohere import CohereRanker
from haystack_integrations.components.rankers.huggingface_api import HuggingFaceTEIRanker
from haystack_integrations.components.rankers.vllm import VLLMRanker

from support import call, embeds, raises, reranks

HUGGING_FACE = "huggingface-api-haystack"


def given(texts):
    return [Document(content=text, meta={"index": at}) for at, text in enumerate(texts)]


def vectors(embedder, texts):
    return [each.embedding for each in embedder.run(documents=given(texts))["documents"]]


def ranked(ranker, query, documents):
    found = ranker.run(query=query, documents=given(documents))["documents"]
    return [(each.meta["index"], each.score, each.content) for each in found]


def key(place):
    return Secret.from_token(place.key)


@embeds("haystack-ai", "OpenAIDocumentEmbedder")
def openai_documents(place, texts):
    asked = dict(model=place.model, api_base_url=place.url + "/v1", api_key=key(place))
    return vectors(OpenAIDocumentEmbedder(progress_bar=False, **asked), texts)


@embeds("haystack-ai", "OpenAITextEmbedder")
def openai_text(place, texts):
    asked = dict(model=place.model, api_base_url=place.url + "/v1", api_key=key(place))
    embedder = OpenAITextEmbedder(**asked)
    return [embedder.run(text=text)["embedding"] for text in texts]


def inference(place, **options):
    params = {"url": place.url}
    return dict(
        api_type="text_embeddings_inference", api_params=params, token=key(place), **options
    )


@embeds(HUGGING_FACE, "HuggingFaceAPIDocumentEmbedder", False, ("model", "path", "key"))
def tei_documents(place, texts):
    return vectors(HuggingFaceAPIDocumentEmbedder(progress_bar=False, **inference(place)), texts)


@embeds(HUGGING_FACE, "HuggingFaceAPITextEmbedder, normalize", ways=("model", "path", "key"))
def tei_text(place, texts):
    embedder = HuggingFaceAPITextEmbedder(**inference(place, normalize=True))
    return [embedder.run(text=text)["embedding"] for text in texts]


# It cuts a path from the address.
@reranks(HUGGING_FACE, "HuggingFaceTEIRanker", ways=("model", "key"))
def tei_ranked(place, query, documents):
    return ranked(HuggingFaceTEIRanker(url=place.url, token=key(place)), query, documents)


@call(HUGGING_FACE, "HuggingFaceTEIRanker, a wrong key raises RuntimeError", ways=("wrong key",))
def tei_wrong_key(place):
    ranker = HuggingFaceTEIRanker(url=place.url, token=key(place), max_retries=0)
    raises(RuntimeError, lambda: ranked(ranker, "a", ["b"]), "401")


@embeds("vllm-haystack", "VLLMDocumentEmbedder")
def vllm_documents(place, texts):
    asked = dict(model=place.model, api_base_url=place.url + "/v1", api_key=key(place))
    return vectors(VLLMDocumentEmbedder(progress_bar=False, **asked), texts)


@reranks("vllm-haystack", "VLLMRanker")
def vllm_ranked(place, query, documents):
    asked = dict(model=place.model, api_base_url=place.url + "/v1", api_key=key(place))
    return ranked(VLLMRanker(**asked), query, documents)


@reranks("cohere-haystack", "CohereRanker")
def cohere_ranked(place, query, documents):
    asked = dict(model=place.model, api_base_url=place.url, api_key=key(place))
    return ranked(CohereRanker(**asked), query, documents)


@embeds("ollama-haystack", "OllamaDocumentEmbedder", ways=("model", "name", "path"))
def ollama_documents(place, texts):
    asked = OllamaDocumentEmbedder(model=place.model, url=place.url, progress_bar=False)
    return vectors(asked, texts)
