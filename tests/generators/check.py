"""Asks every native route with a generated client: check.py attrs|models|pydantic URL FOLDER.

A route that was added to the document and is not asked here fails the check, too.
"""

import importlib
import json
import pathlib
import sys
import urllib.request

PAIR = ["Quake hits L.A.!!", "Earthquake shakes Los Angeles"]
TAGS = ["compare", "describe", "operate"]


def same_score(scores):
    """Each form of a question about PAIR has the same answer."""
    assert len(set(scores)) == 1 and scores[0] > 0.5, scores


def attrs(url, folder):
    """By openapi-python-client: a module a route."""
    package = next(path.parent.name for path in folder.glob("*/client.py"))
    client = importlib.import_module(package).Client(base_url=url, raise_on_unexpected_status=True)
    models = importlib.import_module(f"{package}.models")
    routes = {}
    for tag in TAGS:
        for path in sorted((folder / package / "api" / tag).glob("[a-z]*.py")):
            routes[path.stem] = importlib.import_module(f"{package}.api.{tag}.{path.stem}")

    def ask(route, *given):
        answer = routes[route].sync_detailed(client=client, **dict(zip(["body"], given)))
        assert answer.status_code == 200, (route, answer.content)
        asked.add(route)
        return answer.parsed

    asked = set()
    a, b = PAIR
    # The method of the body stands in the query string for streams of lines.
    method = models.PairMethod("coverage-blend")
    one = ask("similarity", models.PairRequest(a=a, b=b, method=method, coverage=True))
    pairs = [PAIR, models.NamedPair(a=a, b=b)]
    many = ask("similarity", models.PairsRequest(pairs=pairs, method=method, threshold=0.5))
    assert one.known == [[1.0, 1.0]] and many.related == [True, True]
    candidates = ["Cat naps on sofa", models.NamedCandidate(id=7, text=b)]
    rank = models.RankRequest(query=a, candidates=candidates, method=models.RankMethod("coverage-blend"))
    best = ask("rank", rank).results[0]
    assert best.id == 7 and best.index == 1
    same_score([one.scores[0], *many.scores, best.score])
    for texts in (a, PAIR):
        embedded = ask("embed", models.EmbedRequest(texts=texts))
        assert len(embedded.embeddings[0]) == embedded.dimensions
    explained = ask("explain", models.ExplainRequest(a=a, b=b))
    assert explained.a.known == 1.0 and explained.sentence
    assert ask("methods").methods and ask("models").models
    assert ask("health").status == "ok" and ask("ready").status == "ready"
    assert "cognate_" in ask("metrics") and ask("reload").models and "<html" in ask("playground")
    refused = routes["similarity"].sync_detailed(client=client, body=models.PairsRequest(pairs=[]))
    assert refused.status_code == 422 and refused.parsed.code == "empty_list", refused.content
    return set(routes), asked


def models(url, folder):
    """By datamodel-codegen: classes that read questions and answers; a client of one's own sends them."""
    models = importlib.import_module("models")
    asked = set()

    def ask(route, answer, question=None, path=None):
        body = question and question.model_dump_json(exclude_unset=True).encode()
        request = urllib.request.Request(url + (path or f"/{route}"), body)
        request.add_header("content-type", "application/json")
        with urllib.request.urlopen(request) as response:
            asked.add(route)
            return answer.model_validate_json(response.read())

    a, b = PAIR
    similarity = lambda question: ask(
        "similarity", models.SimilarityResponse, models.SimilarityRequest.model_validate(question)
    )
    one = similarity({"a": a, "b": b, "coverage": True})
    many = similarity({"pairs": [PAIR, {"a": a, "b": b}], "threshold": "calibrated"})
    assert one.known == [[1.0, 1.0]] and many.related == [True, True]
    question = {"query": a, "candidates": ["Cat naps on sofa", {"id": 7, "text": b}]}
    question = models.RankRequest.model_validate(question)
    best = ask("rank", models.RankResponse, question).results[0]
    same_score([one.scores[0], *many.scores, best.score])
    question = models.EmbedRequest.model_validate({"texts": PAIR})
    assert len(ask("embed", models.EmbedResponse, question).embeddings) == 2
    question = models.ExplainRequest.model_validate({"a": a, "b": b})
    assert ask("explain", models.ExplainResponse, question).a.known == 1.0
    assert ask("methods", models.MethodList).methods and ask("models", models.ModelList).models
    ask("health", models.Status)
    ask("ready", models.Status)
    # What is text and what has no body needs no class.
    return asked, asked


def pydantic(url, folder):
    """By openapi-generator: a class a tag."""
    made = importlib.import_module("cognate_pydantic")
    client = made.ApiClient(made.Configuration(host=url))
    apis = {tag: getattr(made, f"{tag.capitalize()}Api")(client) for tag in TAGS}
    documented = json.loads((pathlib.Path(__file__).parents[2] / "openapi/cognate.json").read_text())
    operations = [o for path in documented["paths"].values() for o in path.values()]
    routes = {o["operationId"]: apis[o["tags"][0]] for o in operations if o["tags"][0] in TAGS}
    asked = set()

    def ask(route, *given):
        answer = getattr(routes[route], route)(*given)
        asked.add(route)
        return answer

    a, b = PAIR
    similarity = lambda question: ask("similarity", made.SimilarityRequest.from_dict(question))
    one = similarity({"a": a, "b": b, "coverage": True})
    many = similarity({"pairs": [PAIR, {"a": a, "b": b}], "threshold": "calibrated"})
    assert one.known == [[1.0, 1.0]] and many.related == [True, True]
    question = {"query": a, "candidates": ["Cat naps on sofa", {"id": 7, "text": b}]}
    best = ask("rank", made.RankRequest.from_dict(question)).actual_instance.results[0]
    same_score([one.scores[0], *many.scores, best.score])
    embedded = ask("embed", made.EmbedRequest.from_dict({"texts": PAIR}))
    assert len(embedded.embeddings) == 2
    assert ask("explain", made.ExplainRequest.from_dict({"a": a, "b": b})).a.known == 1.0
    assert ask("methods").methods and ask("models").models
    assert ask("health").status == "ok" and ask("ready").status == "ready"
    assert "cognate_" in ask("metrics") and ask("reload").models and "<html" in ask("playground")
    return set(routes), asked


if __name__ == "__main__":
    kind, url, folder = sys.argv[1:]
    sys.path.insert(0, folder)
    routes, asked = {"attrs": attrs, "models": models, "pydantic": pydantic}[kind](
        url, pathlib.Path(folder)
    )
    assert asked == routes, f"{kind}: not asked: {sorted(routes - asked)}"
    print(f"{kind}: {len(asked)} routes answer a generated client")
