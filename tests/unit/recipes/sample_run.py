"""A made-up run with every part filled, and hostile variants of it."""

from __future__ import annotations

import numpy as np

from litebert.recipes.summary import (
    BaselineScore,
    Curve,
    DataFile,
    LabelCount,
    ModelFacts,
    RunSummary,
    SeedScore,
)
from litebert.tasks.calibration import reliability_bins
from litebert.tasks.evaluation import Mistake
from litebert.tasks.metrics import class_table, classification_scores, confusion_matrix

INTENTS = ("billing", "cancel", "delivery", "login", "other", "praise", "refund", "technical")

HOSTILE = (
    "<script>alert(1)</script>",
    "</title></style><img src=x onerror=alert(2)>",
    '"\' onmouseover=alert(3) x="',
    "javascript:alert(4)",
    "]]><!--",
    "| a | b |\n---\nlicense: evil\n# owned",
    "[click](javascript:alert(5)) `code` ![i](http://evil.example/x.png)",
    "$\\frac{1}{0}$ \u202e\u0000\u0007 \ud83d\ude00 日本語",
)


def sample_run(classes: int = 8, seed: int = 0, **changes) -> RunSummary:
    """Return a finished classification run over `classes` labels."""
    labels = INTENTS if classes == 8 else tuple(f"intent {i:03d}" for i in range(classes))
    if classes == 2:
        labels = ("negative", "positive")
    rng = np.random.default_rng(seed)
    size = 60 * classes
    truth = rng.integers(0, classes, size)
    logits = rng.normal(size=(size, classes)) + 3.2 * np.eye(classes)[truth]
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    counts = confusion_matrix(truth, p.argmax(axis=1), classes)
    steps = tuple(range(10, 1001, 10))
    decay = np.exp(-np.array(steps) / 250)
    loss = np.log(classes) * (0.15 + 0.85 * decay) + 0.08 * rng.normal(size=len(steps)) * decay
    rate = np.minimum(np.array(steps) / 100, (1000 - np.array(steps)) / 900) * 1e-3
    at = tuple(range(100, 1001, 100))
    accuracy = 0.93 - 0.6 * np.exp(-np.array(at) / 220)
    scores = classification_scores(p, truth) | {"ece": 0.021}
    simple = {name: value * 0.91 for name, value in scores.items()}
    values = {
        "name": "support-3",
        "created": "2026-11-29T20:15:00+00:00",
        "litebert_version": "0.1.0",
        "command": "litebert train support.csv --preset tiny --seeds 3 --yes",
        "predict_command": 'litebert predict runs/support-3/model-best "where is my parcel?"',
        "resume_command": "litebert train --resume runs/support-3",
        "seed": 2,
        "kind": "binary" if classes == 2 else "multiclass",
        "metric": "accuracy",
        "labels": labels,
        "text_columns": ("message",),
        "label_column": "intent",
        "inferred": (
            "text column message: the longest texts (median 61 characters)",
            f"label column intent: {classes} different words in {size * 4:,} rows, so each row is "
            "one of many classes",
            "metric accuracy: the largest class has less than 3 times the rows of the smallest",
        ),
        "settings_toml": "[optimizer]\nlearning_rate = 0.001\nweight_decay = 0.01\n\n[train]\nseed = 2\n",
        "model": ModelFacts(
            name="tiny",
            parameters=1_240_312,
            unshared_parameters=3_610_000,
            size_bytes=4_961_248,
            facts={
                "layers": "6 (one shared block)",
                "hidden size": "256",
                "vocabulary": "4,000",
                "precision": "float32",
            },
        ),
        "data": (
            DataFile(
                role="train",
                name="support.csv",
                sha256="ab" * 32,
                examples=size * 4,
                skipped=3,
                note="CSV, UTF-8",
            ),
            DataFile(
                role="eval",
                name="support.csv",
                sha256="",
                examples=size,
                note="20 % of support.csv, stratified, seed 2",
            ),
        ),
        "label_counts": tuple(
            LabelCount(label=label, train=int(4 * n), evaluation=int(n))
            for label, n in zip(labels, counts.sum(axis=1), strict=True)
        ),
        "scores": scores,
        "evaluated": size,
        "baselines": (
            BaselineScore(
                name="majority",
                method="always the most frequent class",
                scores={"accuracy": 1.3 / classes, "f1_macro": 0.03},
                seconds=0.0,
            ),
            BaselineScore(
                name="tfidf",
                method="TF-IDF of words and characters + logistic regression",
                scores=simple,
                seconds=1.4,
            ),
        ),
        "seeds": (
            SeedScore(seed=1, score=scores["accuracy"] - 0.012),
            SeedScore(seed=2, score=scores["accuracy"], is_chosen=True),
            SeedScore(seed=3, score=scores["accuracy"] - 0.004),
        ),
        "class_table": class_table(counts, labels),
        "confusion": tuple(tuple(row) for row in counts.tolist()),
        "temperature": 1.37,
        "ece_before": 0.062,
        "reliability": reliability_bins(p.max(axis=1), p.argmax(axis=1) == truth),
        "mistakes": tuple(
            Mistake(
                text=text,
                pair=None,
                truth=labels[i % classes],
                answer=labels[-1 - i % classes],
                confidence=0.99 - 0.03 * i,
                loss=4.6 - 0.3 * i,
                path="support.csv",
                line=40 + i,
            )
            for i, text in enumerate(
                [
                    "I was charged twice this month and nobody answers the phone, please sort it out",
                    "my code never arrives",
                    "the courier left it with a neighbour who is on holiday",
                    "thanks for nothing",
                    "how do I stop the subscription before the trial ends?",
                ]
            )
        ),
        "lengths": {
            int(n): int(c)
            for n, c in zip(
                *np.unique(
                    np.clip(rng.lognormal(3.0, 0.55, size * 4).astype(int), 4, 200),
                    return_counts=True,
                ),
                strict=True,
            )
        },
        "max_length": 64,
        "loss": Curve(steps=steps, values=tuple(loss.tolist())),
        "learning_rate": Curve(steps=steps, values=tuple(rate.tolist())),
        "eval_scores": {"accuracy": Curve(steps=at, values=tuple(accuracy.tolist()))},
        "best_step": 900,
        "steps": 1000,
        "seconds": 312.5,
        "tokens_per_second": 5120.0,
        "warnings": (
            "3 rows of support.csv were skipped: no label (first: line 118)",
            "2.1 % of the training texts are longer than 64 tokens and were cut",
        ),
        "limits": ("Trained on English support messages only; other languages were not tested.",),
        "language": "en",
        "environment": {"python": "3.11.7", "torch": "2.13.0", "processor": "2 cores"},
    } | changes
    return RunSummary(**values)


