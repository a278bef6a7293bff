from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from litebert.recipes.predictor import Predictor
from litebert.runtime import Session

SAME = 1e-5
"""Float32 sums in another order."""
TEXTS = ["", "fine", "the lamp", "the dented lamp is late", "quiet " * 9, "chair " * 60]


@pytest.fixture(scope="module")
def session(export_dir: Path) -> Session:
    return Session(export_dir, threads=1)


def test_answers_are_those_of_torch(session: Session, model_dir: Path) -> None:
    torch_model = Predictor.load(model_dir)
    for ours, theirs in zip(session.predict(TEXTS), torch_model.predict(TEXTS), strict=True):
        assert ours.label == theirs.label
        assert ours.scores == pytest.approx(theirs.scores, abs=SAME)
    for pooling in ("mean", "cls"):
        ours, theirs = session.embed(TEXTS, pooling=pooling), torch_model.embed(TEXTS, pooling=pooling)
        np.testing.assert_allclose(ours, theirs, atol=SAME)
