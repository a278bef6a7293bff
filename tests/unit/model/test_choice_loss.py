"""The loss over choices: a slow definition, gradients that stay in their question, and its faults."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from litebert.errors import DataError
from litebert.model.albert import AlbertWithHead
from litebert.model.losses import IGNORE_INDEX, choice_loss
from litebert.model.packing import Packing
from litebert.model.presets import preset

ATOL = 1e-4
"""float32 sums of up to 40 terms."""


@given(
    st.lists(
        st.lists(st.floats(-20, 20, width=32), min_size=1, max_size=7), min_size=1, max_size=6
    ),
    st.integers(0, 10_000),
)
def test_the_loss_is_that_of_each_question_by_itself(rows: list[list[float]], seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    labels = [int(torch.randint(-1, len(row), (1,), generator=generator)) for row in rows]
    labels = [IGNORE_INDEX if label < 0 else label for label in labels]
    logits = torch.tensor([x for row in rows for x in row], requires_grad=True)
    sizes = torch.tensor([len(row) for row in rows])
    term = choice_loss(logits, torch.tensor(labels), sizes)
    total, expected = 0.0, []
    for row, label in zip(rows, labels, strict=True):
        powers = [math.exp(x - max(row)) for x in row]
        p = [power / sum(powers) for power in powers]
        if label == IGNORE_INDEX:
            expected += [0.0] * len(row)
            continue
        total -= row[label] - max(row) - math.log(sum(powers))
        expected += [value - (place == label) for place, value in enumerate(p)]
    assert float(term.total.detach()) == pytest.approx(total, abs=ATOL, rel=ATOL)
    assert int(term.count) == sum(label != IGNORE_INDEX for label in labels)
    term.total.backward()
    assert logits.grad is not None
    torch.testing.assert_close(logits.grad, torch.tensor(expected), atol=ATOL, rtol=0)


def test_a_label_is_a_choice_of_its_own_question() -> None:
    logits, sizes = torch.zeros(6), torch.tensor([2, 4])
    with pytest.raises(
        DataError, match=r"label 2 for a question with 2 choices; allowed are 0 to 1"
    ):
        choice_loss(logits, torch.tensor([2, 1]), sizes)
    with pytest.raises(DataError, match="labels go from -1"):
        choice_loss(logits, torch.tensor([-1, 1]), sizes)


def test_groups_are_all_sequences() -> None:
    config = preset("tiny", vocab_size=40).replace(
        hidden_size=16, embedding_size=8, num_attention_heads=2, intermediate_size=16,
        max_position_embeddings=16,
    )  # fmt: skip
    model = AlbertWithHead(config, "choice").eval()
    ids, packing = torch.arange(5, 15), Packing.from_lengths([4, 3, 3])
    out = model.forward_packed(ids, packing, group_sizes=torch.tensor([2, 1]))
    assert out.logits.shape == (3,)
    for sizes in ([2, 2], [1, 1]):
        with pytest.raises(DataError, match=r"group_sizes add up to \d, there are 3 sequences"):
            model.forward_packed(ids, packing, group_sizes=torch.tensor(sizes))
    with pytest.raises(DataError, match="needs num_choices that divides the 3 sequences"):
        model.forward_packed(ids, packing, num_choices=2)
    with pytest.raises(DataError, match="label 1 for a question with 1 choices"):
        model.forward_packed(
            ids, packing, labels=torch.tensor([0, 1]), group_sizes=torch.tensor([2, 1])
        )
