"""Masking: budget, whole words, runs, the three fates of a token, schedules."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.errors import SettingsError
from litebert.objectives.base import IGNORED, Draft, SpecialIds
from litebert.objectives.mlm import MaskedLanguageModel, MlmSettings
from litebert.objectives.randomness import example_rng
from litebert.settings import build_settings

TOKENS = SpecialIds(2, 3, 4, 0, vocab_size=1000)
SIGMAS = 5.0
"""Standard deviations that a share may be off: one false alarm in a million."""


def make_draft(segments: list[list[int]]) -> Draft:
    """A draft from the word lengths of each segment."""
    ids, begins, ends, lasts = [TOKENS.cls], [], [], []
    for words in segments:
        for length in words:
            begins.append(len(ids))
            ids.extend(range(10 + len(ids), 10 + len(ids) + length))
            ends.append(len(ids))
        lasts.extend([len(begins) - 1] * len(words))
        ids.append(TOKENS.sep)
    return Draft(
        ids=np.asarray(ids, np.int32),
        labels=np.full(len(ids), IGNORED, np.int64),
        word_begins=np.asarray(begins),
        word_ends=np.asarray(ends),
        last_words=np.asarray(lasts),
        tokens=TOKENS,
        num_maskable=sum(map(sum, segments)),
    )


SEGMENTS = st.lists(st.lists(st.integers(1, 6), min_size=1, max_size=40), min_size=1, max_size=2)


@given(SEGMENTS, st.floats(0.05, 0.9), st.integers(0, 1000), st.integers(1, 5))
def test_what_holds_of_every_masked_example(segments, fraction, seed, max_ngram):
    settings = MlmSettings(mask_fraction=fraction, max_ngram=max_ngram)
    draft, clean = make_draft(segments), make_draft(segments)
    MaskedLanguageModel(settings).corrupt(draft, example_rng(seed, 0, 0), 0.0)
    is_target = draft.labels != IGNORED
    assert not is_target[np.isin(clean.ids, (TOKENS.cls, TOKENS.sep))].any()
    assert np.array_equal(draft.labels[is_target], clean.ids[is_target])
    assert np.array_equal(draft.ids[~is_target], clean.ids[~is_target])
    ordinary = draft.ids[is_target & (draft.ids != TOKENS.mask)]
    assert (ordinary >= TOKENS.num_special).all()
    left = settings.budget(clean, 0.0) - int(is_target.sum())
    assert left >= 0
    for begin, end in zip(draft.word_begins, draft.word_ends, strict=True):
        assert is_target[begin:end].all() or not is_target[begin:end].any()
        if not is_target[begin]:
            assert end - begin > left  # nothing that still fits is left over


@given(st.integers(1, 200), st.floats(0.01, 0.99), st.floats(0.0, 1.0))
def test_the_budget_is_spent_exactly_on_words_of_one_token(size, fraction, progress):
    settings = MlmSettings(mask_fraction=fraction, schedule="linear", end_fraction=0.15)
    draft = make_draft([[1] * size])
    MaskedLanguageModel(settings).corrupt(draft, example_rng(1, 2, 3), progress)
    now = fraction + (0.15 - fraction) * progress
    assert (draft.labels != IGNORED).sum() == max(1, round(now * size))


def test_shares_of_mask_random_and_kept():
    objective = MaskedLanguageModel(MlmSettings())
    masked = kept = total = 0
    drawn = []
    for index in range(600):
        draft = make_draft([[2] * 120])
        objective.corrupt(draft, example_rng(0, 0, index), 0.0)
        is_target = draft.labels != IGNORED
        total += int(is_target.sum())
        masked += int((draft.ids[is_target] == TOKENS.mask).sum())
        kept += int((draft.ids == draft.labels).sum())
        drawn.extend(
            draft.ids[is_target & (draft.ids != TOKENS.mask) & (draft.ids != draft.labels)]
        )
    assert total == 600 * round(0.15 * 240)
    for count, share in ((masked, 0.8), (kept, 0.1), (len(drawn), 0.1)):
        assert abs(count - share * total) < SIGMAS * (total * share * (1 - share)) ** 0.5
    halves = np.bincount(np.asarray(drawn) >= 502, minlength=2)
    assert abs(halves[0] - halves[1]) < SIGMAS * sum(halves) ** 0.5
    assert min(drawn) < 25 and max(drawn) > 980


def test_fates_are_drawn_for_each_token_not_for_each_word():
    objective = MaskedLanguageModel(MlmSettings())
    fates = []
    for index in range(300):
        draft = make_draft([[4] * 60])
        objective.corrupt(draft, example_rng(0, 0, index), 0.0)
        chosen = draft.word_begins[draft.labels[draft.word_begins] != IGNORED]
        fates.extend(int((draft.ids[a : a + 4] == TOKENS.mask).sum()) for a in chosen)
    mixed = np.mean([0 < fate < 4 for fate in fates])
    assert abs(mixed - (1 - 0.8**4 - 0.2**4)) < 0.05


def test_runs_are_drawn_with_one_over_n():
    """A budget of three words in a long text: one run, or one and what is left."""
    settings = MlmSettings(mask_fraction=3 / 300)
    objective = MaskedLanguageModel(settings)
    firsts = []
    for index in range(3000):
        places = objective.choose(make_draft([[1] * 300]), example_rng(9, 0, index), 0.0)
        run = 1
        while run < len(places) and places[run] == places[run - 1] + 1:
            run += 1
        firsts.append(run)
    shares = np.bincount(firsts, minlength=4)[1:] / len(firsts)
    for share, wanted in zip(shares, (6 / 11, 3 / 11, 2 / 11), strict=True):
        assert abs(share - wanted) < SIGMAS * (wanted * (1 - wanted) / len(firsts)) ** 0.5


def test_runs_stay_in_their_segment():
    """With every word hidden that fits, a run over [SEP] would have shown in the labels of [SEP]."""
    objective = MaskedLanguageModel(MlmSettings(mask_fraction=0.5, max_ngram=16))
    for index in range(200):
        draft = make_draft([[1, 1], [1, 1, 1]])
        objective.corrupt(draft, example_rng(0, 0, index), 0.0)
        assert (draft.labels[[0, 3, 7]] == IGNORED).all()


def test_no_word_fits_into_the_budget():
    draft = make_draft([[5]])
    MaskedLanguageModel(MlmSettings()).corrupt(draft, example_rng(0, 0, 0), 0.0)
    assert (draft.labels == IGNORED).all()


def test_the_published_limit():
    draft = make_draft([[1] * 255, [1] * 254])
    assert len(draft.ids) == 512
    assert MlmSettings().budget(draft, 0.0) == round(0.15 * 509)
    google = MlmSettings(google_compatible=True)
    assert google.budget(draft, 0.0) == 20
    assert pytest.approx(0.039, abs=0.001) == 20 / 512
    assert google.budget(make_draft([[1] * 97]), 0.0) == round(0.15 * 99)
    assert MlmSettings(max_predictions=7).budget(draft, 0.0) == 7
    assert MlmSettings(google_compatible=True, max_predictions=76).budget(draft, 0.0) == 76


def test_linear_schedule():
    settings = MlmSettings(mask_fraction=0.3, schedule="linear", end_fraction=0.15)
    assert [settings.fraction(x) for x in (0.0, 0.5, 1.0)] == pytest.approx([0.3, 0.225, 0.15])
    assert MlmSettings().fraction(0.7) == 0.15


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ({"mask_prob": 0.8, "random_prob": 0.3}, "exceed 1"),
        ({"schedule": "linear"}, "end_fraction belongs to"),
        ({"end_fraction": 0.1}, "end_fraction belongs to"),
        ({"mask_fraction": 1.0}, "mask_fraction"),
    ],
)
def test_settings_that_contradict(values, match):
    with pytest.raises(SettingsError, match=match):
        build_settings(MlmSettings, values)


def test_random_tokens_are_never_special():
    late = SpecialIds(900, 901, 903, 0, vocab_size=1000, num_special=5)
    drawn = late.draw(np.linspace(0, 1, 100_000, endpoint=False))
    assert set(range(1000)) - set(drawn.tolist()) == {0, 1, 2, 3, 4, 900, 901, 903}
    counts = np.bincount(drawn, minlength=1000)
    assert counts[counts > 0].min() >= 100 and counts.max() <= 102


@pytest.mark.parametrize(
    ("values", "match"),
    [((2, 3, 4, 0, 4), "must lie in the vocabulary"), ((2, 3, 4, 0, 5), "keep ordinary tokens")],
)
def test_special_ids_that_do_not_fit(values, match):
    with pytest.raises(SettingsError, match=match):
        SpecialIds(*values)
