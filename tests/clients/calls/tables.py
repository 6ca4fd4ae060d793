"""Columns of tables, scored over HTTP as docs/integrations/tables.md does it."""

import duckdb
import pandas
import requests

from support import DOCUMENTS, QUERY, TEXTS, call, equal_numbers


def scores(place, left, right):
    """The score of each row's pair, in requests of at most 1000."""
    pairs, found = list(zip(left, right)), []
    for start in range(0, len(pairs), 1000):
        body = place.ask(pairs=pairs[start : start + 1000])
        headers = {"authorization": f"Bearer {place.key}"}
        answer = requests.post(place.url + "/similarity", json=body, headers=headers, timeout=60)
        answer.raise_for_status()
        found += answer.json()["scores"]
    return found


@call("pandas", "a column of scores", ways=("model", "key"))
def data_frame(place):
    frame = pandas.DataFrame({"one": TEXTS, "other": DOCUMENTS}).sort_values("one")
    frame["score"] = scores(place, frame["one"], frame["other"])
    for row in frame.itertuples():
        equal_numbers([row.score], place.similarity(row.one, [row.other]))


@call("duckdb", "scores joined to a table", ways=("model", "key"))
def table(place):
    base = duckdb.connect()
    base.execute("CREATE TABLE texts (id INTEGER, text VARCHAR)")
    base.executemany("INSERT INTO texts VALUES (?, ?)", list(enumerate(DOCUMENTS)))
    ids, texts = zip(*base.execute("SELECT id, text FROM texts").fetchall())
    scored = pandas.DataFrame({"id": ids, "score": scores(place, [QUERY] * len(texts), texts)})
    base.register("scored", scored)
    rows = base.execute("SELECT id FROM texts JOIN scored USING (id) ORDER BY score DESC, id").fetchall()
    assert [row[0] for row in rows] == [index for index, _ in place.rank(QUERY, DOCUMENTS)], rows
