"""Losses of texts to compare: against slow transcriptions, and over any cut into micro-batches."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.nn import functional

from litebert.data.batch import Batch, EncodedExample, collate, split_batch
from litebert.errors import DataError, SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.train.loop import fit
from litebert.train.micro import accumulate_gradient, to_device
from litebert.train.precision import Precision
from litebert.train.settings import TrainSettings
from litebert.train.similarity_loss import ContrastiveLoss, CosineLoss
from litebert.train.step_losses import make_step_loss
from litebert.train.two_pass import ComparingLoss, TwoPassLoss

CPU = torch.device("cpu")
FP32 = Precision("fp32", "cpu")


def make_model(dropout: float = 0.0, head: str = "embedding") -> AlbertWithHead:
    torch.manual_seed(0)
    config = AlbertConfig.from_dict(
        {
            "vocab_size": 40,
            "embedding_size": 8,
            "hidden_size": 16,
            "num_hidden_layers": 2,
            "num_attention_heads": 2,
            "intermediate_size": 24,
            "max_position_embeddings": 16,
            "hidden_dropout_prob": dropout,
            "attention_probs_dropout_prob": dropout,
            "litebert": {"pooling": "mean"},
        }
    )
    model = AlbertWithHead(config, head)
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn(weight.shape) * 0.2)
    return model.train()


def example(texts: list[list[int]], label: float | None = None, index: int = 0) -> EncodedExample:
    ids = np.array([i for text in texts for i in text], np.int32)
    lengths = tuple(len(text) for text in texts)
    return EncodedExample(ids, np.zeros_like(ids), label, index, lengths)


def random_texts(count: int, seed: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [[2, *rng.integers(5, 40, rng.integers(1, 6)).tolist(), 3] for _ in range(count)]


def records(seed: int = 0) -> list[list[list[int]]]:
    """Anchors with positives; some with negatives, some texts in several records."""
    t = random_texts(12, seed)
    return [
        [t[0], t[1]],
        [t[2], t[3], t[4]],
        [t[0], t[5]],  # the anchor of the first once more
        [t[6], t[1], t[7], t[8]],  # the positive of the first once more
        [t[1], t[9], t[5]],  # its anchor is a positive elsewhere, its negative too
        [t[10], t[11]],
    ]


def vectors_of(model: AlbertWithHead, texts: list[list[int]]) -> dict[tuple[int, ...], Tensor]:
    found = {}
    for text in texts:
        ids = torch.tensor([text])
        hidden = model.model(ids).last_hidden_state[0]
        found[tuple(text)] = hidden.mean(0)
    return found


def slow_contrastive(
    model: AlbertWithHead,
    data: list[list[list[int]]],
    *,
    scale: float = 20.0,
    symmetric: bool = False,
    dims: tuple[int, ...] = (),
) -> Tensor:
    """Mean loss of the anchors, one by one."""
    texts = [tuple(text) for item in data for text in item]
    table = vectors_of(model, [list(text) for text in texts])
    positives = [tuple(item[1]) for item in data]
    candidates = positives + [tuple(text) for item in data for text in item[2:]]
    totals = []
    for width in {16, *dims}:
        unit = {text: functional.normalize(v[:width], dim=0) for text, v in table.items()}
        rows = []
        for i, item in enumerate(data):
            anchor, positive = tuple(item[0]), tuple(item[1])
            right = {tuple(d[1]) for d in data if tuple(d[0]) == anchor} | {anchor}
            kept = [j for j, c in enumerate(candidates) if j == i or c not in right]
            logits = torch.stack([scale * unit[anchor] @ unit[candidates[j]] for j in kept])
            loss = functional.cross_entropy(logits[None], torch.tensor([kept.index(i)]))
            if symmetric:
                wrong = [
                    k for k, other in enumerate(data)
                    if k != i and positive not in {tuple(d[1]) for d in data if d[0] == other[0]}
                    and positive != tuple(other[0])
                ]  # fmt: skip
                kept = sorted([i, *wrong])
                back = torch.stack([scale * unit[positive] @ unit[tuple(data[k][0])] for k in kept])
                place = torch.tensor([kept.index(i)])
                loss = (loss + functional.cross_entropy(back[None], place)) / 2
            rows.append(loss)
        totals.append(torch.stack(rows).mean())
    return torch.stack(totals).mean()


def gradients(model: AlbertWithHead) -> dict[str, Tensor]:
    return {
        name: torch.zeros_like(w) if w.grad is None else w.grad.clone()
        for name, w in model.named_parameters()
    }


def run(
    model: AlbertWithHead, batch: Batch, loss: ContrastiveLoss | CosineLoss, tokens: int
) -> tuple[float, dict[str, Tensor]]:
    model.zero_grad(set_to_none=True)
    means = accumulate_gradient(
        model, batch, loss, counts=loss.counts(batch), micro_batch_tokens=tokens, device=CPU,
        precision=FP32,
    )  # fmt: skip
    (value,) = means.values()
    return value, gradients(model)


def assert_close(first: dict[str, Tensor], second: dict[str, Tensor]) -> None:
    for name, value in first.items():
        torch.testing.assert_close(value, second[name], atol=2e-5, rtol=2e-4, msg=name)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("dims", [(), (4, 8)])
def test_the_contrastive_loss_is_that_of_the_rules_whatever_the_cut(
    symmetric: bool, dims: tuple[int, ...]
) -> None:
    model, data = make_model(), records()
    expected = slow_contrastive(model, data, symmetric=symmetric, dims=dims)
    model.zero_grad(set_to_none=True)
    expected.backward()
    slow = gradients(model)
    assert any(float(g.abs().max()) > 1e-3 for g in slow.values())
    batch = collate([example(item) for item in data])
    loss = ContrastiveLoss(is_symmetric=symmetric, dims=dims)
    for tokens in (10_000, 30, 1):
        value, found = run(model, batch, loss, tokens)
        assert value == pytest.approx(float(expected.detach()), abs=1e-5)
        assert_close(slow, found)


def test_a_cut_batch_drops_the_same_numbers_in_both_passes() -> None:
    model = make_model(dropout=0.3)
    batch = collate([example(item) for item in records()])
    loss = ContrastiveLoss()
    parts = [to_device(part, CPU) for part in split_batch(batch, 30)]
    assert len(parts) > 1
    torch.manual_seed(5)
    together = torch.cat([loss.vectors(model, part) for part in parts])
    model.zero_grad(set_to_none=True)
    term = loss.compare(together, parts)
    (term.total / term.count).backward()
    expected = gradients(model)
    after = torch.get_rng_state()
    torch.manual_seed(5)
    value, found = run(model, batch, loss, 30)
    assert value == pytest.approx(float(term.total.detach() / term.count), abs=1e-6)
    assert_close(expected, found)
    assert bool((after == torch.get_rng_state()).all())


def test_only_losses_that_compare_examples_take_two_passes() -> None:
    assert isinstance(ContrastiveLoss(), ComparingLoss)
    assert not isinstance(CosineLoss(), ComparingLoss)
    batch = to_device(collate([example(item) for item in records()]), CPU)
    part = TwoPassLoss(ContrastiveLoss(), make_model(), [batch])
    assert part.weights == {"contrastive": 1.0}


@pytest.mark.parametrize("dims", [(), (4, 8)])
def test_the_cosine_loss_is_the_mean_squared_error(dims: tuple[int, ...]) -> None:
    model, texts = make_model(), random_texts(10, 1)
    labels = [0.0, 0.25, 1.0, 0.5, 0.9]
    pairs = [[texts[2 * i], texts[2 * i + 1]] for i in range(5)]
    table = vectors_of(model, texts)
    errors = []
    for width in {16, *dims}:
        for (a, b), label in zip(pairs, labels, strict=True):
            first, second = table[tuple(a)][:width], table[tuple(b)][:width]
            errors.append((functional.cosine_similarity(first, second, dim=0) - label) ** 2)
    expected = torch.stack(errors).mean()
    model.zero_grad(set_to_none=True)
    expected.backward()
    slow = gradients(model)
    batch = collate([example(p, label) for p, label in zip(pairs, labels, strict=True)])
    for tokens in (10_000, 20):
        value, found = run(model, batch, CosineLoss(dims), tokens)
        assert value == pytest.approx(float(expected.detach()), abs=1e-6)
        assert_close(slow, found)


def test_what_does_not_fit_is_refused() -> None:
    model = make_model()
    pair = collate([example(records()[0]) for _ in range(2)])
    with pytest.raises(DataError, match="no scores"):
        CosineLoss().counts(pair)
    with pytest.raises(DataError, match="pairs of texts"):
        CosineLoss()(model, to_device(pair, CPU))
    three = collate([example(records()[1], 0.5)])
    with pytest.raises(DataError, match="pairs of texts"):
        CosineLoss()(model, to_device(three, CPU))
    single = collate([example([records()[0][0]])])
    with pytest.raises(DataError, match="two texts and more"):
        ContrastiveLoss()(model, to_device(single, CPU))
    with pytest.raises(SettingsError, match="vectors have 16 numbers"):
        ContrastiveLoss(dims=(17,))(model, to_device(pair, CPU))
    with pytest.raises(DataError, match="head 'embedding'"):
        ContrastiveLoss()(make_model(head="token"), to_device(pair, CPU))


def test_training_pulls_pairs_together_with_every_word_of_loss() -> None:
    from litebert.tasks.similarity import Similarity

    data = [example(item, index=i) for i, item in enumerate(records(2))]
    task = Similarity(form="search", metric="mrr_at_10", dims=(4,))
    model = make_model()
    loss = make_step_loss(task.loss, task)
    batch = to_device(collate(data), CPU)
    before = float(loss(model, batch)[0].mean.detach())
    settings = TrainSettings(
        max_steps=20, batch_size=6, learning_rate=5e-3, micro_batch_tokens=30, threads=1,
        precision="fp32",
    )  # fmt: skip
    fit(model, data, settings, step_loss=loss)
    assert float(loss(model, batch)[0].mean.detach()) < 0.7 * before
    scored = Similarity()
    assert isinstance(make_step_loss(scored.loss, scored), CosineLoss)
