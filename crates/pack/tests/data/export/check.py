"""Checks folders that `cognate export models/default.safetensors` wrote against golden.json.

python3 check.py FOLDER…, with sentence-transformers 6.2; it loads both layouts. Inflected forms
and int8 rows may be there or not; half precision and lengths of 1 would not agree.
"""

import json
import pathlib
import sys

import numpy as np
from sentence_transformers import SentenceTransformer

golden = json.loads(pathlib.Path(__file__).with_name("golden.json").read_text())
for folder in sys.argv[1:]:
    model = SentenceTransformer(folder, device="cpu")
    tokenizer = model[0].tokenizer
    compared = 0
    for text in golden:
        encoded = tokenizer.encode(text["text"], add_special_tokens=False)
        if encoded.tokens != text["tokens"]:
            print(f"{folder}: {text['text']!r} has words unknown to it: {encoded.tokens}")
            continue
        vector = model.encode([text["text"]])[0]
        np.testing.assert_allclose(vector[: len(text["first"])], text["first"], atol=1e-5)
        np.testing.assert_allclose(np.linalg.norm(vector), text["length"], atol=1e-5)
        compared += 1
    print(f"{folder}: {compared} of {len(golden)} texts compared")
    if compared < 15:
        sys.exit(1)
