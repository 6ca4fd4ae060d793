"""OpenAI's own client."""

import asyncio
import base64
import struct

import openai

from support import TEXTS, call, embeds, equal_vectors, raises


def client(place, kind=openai.OpenAI):
    return kind(base_url=place.url + "/v1", api_key=place.key, max_retries=0)


def vectors(answer):
    assert [row.index for row in answer.data] == list(range(len(answer.data)))
    assert answer.usage.prompt_tokens == answer.usage.total_tokens > 0
    return [row.embedding for row in answer.data]


@embeds("openai", "embeddings.create")
def default_encoding(place, texts):
    return vectors(client(place).embeddings.create(input=texts, model=place.model))


@embeds("openai", "embeddings.create, encoding_format float")
def float_encoding(place, texts):
    asked = client(place).embeddings
    return vectors(asked.create(input=texts, model=place.model, encoding_format="float"))


@embeds("openai", "embeddings.create, encoding_format base64")
def base64_encoding(place, texts):
    asked = client(place).embeddings
    found = vectors(asked.create(input=texts, model=place.model, encoding_format="base64"))
    if isinstance(found[0], str):
        found = [base64.b64decode(each) for each in found]
        return [struct.unpack(f"<{len(each) // 4}f", each) for each in found]
    return found


@embeds("openai", "AsyncOpenAI embeddings.create")
def awaited(place, texts):
    async def ask():
        async with client(place, openai.AsyncOpenAI) as asked:
            return await asked.embeddings.create(input=texts, model=place.model)

    return vectors(asyncio.run(ask()))


@call("openai", "embeddings.create, one string and dimensions")
def shortened(place):
    asked = client(place).embeddings
    found = vectors(asked.create(input=TEXTS[0], model=place.model, dimensions=64))
    whole = place.embed(TEXTS[:1])[0][:64]
    length = sum(number * number for number in whole) ** 0.5
    equal_vectors(found, [[number / length for number in whole]])


@call("openai", "models.list")
def models(place):
    listed = [model.id for model in client(place).models.list()]
    native = [model["name"] for model in place.native("/models")["models"]]
    assert listed == native, listed


@call("openai", "refusals raise its exceptions")
def refusals(place):
    create = client(place).embeddings.create
    error = raises(openai.BadRequestError, lambda: create(input=[], model="default"))
    assert error.code == "empty_list" and error.param == "input", error
    error = raises(openai.NotFoundError, lambda: create(input="a", model="text-embedding-3-small"))
    assert error.code == "unknown_model", error
    token_ids = lambda: create(input=[[5, 6]], model="default")
    raises(openai.BadRequestError, token_ids, "check_embedding_ctx_length=False")


@call("openai", "a wrong key raises AuthenticationError", ways=("wrong key",))
def wrong_key(place):
    create = client(place).embeddings.create
    raises(openai.AuthenticationError, lambda: create(input="a", model="default"))
