"""Makes golden.json: what independent implementations say of small seeded inputs.

    python3 make.py        (numpy 2.4, scipy 1.17, scikit-learn 1.9, mpmath 1.3, pytrec-eval-terrier 0.5)

Every case holds its inputs and the expected values, so the Rust tests need neither Python nor its random generator.
"""

import json
import math
from pathlib import Path

import mpmath
import numpy as np
import pytrec_eval
from scipy import special, stats
from sklearn import metrics as sk

M64 = (1 << 64) - 1


def plain(value):
    """numpy values as JSON can write them; real numbers as text, because not every JSON reader rounds the last digit well."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [plain(item) for item in value]
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (int, np.integer)):
        return int(value)
    if isinstance(value, (float, np.floating)):
        assert math.isfinite(value)
        return repr(float(value))
    return value


def splitmix64(state):
    state = (state + 0x9E3779B97F4A7C15) & M64
    mixed = state
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & M64
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & M64
    return state, mixed ^ (mixed >> 31)


def xoshiro(seed, count):
    """xoshiro256++ seeded by splitmix64, from the reference C of Blackman and Vigna."""
    rotl = lambda x, k: ((x << k) | (x >> (64 - k))) & M64
    s = []
    for _ in range(4):
        seed, word = splitmix64(seed)
        s.append(word)
    out = []
    for _ in range(count):
        out.append((rotl((s[0] + s[3]) & M64, 23) + s[0]) & M64)
        t = (s[1] << 17) & M64
        s[2] ^= s[0]
        s[3] ^= s[1]
        s[1] ^= s[2]
        s[0] ^= s[3]
        s[2] ^= t
        s[3] = rotl(s[3], 45)
    return out


def random_cases():
    # As text too: a 64-bit integer does not survive every JSON reader.
    return [{"seed": str(seed), "words": [str(w) for w in xoshiro(seed, 8)]} for seed in (0, 1, 20240607, M64)]


def normal_cases():
    z = np.concatenate([np.linspace(-37, -6, 32), np.linspace(-6, 8.5, 117), [-0.46875, 0.46875 * math.sqrt(2), 1e-12]])
    p = np.concatenate([10.0 ** -np.arange(1, 301, 13), np.linspace(0.005, 0.995, 199), 1 - 10.0 ** -np.arange(3, 15)])
    # SciPy loses three digits of the far tail, so the cumulative probability comes from forty-digit arithmetic.
    mpmath.mp.dps = 40
    return {"z": z, "cdf": [float(mpmath.ncdf(v)) for v in z], "p": p, "quantile": special.ndtri(p)}


def correlation_cases(rng):
    cases = []
    for n, step in ((2, 0), (3, 0), (40, 0), (40, 0.5), (200, 1.0)):
        x = rng.normal(size=n)
        y = 0.6 * x + rng.normal(size=n)
        if step:
            x, y = np.round(x / step) * step, np.round(y / step) * step
        cases.append(
            {"x": x, "y": y, "ranks": stats.rankdata(x), "pearson": stats.pearsonr(x, y)[0], "spearman": stats.spearmanr(x, y)[0]}
        )
    x = 1e9 + rng.normal(size=30)
    y = 1e-9 * rng.normal(size=30) + 3e-10 * (x - 1e9)
    # Far from zero the textbook formula loses its digits, so this one is computed from the exact decimals.
    from fractions import Fraction as F

    fx, fy = [F(v) for v in x], [F(v) for v in y]
    mx, my = sum(fx) / 30, sum(fy) / 30
    sxy = sum((a - mx) * (b - my) for a, b in zip(fx, fy))
    sxx, syy = sum((a - mx) ** 2 for a in fx), sum((b - my) ** 2 for b in fy)
    exact = float(sxy) / math.sqrt(float(sxx)) / math.sqrt(float(syy))
    cases.append({"x": x, "y": y, "ranks": stats.rankdata(x), "pearson": exact, "spearman": stats.spearmanr(x, y)[0]})
    return cases


def efron_bca(estimate, resamples, jackknife, level):
    """Efron and Tibshirani (1993), equations 14.10, 14.14 and 14.15; ties of the estimate count half."""
    b = np.sort(resamples)
    below = ((b < estimate).sum() + (b <= estimate).sum()) / (2 * len(b))
    z0 = special.ndtri(below)
    u = jackknife.mean() - jackknife
    a = (u**3).sum() / (6 * (u**2).sum() ** 1.5)
    ends = []
    for z in (special.ndtri((1 - level) / 2), special.ndtri((1 + level) / 2)):
        ends.append(float(np.quantile(b, special.ndtr(z0 + (z0 + z) / (1 - a * (z0 + z))))))
    return ends


def pearson_rows(x, y):
    x = x - x.mean(-1, keepdims=True)
    y = y - y.mean(-1, keepdims=True)
    return (x * y).sum(-1) / np.sqrt((x * x).sum(-1) * (y * y).sum(-1))


def bootstrap_cases(rng):
    n = 60
    gold = rng.uniform(0, 5, size=n)
    first = gold + rng.normal(scale=1.5, size=n)
    second = gold + rng.normal(scale=3.0, size=n)
    one = lambda g, a, b, axis=-1: pearson_rows(g, a)
    gap = lambda g, a, b, axis=-1: pearson_rows(g, a) - pearson_rows(g, b)
    keep = lambda i: np.delete(np.arange(n), i)
    out = {"gold": gold, "first": first, "second": second, "endpoints": [], "whole": []}
    for statistic in (one, gap):
        draws = rng.integers(0, n, size=(300, n))
        estimate = statistic(gold, first, second)
        resamples = statistic(gold[draws], first[draws], second[draws])
        jackknife = np.array([statistic(gold[keep(i)], first[keep(i)], second[keep(i)]) for i in range(n)])
        for level in (0.8, 0.95, 0.99):
            low, high = efron_bca(estimate, resamples, jackknife, level)
            out["endpoints"].append(
                {"estimate": estimate, "resamples": resamples, "jackknife": jackknife, "level": level, "low": low, "high": high}
            )
        whole = stats.bootstrap(
            (gold, first, second), statistic, n_resamples=200_000, batch=10_000, paired=True, vectorized=True,
            method="BCa", confidence_level=0.95, rng=np.random.default_rng(5),
        )
        out["whole"].append(
            {"estimate": estimate, "jackknife": jackknife, "low": whole.confidence_interval.low, "high": whole.confidence_interval.high}
        )
    # Coarse values, so that many resamples tie with the estimate.
    coarse = np.round(rng.normal(size=200), 1)
    jackknife = rng.normal(size=20)
    low, high = efron_bca(0.1, coarse, jackknife, 0.9)
    out["endpoints"].append({"estimate": 0.1, "resamples": coarse, "jackknife": jackknife, "level": 0.9, "low": low, "high": high})
    return out


def wilcoxon_cases(rng):
    cases = []
    samples = [rng.normal(0.3, 1, size=n) for n in (1, 2, 5, 12, 13, 14, 25, 50, 51, 300)]
    samples += [np.round(rng.normal(0.5, 1.5, size=n)) for n in (6, 13, 14, 40, 80)]  # ties and zeros
    samples += [np.array([1.0, -1.0, 2.0, -2.0, 0.0]), np.array([0.5] * 20), np.append(rng.normal(size=20), 0.0)]
    for d in samples:
        result = stats.wilcoxon(d)
        cases.append({"differences": d, "statistic": result.statistic, "p": result.pvalue})
    return cases


def sign_cases():
    pairs = [(0, 1), (1, 1), (5, 0), (3, 9), (10, 10), (7, 8), (40, 60), (430, 570), (0, 60), (0, 900), (1900, 2100)]
    pairs += [(99_800, 100_200), (497_000, 503_000), (500_000, 500_000), (480_000, 520_000), (499_999, 500_000)]
    return [{"wins": a, "losses": b, "p": stats.binomtest(a, a + b, 0.5).pvalue} for a, b in pairs]


def randomisation_cases(rng):
    cases = []
    for d in (rng.normal(0.4, 1, size=3), rng.normal(0.4, 1, size=10), np.round(rng.normal(0.4, 1, size=12), 1), rng.normal(0.6, 1, size=13)):
        result = stats.permutation_test(
            (d,), lambda v, axis: np.mean(v, axis=axis), permutation_type="samples", vectorized=True, n_resamples=np.inf
        )
        cases.append({"differences": d, "p": result.pvalue})
    large = rng.normal(0.12, 1, size=59)
    result = stats.permutation_test(
        (large,), lambda v, axis: np.mean(v, axis=axis), permutation_type="samples", vectorized=True, n_resamples=400_000,
        batch=20_000, rng=np.random.default_rng(3),
    )
    return {"exact": cases, "sampled": {"differences": large, "p": result.pvalue}}


def classification_cases(rng):
    cases = []
    for n, decimals in ((12, 6), (60, 6), (60, 1), (200, 1), (9, 0)):
        labels = rng.random(n) < 0.4
        labels[:2] = (True, False)
        scores = np.round(rng.normal(size=n) + 0.8 * labels, decimals) + 0.0
        fpr, tpr, _ = sk.roc_curve(labels, scores, drop_intermediate=False)
        precision, recall, thresholds = sk.precision_recall_curve(labels, scores, drop_intermediate=False)
        at = []
        for threshold in np.quantile(scores, [0, 0.25, 0.5, 0.9]):
            said = scores >= threshold
            at.append(
                {"threshold": threshold, "precision": sk.precision_score(labels, said), "recall": sk.recall_score(labels, said),
                 "f1": sk.f1_score(labels, said), "accuracy": sk.accuracy_score(labels, said)}
            )
        distinct = np.unique(scores)
        cuts = np.append(distinct, distinct[-1] + 1)
        enough = [(recall[i], precision[i]) for i in range(len(thresholds)) if precision[i] >= 0.75]
        cases.append(
            {"labels": labels, "scores": scores, "auc": sk.roc_auc_score(labels, scores),
             "average_precision": sk.average_precision_score(labels, scores),
             "roc": np.stack([fpr, tpr], 1), "precision_recall": np.stack([recall, precision], 1)[:-1][::-1], "at": at,
             "best_f1": max(sk.f1_score(labels, scores >= c, zero_division=0) for c in cuts),
             "best_accuracy": max(sk.accuracy_score(labels, scores >= c) for c in cuts),
             "best_recall_at_precision_075": max(enough)[0] if enough else -1.0}
        )
    return cases


def distribution_cases(rng):
    from scipy.spatial.distance import jensenshannon

    cases = []
    for a, b in ((rng.normal(size=500), rng.normal(1, 1, size=400)), (np.round(rng.normal(size=80), 1), np.round(rng.normal(size=50), 1)),
                 (rng.random(30), 5 + rng.random(30))):
        both = np.concatenate([a, b])
        edges = np.linspace(both.min(), both.max(), 101)
        ha, hb = np.histogram(a, edges)[0], np.histogram(b, edges)[0]
        cases.append(
            {"first": a, "second": b, "edges": edges, "first_counts": ha, "second_counts": hb,
             "jensen_shannon": jensenshannon(ha, hb, base=2) ** 2, "quantiles": np.quantile(a, np.linspace(0, 1, 101))}
        )
    return cases


def ranking_cases(rng):
    qrels, run = {}, {}
    for q in range(12):
        documents = [f"d{rng.integers(0, 10**int(rng.integers(1, 6)))}" for _ in range(40)]
        documents = list(dict.fromkeys(documents))
        grades = {d: int(rng.choice([0, 0, 1, 2, 3])) for d in documents[::2]}
        if q == 3:
            grades = {d: 0 for d in grades}
        returned = [d for d in documents if rng.random() < 0.8][: 30 if q != 5 else 4]
        # Two decimals and forty documents: there are ties on every page.
        run[f"q{q}"] = {d: float(np.round(rng.random() + 0.2 * grades.get(d, 0), 1)) for d in returned}
        qrels[f"q{q}"] = grades
    del run["q7"]  # judged, not answered
    del qrels["q9"]  # answered, not judged
    names = {"map", "recip_rank", "P", "Rprec", "ndcg", "ndcg_cut"}
    measured = pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(run)
    wanted = ["map", "recip_rank", "P_5", "P_30", "Rprec", "ndcg", "ndcg_cut_10"]
    return {"qrels": qrels, "run": run, "measures": {q: {m: v[m] for m in wanted} for q, v in measured.items()},
            "mean_map": sum(v["map"] for v in measured.values()) / len(measured)}


def clustering_cases():
    """Partitions with few and many clusters; draws of its own, so that other cases stay as they are."""
    rng = np.random.default_rng(21)
    cases = []
    for texts, gold_clusters, found_clusters, noise in [(40, 3, 5, 0), (120, 4, 40, 50), (200, 200, 6, 0), (90, 1, 7, 0), (150, 6, 6, 30)]:
        gold = rng.integers(0, gold_clusters, texts)
        gold[:noise] = 1000 + np.arange(noise)
        found = np.where(rng.random(texts) < 0.6, gold % found_clusters, rng.integers(0, found_clusters, texts))
        precision, recall = [], []
        for at in range(texts):
            of_gold, of_found = gold == gold[at], found == found[at]
            both = np.sum(of_gold & of_found)
            precision.append(both / np.sum(of_found))
            recall.append(both / np.sum(of_gold))
        best = []
        for label in np.unique(gold):
            if np.sum(gold == label) > 1:
                best.append(max(sk.f1_score(gold == label, found == other) for other in np.unique(found)))
        cases.append(
            {
                "gold": gold,
                "found": found,
                "nmi": sk.normalized_mutual_info_score(gold, found),
                "ami": sk.adjusted_mutual_info_score(gold, found),
                "ari": sk.adjusted_rand_score(gold, found),
                "b_cubed_precision": float(np.mean(precision)),
                "b_cubed_recall": float(np.mean(recall)),
                "best_match_f1": float(np.mean(best)) if best else 0.0,
            }
        )
    return cases


def main():
    rng = np.random.default_rng(20240607)
    golden = {
        "random": random_cases(),
        "normal": normal_cases(),
        "correlation": correlation_cases(rng),
        "bootstrap": bootstrap_cases(rng),
        "wilcoxon": wilcoxon_cases(rng),
        "sign": sign_cases(),
        "randomisation": randomisation_cases(rng),
        "classification": classification_cases(rng),
        "distribution": distribution_cases(rng),
        "ranking": ranking_cases(rng),
        "clustering": clustering_cases(),
    }
    lines = ",\n".join(f'"{key}": {json.dumps(plain(value), allow_nan=False)}' for key, value in golden.items())
    Path(__file__).with_name("golden.json").write_text("{\n" + lines + "\n}\n")


if __name__ == "__main__":
    main()
