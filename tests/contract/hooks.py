"""What the document cannot say of bodies, so that generated ones keep to it.

Whether a text has a known word, whether a method has vectors or a threshold, and how many dimensions
there are, is for the model to say. That one of several fields must be there, the document says in
words, as it does that a field stands beside another alone.
"""

import json
from urllib.parse import unquote

import schemathesis

# Each list: at least one field of it, and no two.
ONE_OF = {
    "/rank": [["candidates"], ["query", "queries", "like"]],
    "/rerank": [["documents", "texts"]],
    "/v2/rerank": [["documents"]],
    "/score": [
        ["queries", "text_1", "data_1"],
        ["documents", "items", "text_2", "data_2"],
    ],
    "/vectors": [["text", "texts"]],
}
# The collection that `/rank` asks, and the fields that stand beside it alone.
OF_COLLECTION = ["collection", "filter", "event", "within", "shortlist", "boosts", "collapse_by"]
MOST_DIMENSIONS = 256
# Bytes of `data`.
MOST_DATA = 4096
# Unless a server is set otherwise.
MOST_ITEMS = 1_000_000


def count(texts):
    return len(texts) if isinstance(texts, list) else 1


def plain(name):
    return 0 < len(name.encode(errors="replace")) <= 256 and name.isprintable()


def written(name):
    """A number is a name, too, as JSON has it: 3 and 3.0 are the same."""
    return f"{name:.0f}" if isinstance(name, float) and name.is_integer() else str(name)


def objects(items):
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def is_long(item):
    """Has an object that is longer as written than a schema can say."""
    return len(json.dumps(item.get("data"))) > MOST_DATA


@schemathesis.hook
def map_path_parameters(context, path_parameters):
    if path_parameters and "method" in path_parameters:
        return {"model": "default", "method": "auto"}
    if path_parameters and "name" in path_parameters:
        # What is a name, the document says in words.
        item = path_parameters.get("id", "one")
        named = {"id": item if plain(unquote(str(item))) else "one"} if "id" in path_parameters else {}
        return {**path_parameters, "name": "contract", **named}
    return path_parameters


@schemathesis.hook
def map_query(context, query):
    if query and context.operation.path.endswith("/events/stream"):
        # A stream that is followed ends when its reader does, and which alerts there are, no document says.
        return {**{name: value for name, value in query.items() if name != "after"}, "follow": "false"}
    if query and context.operation.path.endswith(("/match", "/items/{id}")):
        # Which methods have vectors, which scores a method has, and names and spans in strings, the document says
        # in words.
        told_in_words = ("method", "second", "within", "threshold", "duplicate_score")
        return {name: value for name, value in query.items() if name not in told_in_words}
    if query and context.operation.path.endswith("/similar"):
        # Which scores a method has, the document says in words.
        return {name: value for name, value in query.items() if name != "min_score"}
    if query and ("query" in query or query.get("sort") == "distinct" and "distinct" not in query):
        return {name: value for name, value in query.items() if name != "sort"}
    return query


@schemathesis.hook
def map_headers(context, headers):
    return {name: value for name, value in (headers or {}).items() if name.lower() != "last-event-id"}


