from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.errors import SettingsError
from litebert.settings import build_settings
from litebert.train.class_weights import class_weights
from litebert.train.loss_settings import LossSettings

NAMES = ("bad", "good", "so-so")
EXACT = 1e-12


def test_none_is_nothing() -> None:
    assert class_weights("none", np.array([0, 1]), NAMES) is None


@given(st.lists(st.sampled_from([-100, 0, 1, 2]), min_size=1, max_size=40))
def test_words_by_their_definitions(labels: list[int]) -> None:
    array = np.array(labels)
    counts = {c: labels.count(c) for c in range(3)}
    total, present = sum(counts.values()), sum(n > 0 for n in counts.values())
    if not total:
        return
    balanced = class_weights("balanced", array, NAMES)
    inverse = class_weights("inverse", array, NAMES)
    root = class_weights("inverse_sqrt", array, NAMES)
    assert balanced is not None and inverse is not None and root is not None
    assert inverse.mean() == pytest.approx(1, rel=EXACT)
    for weights in (balanced, root):
        assert sum(weights[c] * n for c, n in counts.items()) == pytest.approx(total, rel=EXACT)
    for c, n in counts.items():
        if n:
            assert balanced[c] == pytest.approx(total / (present * n), rel=EXACT)
        for d, m in counts.items():
            ratio = max(m, 1) / max(n, 1)
            assert inverse[c] / inverse[d] == pytest.approx(ratio, rel=EXACT)
            assert root[c] / root[d] == pytest.approx(ratio**0.5, rel=EXACT)


def test_balanced_is_that_of_scikit_learn() -> None:
    learn = pytest.importorskip("sklearn.utils.class_weight")
    labels = np.array([0] * 7 + [1] * 2 + [2] * 5)
    wanted = learn.compute_class_weight("balanced", classes=np.arange(3), y=labels)
    assert class_weights("balanced", labels, NAMES) == pytest.approx(wanted, rel=EXACT)


def test_each_label_of_a_subset_is_a_question_of_its_own() -> None:
    labels = np.array([[1, 0], [0, 0], [0, 0], [1, 0]], np.float32)
    weights = class_weights("balanced", labels, NAMES[:2])
    assert weights is not None and weights.tolist() == [[1.0, 1.0], [1.0, 4.0]]
    told = class_weights({"good": 3.0}, labels, NAMES[:2])
    assert told is not None and told.tolist() == [[1.0, 1.0], [1.0, 3.0]]


def test_a_table_by_name() -> None:
    weights = class_weights({"so-so": 2.5}, np.array([0, 1, 2]), NAMES)
    assert weights is not None and weights.tolist() == [1.0, 1.0, 2.5]
    with pytest.raises(SettingsError, match="did you mean 'so-so'"):
        class_weights({"soso": 2.5}, np.array([0]), NAMES)
    with pytest.raises(SettingsError, match="there are: bad, good, so-so"):
        class_weights({"x": 1.0}, np.array([0]), NAMES)


def test_settings_from_the_command_line() -> None:
    told = ["class_weights.good=2", "label_smoothing=0.1"]
    settings = build_settings(LossSettings, {}, overrides=told)
    assert settings.class_weights == {"good": 2.0} and not settings.is_plain
    assert build_settings(LossSettings, {}, overrides=["class_weights=balanced"]).class_weights == (
        "balanced"
    )
    assert LossSettings().is_plain
    for wrong in ("class_weights=even", "class_weights.good=0", "label_smoothing=1", "r_drop=-1"):
        with pytest.raises(SettingsError):
            build_settings(LossSettings, {}, overrides=[wrong])