def hostile_run() -> RunSummary:
    """Return a run in which every text tries to break out of the page, the card or the figure."""
    plain = sample_run(8)
    labels = HOSTILE
    bad = HOSTILE[0] + HOSTILE[1] + HOSTILE[6]
    return plain.model_copy(
        update={
            "name": bad, "command": bad + "\n```\n# owned", "predict_command": bad,
            "resume_command": bad, "labels": labels, "text_columns": (bad, HOSTILE[5]),
            "label_column": bad, "inferred": HOSTILE, "settings_toml": bad + "\n```\nowned",
            "warnings": HOSTILE, "limits": HOSTILE, "environment": {bad: bad},
            "license": "evil\nlicense: other", "language": HOSTILE[5], "created": bad,
            "litebert_version": bad,
            "model": ModelFacts(name=bad, parameters=1, facts={bad: bad}),
            "data": (DataFile(role=bad, name=HOSTILE[5], sha256=bad, examples=1, note=bad),),
            "label_counts": tuple(LabelCount(label=x, train=1, evaluation=1) for x in labels),
            "baselines": (BaselineScore(name=bad, method=bad, scores={"accuracy": 0.1}, seconds=0),),
            "class_table": class_table(np.eye(8, dtype=int), labels),
            "eval_scores": {bad: Curve(steps=(1, 2), values=(0.1, 0.2)),
                            "accuracy": Curve(steps=(1, 2), values=(0.1, 0.2))},
            "mistakes": tuple(
                Mistake(text=x, pair=x, truth=x, answer=x, confidence=0.5, loss=1.0, path=x, line=1)
                for x in labels
            ),
            "scores": plain.scores | {bad: 0.5},
        }
    )  # fmt: skip