@schemathesis.hook
def filter_case(context, case):
    body, path = case.body, case.operation.path
    if case.media_type == "application/json" and case.query:
        return False  # settings of a JSON question stand in its body
    threshold = (case.query or {}).get("threshold", "0")
    if not str(threshold).replace(".", "").lstrip("-").isdigit():
        return False
    if path.startswith("/collections"):
        query = case.query or {}
        if any(field in query for field in ("filter", "within", "since", "second", "threshold")):
            return False  # JSON in a string, spans, times, names of methods, a number or a word
        if "opposites" in query or query.get("min_score") == "calibrated":
            return False  # it stands beside another alone; the model has it or not
        if path.endswith("/events/stream") and str(query.get("follow")).lower() != "false":
            return False
        if path.endswith("/events/stream") and (query.get("after") or (case.headers or {}).get("Last-Event-ID")):
            return False
        takes_all = str(query.get("all")).lower() == "true"
        if case.method == "DELETE" and path.endswith("/items") and not takes_all and not query.get("event"):
            return False  # one of several parameters must be there
        items = [body, *objects(body.get("items"))] if isinstance(body, dict) else []
        if any(item.get("attributes") for item in items):
            return False  # what an attribute may be, the document says in words
        ids = [written(item["id"]) for item in items if item.get("id") is not None]
        if len(set(ids)) < len(ids):
            return False  # no two items have one name
        events = [item["event"] for item in items if item.get("event") is not None]
        whole = [event for event in events if isinstance(event, dict)]
        if any(event.get("moved_at") is not None for event in whole):
            return False  # beside `moved_from`, and within the years that there are
        named = [event.get(field) for event in whole for field in ("id", "duplicate_of", "moved_from")]
        names = [item.get("id") for item in items if "id" in item] + events + named
        if any(isinstance(name, str) and not plain(name) for name in names):
            return False  # a name has 1 to 256 bytes, and no control characters
    if isinstance(body, dict) and any(
        is_long(item) for item in [body, *objects(body.get("items")), *objects(body.get("candidates"))]
    ):
        return False
    if case.media_type == "application/x-ndjson":
        # A stream of candidates begins with its question; lines of any kind are answered, but items are
        # added all or none.
        settings = case.query or {}
        if settings.get("measure") not in (None, "cosine") or path.endswith("/match") and settings.get("method"):
            return False
        if settings.get("opposites") == "count" and settings.get("method") or settings.get("oov") == "error":
            return False
        items = '"attributes"' if case.method == "PATCH" else '"text"'
        needed = {"/rank": '"query"', "/collections/{name}/items": items}.get(path, "")
        return isinstance(body, str) and needed in body
    if not isinstance(body, dict):
        return True
    if path.endswith("/match") and body.get("duplicate_score") is not None:
        return False
    most = body.get("max_items")
    if isinstance(most, (int, float)) and most > MOST_ITEMS:
        return False
    if path == "/rank" and any(field in body for field in OF_COLLECTION):
        return False  # which collections and attributes there are, no document says
    if path.startswith("/collections") and any(field in str(body) for field in ("ttl", "time", "within")):
        return False  # spans and points in time have more forms than a schema lists
    if body.get("oov") == "error" or body.get("unknown") == "error":
        return False
    if body.get("opposites") == "count" and body.get("method") is not None:
        return False
    if body.get("measure") not in (None, "cosine") or body.get("relevance") == "probability":
        return False
    if "calibrated" in (body.get("threshold"), body.get("min_score")):
        return False
    if isinstance(body.get("relevant_spans"), dict) or "texts" in body and path == "/v2/rerank":
        return False
    inputs = body.get("inputs") if isinstance(body.get("inputs"), dict) else {}
    if not plain(str(inputs.get("source_sentence", "one")).strip()):
        return False  # it is a query, which must not be empty
    config = body.get("config") if isinstance(body.get("config"), dict) else body
    dimensions = config.get("dimensions")
    if isinstance(dimensions, (int, float)) and dimensions > MOST_DIMENSIONS:
        return False
    for fields in ONE_OF.get(path, []):
        if sum(body.get(field) is not None for field in fields) != 1:
            return False
    if path == "/score":
        first, second = (next(body[f] for f in fields if body.get(f) is not None) for fields in ONE_OF[path])
        if count(first) == 1 and not str(first[0] if isinstance(first, list) else first).strip():
            return False  # one text against many is a query, which must not be empty
        return count(first) in (1, count(second))
    return True


@schemathesis.serializer("application/x-ndjson")
def lines(context, value):
    return value.encode() if isinstance(value, str) else b""
