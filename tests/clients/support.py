"""What the calls share: where the service is, what it answers natively, and how calls are registered.

A call is made several times, each in a way to say which model is meant and who asks (see WAYS). What it
returns is held to the native routes, `/embed`, `/rank` and `/similarity`. Nothing here knows a client.
"""

import importlib.metadata
import json
import math
import urllib.request
from dataclasses import dataclass

TEXTS = [
    "Quake hits L.A.!!",
    "Earthquake shakes Los Angeles",
    "zzqxvkw",
    "Cat naps on sofa",
    "straße über den Dächern 😀",
]
QUERY = "strong quake in chile"
DOCUMENTS = [
    "cat naps on sofa",
    "earthquake hits Chile",
    "zzqxvkw",
    "tremor felt in Santiago, Chile",
    "ein Erdbeben 😀",
]
# A method without a calibration: its relevances are its scores, moved to 0…1.
METHOD = "sif"
# How a client says which model it wants, or who it is.
WAYS = ["model", "name", "path", "key"]


@dataclass
class Place:
    """Where a call goes, and what it says of itself."""

    url: str
    model: str
    key: str
    method: str | None

    def native(self, path, body=None):
        """What the native route answers."""
        root = self.url.split("/m/")[0]
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(root + path, data)
        request.add_header("content-type", "application/json")
        request.add_header("authorization", f"Bearer {self.key}")
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def ask(self, **fields):
        """A body of the native routes for this method."""
        return fields | ({"method": self.method} if self.method else {})

    def embed(self, texts, normalize=True):
        """The vectors of texts; a text without a known word has the vector that dialects give it."""
        body = self.ask(texts=texts, normalize=normalize, unknown="hash")
        return self.native("/embed", body)["embeddings"]

    def rank(self, query, documents):
        """Indexes and scores, best first."""
        results = self.native("/rank", self.ask(query=query, candidates=documents))["results"]
        return [(result["index"], result["score"]) for result in results]

    def similarity(self, one, others):
        """The scores of one text against others."""
        pairs = [[one, other] for other in others]
        return self.native("/similarity", self.ask(pairs=pairs))["scores"]


@dataclass
class Call:
    """A call of a client, and the ways in which it is made."""

    package: str
    what: str
    ways: list
    check: object

    @property
    def version(self):
        return importlib.metadata.version(self.package)


CALLS = []


def call(package, what, ways=("model",)):
    """Registers a call that checks by itself what it is answered."""

    def register(check):
        CALLS.append(Call(package, what, list(ways), check))
        return check

    return register


def embeds(package, what, normalize=True, ways=WAYS):
    """Registers a call that returns the vectors of the texts it is given."""

    def register(ask):
        def check(place):
            equal_vectors(ask(place, TEXTS), place.embed(TEXTS, normalize))

        CALLS.append(Call(package, what, list(ways), check))
        return ask

    return register


def reranks(package, what, ways=WAYS):
    """Registers a call that returns (index, relevance) or (index, relevance, text), best first."""

    def register(ask):
        def check(place):
            equal_ranking(place, ask(place, QUERY, DOCUMENTS))

        CALLS.append(Call(package, what, list(ways), check))
        return ask

    return register


def equal_vectors(found, expected):
    """Vectors are those of the native route, in its order."""
    assert len(found) == len(expected), f"{len(found)} vectors for {len(expected)} texts"
    for index, (one, other) in enumerate(zip(found, expected)):
        one = [float(number) for number in one]
        assert len(one) == len(other), f"text {index}: {len(one)} dimensions, not {len(other)}"
        off = max(abs(a - b) for a, b in zip(one, other))
        assert off <= 1e-6, f"text {index}: a number differs by {off}"


def equal_numbers(found, expected):
    """Numbers are those of the native route, in its order."""
    equal_vectors([found], [expected])


def equal_ranking(place, found):
    """Documents are in the native order, and relevances are what they say."""
    expected = place.rank(QUERY, DOCUMENTS)
    order = [index for index, _ in expected]
    assert [row[0] for row in found] == order, f"order {[row[0] for row in found]}, not {order}"
    relevances = [float(row[1]) for row in found]
    assert all(0 <= relevance <= 1 for relevance in relevances), f"outside of 0…1: {relevances}"
    # Some clients sort again: no two may be alike whose scores differ.
    pairs = zip(zip(expected, expected[1:]), zip(relevances, relevances[1:]))
    for ((_, score), (_, next_score)), (relevance, next_relevance) in pairs:
        falls = relevance > next_relevance if score > next_score else relevance == next_relevance
        assert falls, f"not in order: {relevances} for {expected}"
    if place.method == METHOD:
        for (index, score), relevance in zip(expected, relevances):
            moved = (score + 1) / 2
            assert math.isclose(moved, relevance, abs_tol=1e-6), f"{index}: {relevance}, not {moved}"
    for row in found:
        if len(row) > 2:
            assert row[2] == DOCUMENTS[row[0]], f"the text of {row[0]} is {row[2]!r}"


def raises(kind, ask, says=None):
    """Asking raises this exception, and it says why."""
    try:
        answer = ask()
    except kind as error:
        assert says is None or says in str(error), f"{error} does not say {says!r}"
        return error
    raise AssertionError(f"no {kind.__name__}, but {answer!r}"[:200])
