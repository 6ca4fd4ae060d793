"""Makes many short texts out of some, for measuring time and memory.

recombine.py TEXTS COUNT [SEED] > out.tsv

TEXTS holds a text a line. Four of five made texts are the beginning of one and the end of another;
one of five repeats one of the last 100,000 made with a word left out, exchanged or put in front.
The same arguments make the same texts. Rows have no header: a number, the number of the text that
it repeats or nothing, and the text.
"""

import random
import sys

KEPT = 100_000


def recombined(texts: list[list[str]], draw: random.Random) -> list[str]:
    one, other = texts[draw.randrange(len(texts))], texts[draw.randrange(len(texts))]
    return one[: max(1, len(one) // 2)] + other[len(other) // 2 :]


def repeated(words: list[str], texts: list[list[str]], draw: random.Random) -> list[str]:
    kind, at = draw.randrange(3), draw.randrange(len(words))
    word = draw.choice(texts[draw.randrange(len(texts))])
    if kind == 0 and len(words) > 3:
        return words[:at] + words[at + 1 :]
    if kind == 1:
        return words[:at] + [word] + words[at + 1 :]
    return ["RT", *words]


def main() -> None:
    texts = [line.split() for line in open(sys.argv[1], encoding="utf-8") if len(line.split()) > 4]
    count, seed = int(sys.argv[2]), int(sys.argv[3]) if len(sys.argv) > 3 else 1
    draw = random.Random(seed)
    made: list[list[str]] = []
    for number in range(count):
        original = ""
        if number and draw.randrange(5) == 0:
            at = draw.randrange(len(made))
            # The place of the text that was made `back` texts ago, in a list that goes round.
            back = (number - 1 - at) % len(made) + 1 if number > len(made) else number - at
            original = str(number - back)
            words = repeated(made[at], texts, draw)
        else:
            words = recombined(texts, draw)
        if len(made) < KEPT:
            made.append(words)
        else:
            made[number % KEPT] = words
        sys.stdout.write(f"{number}\t{original}\t{' '.join(words)}\n")


main()
