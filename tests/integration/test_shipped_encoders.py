"""The encoders that are in the checkout: they fit, agree with themselves, and mean something."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from litebert.data.readers import ReadOptions
from litebert.models import NAMES
from litebert.recipes.fill import fill_masks
from litebert.recipes.predictor import Predictor
from litebert.runtime.session import Session
from litebert.tasks.records import RECORD_KINDS

LIMITS = {"litebert-small-en": (6_000_000, 7_000_000), "litebert-tiny-en": (2_500_000, 3_000_000)}
"""Most parameters of a vector; most bytes of graph and vocabulary."""
LEAST = {"litebert-small-en": 0.82, "litebert-tiny-en": 0.75}
"""Spearman on the development set of STS-B, nothing trained."""
SAYINGS = (
    ("My parcel has not arrived yet.", "The delivery is late.", "How do I bake bread?"),
    ("I cannot log in to my account.", "My password is not accepted.", "The soup tastes of salt."),
    ("A child plays on the beach.", "Kids are playing in the sand.", "Shares fell on Monday."),
)
"""A text, one that means the same in other words, and one that does not."""


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def folder(name: str, repository: Path) -> Path:
    return repository / "src" / "litebert" / "models" / name


def test_it_is_as_small_as_is_said(name: str, folder: Path) -> None:
    most_parameters, most_bytes = LIMITS[name]
    model = Predictor.load(folder).model
    assert sum(weight.numel() for weight in model.model.parameters()) <= most_parameters
    runs = [folder / "onnx" / "litebert_int8.onnx", folder / "vocab.txt", folder / "tokenizer.json"]
    assert sum(path.stat().st_size for path in runs) <= most_bytes


def test_its_card_names_it_and_has_no_gap(name: str, folder: Path) -> None:
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert f"# {name}" in card and "license: apache-2.0" in card
    assert not re.search(r"RESULTS_TABLE|Not measured yet", card)
    assert json.loads((folder / "config.json").read_text())["vocab_size"] > 7_000


def test_the_same_meaning_is_nearer_than_another(folder: Path) -> None:
    texts = [text for saying in SAYINGS for text in saying]
    exact, integers = Predictor.load(folder).embed(texts), Session(folder, threads=1).embed(texts)
    assert (exact * integers).sum(1).min() > 0.99
    for vectors in (exact, integers):
        for text, same, other in vectors.reshape(len(SAYINGS), 3, -1):
            assert text @ same > text @ other + 0.1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_transformers_computes_the_same(repository: Path) -> None:
    torch = pytest.importorskip("torch")
    transformers = pytest.importorskip("transformers")
    folder = repository / "src" / "litebert" / "models" / "litebert-small-en"
    texts = [saying[0] for saying in SAYINGS]
    encoded = transformers.AutoTokenizer.from_pretrained(folder)(
        texts, padding=True, return_tensors="pt"
    )
    model = transformers.AutoModel.from_pretrained(folder).eval()
    with torch.no_grad():
        states = model(**encoded).last_hidden_state
    kept = encoded["attention_mask"][..., None]
    means = torch.nn.functional.normalize((states * kept).sum(1) / kept.sum(1), dim=-1)
    np.testing.assert_allclose(Predictor.load(folder).embed(texts), means.numpy(), atol=1e-5)


def test_the_small_one_fills_masks(repository: Path) -> None:
    folder = repository / "src" / "litebert" / "models" / "litebert-small-en"
    (found,) = fill_masks(folder, "The capital of [MASK] is Paris.", top=5)
    assert len(found) == 5
    assert 0 < sum(word.probability for word in found) <= 1


def test_it_agrees_with_people_on_real_pairs(name: str, folder: Path, shared: Path) -> None:
    kind: Any = RECORD_KINDS.get("stsb")
    records = kind.read(shared / "data" / "glue" / "STS-B", ReadOptions(), True).eval.records
    task = kind.make_task(records, {"max_length": 128})
    model = Session(folder, threads=1)
    model.task = task
    features = task.features(records, model.tokenizer, labelled=False)
    outputs = model.outputs([feature.encoded for feature in features])
    assert (
        task.evaluate(records, task.answers(records, features, outputs))["spearman"] > LEAST[name]
    )
