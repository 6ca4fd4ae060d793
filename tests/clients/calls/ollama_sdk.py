"""Ollama's own client."""

import asyncio

import ollama

from support import TEXTS, call, embeds, equal_numbers, raises


def client(place, kind=ollama.Client):
    return kind(host=place.url, headers={"authorization": f"Bearer {place.key}"})


@embeds("ollama", "embed")
def embed(place, texts):
    return client(place).embed(model=place.model, input=texts).embeddings


@embeds("ollama", "AsyncClient.embed")
def embed_awaited(place, texts):
    asked = client(place, ollama.AsyncClient).embed(model=place.model, input=texts)
    return asyncio.run(asked).embeddings


@embeds("ollama", "embeddings", normalize=False)
def embeddings(place, texts):
    asked = client(place)
    return [asked.embeddings(model=place.model, prompt=text).embedding for text in texts]


@call("ollama", "list and show", ways=("model", "key"))
def models(place):
    asked = client(place)
    listed = asked.list().models
    assert listed[0].model == "default" and listed[0].size > 1e6, listed
    shown = asked.show("default:latest")
    assert shown.modelinfo["cognate.embedding_length"] == len(place.embed(["a"])[0]), shown
    assert shown.capabilities == ["embedding"], shown


@call("ollama", "embed of one string")
def one(place):
    found = client(place).embed(model="default:latest", input=TEXTS[0]).embeddings
    assert len(found) == 1
    equal_numbers(found[0], place.embed(TEXTS[:1])[0])


@call("ollama", "refusals raise its exceptions")
def refusals(place):
    asked = client(place)
    error = raises(ollama.ResponseError, lambda: asked.embed(model="nomic-embed-text", input="a"))
    assert error.status_code == 404, error
    error = raises(ollama.ResponseError, lambda: asked.embed(model="default", input=[]))
    assert error.status_code == 400, error


@call("ollama", "a wrong key raises ResponseError", ways=("wrong key",))
def wrong_key(place):
    asked = client(place)
    error = raises(ollama.ResponseError, lambda: asked.embed(model="default", input="a"))
    assert error.status_code == 401, error
