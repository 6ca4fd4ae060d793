"""Why two texts scored as they did, for programs and for notebooks."""

from __future__ import annotations

import html
from dataclasses import dataclass
from typing import Any


#: Words of a text whose cosines a notebook shows.
_WORDS = 40


@dataclass(frozen=True, slots=True)
class Word:
    """A word that has a vector."""

    #: The token that was looked up.
    token: str
    #: Where the token stands in the text: `text[start:end]`.
    span: tuple[int, int]
    #: The vocabulary's word; nothing where the vector was made for this text.
    word: str | None
    #: How it was found: listed, shortened, stem, part, n_grams, pieces or hash.
    found: str
    #: The pieces that its vector was made from, where it was.
    pieces: list[str]
    #: Its inverse document frequency, where the model has one.
    idf: float | None
    #: The length of the word's vector.
    norm: float
    #: What it adds to the score, where the score comes apart into words.
    share: float | None


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two texts."""

    text: str
    words: list[Word]
    #: Tokens that no word was found for, each with what it adds to the score.
    unknown: list[tuple[str, float | None]]
    #: The share of its tokens that the model lists.
    known: float
    #: Whether it was cut.
    truncated: bool


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why two texts scored as they did.

    >>> import cognate_text
    >>> why = cognate_text.Model().explain("a quake", "an earthquake")
    >>> [word.token for word in why.b.words]
    ['an', 'earthquake']
    >>> len(why.matrix), len(why.matrix[0])
    (2, 2)
    >>> shares = [word.share for side in (why.a, why.b) for word in side.words]
    >>> abs(sum(shares) - why.score) < 1e-4
    True
    """

    score: float
    #: Whether a text could not be scored.
    unscored: bool
    method: str
    measure: str
    #: A summary in a sentence.
    sentence: str
    #: Whether the shares of all words and unknown tokens add up to the score.
    adds_up: bool
    a: Side
    b: Side
    #: Cosines of the words' vectors: a row a word of `a`, a column a word of `b`.
    matrix: list[list[float]]

    @classmethod
    def of(cls, found: dict[str, Any], a: str, b: str) -> Explanation:
        """What the engine said, in its shape."""

        def side(found: dict[str, Any], text: str) -> Side:
            words = [Word(**word) for word in found["words"]]
            return Side(text, words, found["unknown"], found["known"], found["truncated"])

        rest = {name: found[name] for name in found if name not in ("a", "b")}
        return cls(a=side(found["a"], a), b=side(found["b"], b), **rest)

    def __str__(self) -> str:
        return self.sentence

    def _repr_html_(self) -> str:
        """The texts with each word as dark as what it adds, and the cosines as a heat map."""
        sides = "".join(f'<p style="line-height:1.9">{_coloured(side)}</p>' for side in (self.a, self.b))
        return (
            f'<div style="font-family:sans-serif"><b>{self.score:.4f}</b> by '
            f"{html.escape(self.method)}{sides}{_heat_map(self)}"
            f"<p><small>{html.escape(self.sentence)}</small></p></div>"
        )


def _shade(value: float) -> str:
    """A background for a number from -1 to 1: blue where it is above 0, red below."""
    colour = "37,99,235" if value >= 0 else "220,38,38"
    # Dark text on a half-transparent ground is read in light and dark notebooks alike.
    return f"background:rgba({colour},{min(abs(value), 1.0) * 0.6:.2f})"


def _coloured(side: Side) -> str:
    shares: dict[tuple[int, int], float] = {}
    for word in side.words:
        shares[word.span] = shares.get(word.span, 0.0) + (word.share or 0.0)
    most = max((abs(share) for share in shares.values()), default=0.0) or 1.0
    parts, at = [], 0
    for (start, end), share in sorted(shares.items()):
        if start < at:
            continue
        parts.append(html.escape(side.text[at:start]))
        style = f"{_shade(share / most)};border-radius:3px"
        told = html.escape(side.text[start:end])
        parts.append(f'<span style="{style}" title="{share:.4f}">{told}</span>')
        at = end
    parts.append(html.escape(side.text[at:]))
    return "".join(parts)


def _heat_map(explained: Explanation) -> str:
    if not explained.matrix or not explained.b.words:
        return ""
    head = "".join(f"<th>{html.escape(word.token)}</th>" for word in explained.b.words[:_WORDS])
    rows = []
    for word, cosines in zip(explained.a.words[:_WORDS], explained.matrix):
        cells = "".join(
            f'<td style="{_shade(cosine)};text-align:right">{cosine:.2f}</td>' for cosine in cosines[:_WORDS]
        )
        rows.append(f"<tr><th>{html.escape(word.token)}</th>{cells}</tr>")
    return f"<table><tr><th></th>{head}</tr>{''.join(rows)}</table>"
