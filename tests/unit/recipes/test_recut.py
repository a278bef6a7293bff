"""Texts in a wide WordPiece vocabulary, given to a student that has only some of its pieces."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import numpy as np
import torch
from hypothesis import given
from hypothesis import strategies as st

from litebert.data.batch import EncodedExample
from litebert.objectives.distill_targets import TeacherTargets
from litebert.recipes.distill.recut import RecutTargets, RecutTexts, is_narrower
from litebert.recipes.distill.texts import EncodedTexts
from litebert.text.tokenizer import Tokenizer

LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789.,-"
WORDS = "the kettle boils super market ##er ##ab ##mark boil ##s ##tle ##market supermarket ##able abler ket"


@cache
def wide() -> Tokenizer:
    entries = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, *(f"##{c}" for c in LETTERS)]
    folder = Path(tempfile.mkdtemp())
    known = dict.fromkeys([*entries, *WORDS.split()])
    (folder / "vocab.txt").write_text("".join(f"{entry}\n" for entry in known))
    return Tokenizer.from_pretrained(folder)


@cache
def narrow() -> Tokenizer:
    return wide().cut(wide().vocab_size - 5)[0]


def examples(texts: list[str]) -> EncodedTexts:
    rows = [wide().encode(text).ids for text in texts]
    return EncodedTexts(
        [
            EncodedExample(np.array(ids, np.int32), np.zeros(len(ids), np.int32), None, number)
            for number, ids in enumerate(rows)
        ]
    )


def recut(texts: list[str], longest: int = 512) -> RecutTexts:
    return RecutTexts(examples(texts), wide(), narrow(), longest)


class Places:
    """A teacher whose hidden state of a token is its number in the batch."""

    def __init__(self, texts: EncodedTexts) -> None:
        self.texts = texts

    def targets(self, example_index: np.ndarray) -> TeacherTargets:
        count = int(self.texts.lengths[example_index].sum())
        return TeacherTargets(
            hidden=torch.arange(count).float()[:, None],
            pooled=torch.from_numpy(example_index).float()[:, None],
        )


def test_a_part_of_a_vocabulary_is_known_as_one() -> None:
    assert is_narrower(narrow(), wide())
    assert not is_narrower(wide(), narrow())


PARTS = st.sampled_from(
    ["the", "kettle", "boils", "supermarket", "superabler", "abable", "x9.", "q"]
)


@given(st.lists(PARTS, max_size=8))
def test_ids_are_those_of_the_students_tokenizer(words: list[str]) -> None:
    text = " ".join(words)
    given_ids = recut([text]).example(0)
    assert given_ids.ids.tolist() == narrow().encode(text).ids
    assert len(given_ids.type_ids) == len(given_ids.ids)
    assert given_ids.index == 0


@given(st.lists(st.integers(5, 90), min_size=1, max_size=12))
def test_any_ids_become_known_ones_and_rows_rise(ids: list[int]) -> None:
    row = np.array([2, *(number % wide().vocab_size for number in ids), 3], np.int32)
    texts = RecutTexts(
        EncodedTexts([EncodedExample(row, np.zeros(len(row), np.int32), None, 0)]),
        wide(),
        narrow(),
        512,
    )
    made, rows = texts.example(0).ids, texts.rows(0)
    assert len(made) == len(rows)
    assert ((made >= 0) & (made < narrow().vocab_size)).all()
    assert (np.diff(rows) >= 0).all()
    assert rows[0] == 0
    assert rows[-1] == len(row) - 1


def test_pieces_of_a_word_learn_from_the_piece_they_begin_in() -> None:
    texts = ["the supermarket boils", "the kettle"]
    made = recut(texts)
    targets = RecutTargets(Places(examples(texts)), made).targets(np.array([1, 0]))
    assert targets.hidden is not None
    assert targets.pooled is not None
    rows = targets.hidden[:, 0].long().tolist()
    sizes = [len(made.example(1).ids), len(made.example(0).ids)]
    assert len(rows) == sum(sizes)
    first = len(wide().encode(texts[1]).ids)
    assert rows[: sizes[0]] == made.rows(1).tolist()
    assert rows[sizes[0] :] == [first + place for place in made.rows(0).tolist()]
    assert targets.pooled[:, 0].tolist() == [1, 0]
    assert len(set(made.rows(0).tolist())) < sizes[1]  # a word that is cut into more pieces


def test_what_becomes_too_long_keeps_its_end() -> None:
    made = recut(["supermarket " * 6], longest=8)
    ids = made.example(0).ids.tolist()
    assert len(ids) == len(made.rows(0)) == 8
    assert ids[-1] == narrow().sep_id


def test_digests_tell_vocabularies_apart() -> None:
    other = RecutTexts(examples(["the"]), wide(), wide().cut(wide().vocab_size - 9)[0], 512)
    assert other.fingerprint != recut(["the"]).fingerprint
