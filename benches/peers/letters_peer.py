"""What many compare short texts with today: letters, by RapidFuzz, all pairs in one call.

letters_peer.py PAIRS
"""

import sys
from collections.abc import Sequence

from rapidfuzz import fuzz, process

from turns import Pair, read_pairs, take_turns


def token_set_ratio(pairs: list[Pair]) -> Sequence[float]:
    """Shared words and the letters of the others, from 0 to 1."""
    one, other = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    scores = process.cpdist(one, other, scorer=fuzz.token_set_ratio, workers=1)
    return (scores / 100).tolist()


if __name__ == "__main__":
    take_turns(read_pairs(sys.argv[1]), {"token_set_ratio": token_set_ratio})
