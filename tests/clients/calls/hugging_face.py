"""The client of the Hugging Face Hub, with the address of a server as its model."""

import asyncio

from huggingface_hub import AsyncInferenceClient, InferenceClient
from huggingface_hub.errors import HfHubHTTPError

from support import TEXTS, call, embeds, equal_numbers, raises

# The address is the model, so that no other can be named.
WAYS = ("model", "path", "key")
PACKAGE = "huggingface_hub"


def client(place, kind=InferenceClient):
    return kind(model=place.url, token=place.key)


@embeds(PACKAGE, "feature_extraction", normalize=False, ways=WAYS)
def features(place, texts):
    return client(place).feature_extraction(texts).tolist()


@embeds(PACKAGE, "feature_extraction, normalize", ways=WAYS)
def features_normalized(place, texts):
    asked = client(place)
    return [asked.feature_extraction(text, normalize=True).tolist()[0] for text in texts]


@embeds(PACKAGE, "AsyncInferenceClient.feature_extraction", normalize=False, ways=WAYS)
def features_awaited(place, texts):
    return asyncio.run(client(place, AsyncInferenceClient).feature_extraction(texts)).tolist()


@call(PACKAGE, "sentence_similarity", ways=WAYS)
def similarity(place):
    found = client(place).sentence_similarity(TEXTS[0], TEXTS[1:])
    equal_numbers(found, place.similarity(TEXTS[0], TEXTS[1:]))


@call(PACKAGE, "feature_extraction of the server's /embed", ways=WAYS)
def embed_route(place):
    found = InferenceClient(model=place.url + "/embed", token=place.key).feature_extraction(TEXTS)
    for one, other in zip(found.tolist(), place.embed(TEXTS), strict=True):
        equal_numbers(one, other)


@call(PACKAGE, "refusals raise its exceptions")
def refusals(place):
    asked = client(place)
    error = raises(HfHubHTTPError, lambda: asked.feature_extraction([]))
    assert error.response.json()["error_type"] == "Empty", error.response.text
    raises(HfHubHTTPError, lambda: asked.sentence_similarity("a", []))
    wrong = InferenceClient(model=place.url + "/m/nothing/avg-cos", token=place.key)
    raises(HfHubHTTPError, lambda: wrong.feature_extraction("a"), "404")


@call(PACKAGE, "a wrong key raises HfHubHTTPError", ways=("wrong key",))
def wrong_key(place):
    raises(HfHubHTTPError, lambda: client(place).feature_extraction("a"), "401")
