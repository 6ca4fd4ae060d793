"""Copies planted among texts, and how many of them a search for duplicates tells.

planted.py make TEXTS COUNT [SEED] > rows.tsv    (a text a line in; a fifth of the rows repeat another)
planted.py judge rows.tsv FOUND                  (FOUND as `cognate dedupe --columns cluster` writes it)
planted.py minhash rows.tsv THRESHOLD > found    (datasketch, words, 128 permutations)
planted.py semhash rows.tsv THRESHOLD MODEL > found    (MODEL as `cognate export --to model2vec` writes it)

A row is a number, the number of the row that it repeats or nothing, how it was changed, and its text. No two
texts have the same words but where one repeats the other. A row is told if one stands for it: rightly if
that one repeats the same text. Texts that were alike before count as told wrongly, for all alike.
"""

import random
import re
import string
import sys

LEAST, MOST = 6, 20
SHARE = 0.2


def typo(word: str, draw: random.Random) -> str:
    at, letter = draw.randrange(len(word)), draw.choice(string.ascii_lowercase)
    kinds = [word[:at] + letter + word[at + 1 :], word[:at] + letter + word[at:], word[:at] + word[at + 1 :]]
    if at + 1 < len(word):
        kinds.append(word[:at] + word[at + 1] + word[at] + word[at + 2 :])
    return draw.choice(kinds)


def form(words: list[str], _: list[list[str]], draw: random.Random) -> list[str]:
    changed = [str.upper, str.lower, str.title][draw.randrange(3)]
    words = [changed(word) for word in words]
    return [["RT", *words], [*words, f"https://example.org/{draw.randrange(1000)}"], words][draw.randrange(3)]


def typos(words: list[str], _: list[list[str]], draw: random.Random) -> list[str]:
    places = [at for at, word in enumerate(words) if len(word) > 3 and word.isalpha()] or [0]
    chosen = draw.sample(places, min(len(places), draw.randint(1, 2)))
    return [typo(word, draw) if at in chosen else word for at, word in enumerate(words)]


def drop(words: list[str], _: list[list[str]], draw: random.Random) -> list[str]:
    left_out = draw.sample(range(len(words)), draw.randint(1, 2))
    return [word for at, word in enumerate(words) if at not in left_out]


def insert(words: list[str], texts: list[list[str]], draw: random.Random) -> list[str]:
    for _ in range(draw.randint(1, 2)):
        at = draw.randint(0, len(words))
        words = [*words[:at], draw.choice(draw.choice(texts)), *words[at:]]
    return words


def replace(words: list[str], texts: list[list[str]], draw: random.Random) -> list[str]:
    at = draw.randrange(len(words))
    return [*words[:at], draw.choice(draw.choice(texts)), *words[at + 1 :]]


def halves(words: list[str], _: list[list[str]], draw: random.Random) -> list[str]:
    return words[len(words) // 2 :] + words[: len(words) // 2]


KINDS = [form, typos, drop, insert, replace, halves]


def tokens(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"\w+", text.lower()))


def make(path: str, count: int, seed: int) -> None:
    draw, texts, seen = random.Random(seed), [], set()
    lines = open(path, encoding="utf-8").read().splitlines()
    draw.shuffle(lines)
    for line in lines:
        words = line.split()[:MOST]
        known = tokens(" ".join(words))
        if len(words) >= LEAST and len(known) >= LEAST - 1 and known not in seen:
            seen.add(known)
            texts.append(words)
    copies = int(count * SHARE)
    if len(texts) < count - copies:
        sys.exit(f"{path} has {len(texts)} different texts, {count - copies} are wanted")
    texts = texts[: count - copies]
    rows = [(number, "", "", text) for number, text in enumerate(texts)]
    for of in (draw.randrange(len(texts)) for _ in range(copies)):
        change = draw.choice(KINDS)
        rows.append((of, of, change.__name__, change(texts[of], texts, draw)))
    draw.shuffle(rows)
    for group, of, kind, text in rows:
        print(group, of, kind, " ".join(text), sep="\t")


def read(path: str) -> list[list[str]]:
    return [line.split("\t") for line in open(path, encoding="utf-8").read().split("\n")[:-1]]


def judge(rows: list[list[str]], found: str) -> None:
    clusters = [int(line) - 1 for line in open(found) if line.strip().isdigit()]
    if len(clusters) != len(rows):
        sys.exit(f"{found} has {len(clusters)} rows, not {len(rows)}")
    right = told = 0
    there: dict[str, list[int]] = {}
    known: set[str] = set()
    for at, (row, of) in enumerate(zip(rows, clusters)):
        same = of != at and rows[of][0] == row[0]
        told, right = told + (of != at), right + same
        # Of a group the first row is nobody's duplicate; the change is that of the row or of the first.
        if row[0] in known:
            there.setdefault(row[2] or "original", []).append(same)
        known.add(row[0])
    every = sum(map(len, there.values()))
    precision, recall = right / max(told, 1), right / every
    kinds = ", ".join(f"{kind} {sum(of) / len(of):.3f}" for kind, of in sorted(there.items()))
    print(f"precision {precision:.3f}, recall {recall:.3f}, F1 {2 * precision * recall / (precision + recall):.3f}: {kinds}")


def minhash(rows: list[list[str]], threshold: float) -> None:
    from datasketch import MinHash, MinHashLSH

    index = MinHashLSH(threshold=threshold, num_perm=128)
    sketches = {}
    for at, row in enumerate(rows):
        sketch = MinHash(num_perm=128)
        sketch.update_batch([word.encode() for word in sorted(tokens(row[3]))])
        near = ((sketch.jaccard(sketches[other]), -other) for other in index.query(sketch))
        score, of = max(near, default=(0.0, 0))
        if score < threshold:
            index.insert(at, sketch)
            sketches[at] = sketch
        print((-of if score >= threshold else at) + 1)


def semhash(rows: list[list[str]], threshold: float, folder: str) -> None:
    from model2vec import StaticModel
    from semhash import SemHash

    records = [{"text": row[3], "at": at} for at, row in enumerate(rows)]
    found = SemHash.from_records(records, columns=["text"], model=StaticModel.from_pretrained(folder))
    stands = list(range(len(rows)))
    for chosen in found.self_deduplicate(threshold=threshold).selected_with_duplicates:
        for duplicate, _ in chosen.duplicates:
            stands[duplicate["at"]] = chosen.record["at"]
    print("\n".join(str(of + 1) for of in stands))


def main() -> None:
    step, path, *rest = sys.argv[1:]
    if step == "make":
        make(path, int(rest[0]), int(rest[1]) if rest[1:] else 1)
    elif step == "judge":
        judge(read(path), rest[0])
    elif step == "minhash":
        minhash(read(path), float(rest[0]))
    else:
        semhash(read(path), float(rest[0]), rest[1])


main()
