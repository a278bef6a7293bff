"""Smoothing, class weights and R-Drop against slow definitions, with gradients, split or not."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from torch import nn

from litebert.data.batch import EncodedExample, collate
from litebert.errors import DataError, SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.train.chance import KnowsChance, chance_loss, chance_of
from litebert.train.finetune_loss import FinetuneLoss
from litebert.train.micro import LabelledLoss, accumulate_gradient, forward_packed, to_device
from litebert.train.precision import Precision

RTOL, ATOL = 1e-5, 1e-6
"""float32 sums in another order."""
EXACT = 1e-9
"""float64 in both."""
SEARCH_RTOL = 1e-3
"""The best constant answer is found by descent."""
CPU = torch.device("cpu")

CONFIG = AlbertConfig.from_dict(
    {
        "vocab_size": 20,
        "embedding_size": 4,
        "hidden_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": 16,
        "classifier_dropout_prob": 0.0,
        "id2label": {0: "a", 1: "b", 2: "c"},
    }
)
HEADS: dict[str, tuple[str, str | None, int]] = {
    "classes": ("sequence", "single_label_classification", 3),
    "subset": ("sequence", "multi_label_classification", 3),
    "number": ("sequence", "regression", 1),
    "tokens": ("token", None, 3),
}


def build(form: str, **changes: Any) -> AlbertWithHead:
    head, problem, outputs = HEADS[form]
    torch.manual_seed(0)
    labels = {i: "abc"[i] for i in range(outputs)}
    return AlbertWithHead(CONFIG.replace(problem_type=problem, id2label=labels, **changes), head)


MODELS = {form: build(form) for form in HEADS}


def batch_of(form: str, lengths: list[int], seed: int) -> Any:
    rng = np.random.default_rng(seed)
    examples: list[EncodedExample] = []
    for i, length in enumerate(lengths):
        ids = rng.integers(0, 20, length).astype(np.int32)
        label: Any = int(rng.integers(0, 3))
        if form == "subset":
            label = (rng.random(3) < 0.4).astype(np.float32)
        elif form == "number":
            label = float(rng.normal())
        elif form == "tokens":
            label = rng.integers(0, 3, length)
            label[rng.random(length) < 0.4] = -100
            label[0] = 1
        examples.append(EncodedExample(ids, ids * 0, label, i))
    return collate(examples)


def weights_for(form: str) -> Any:
    one = np.array([0.5, 1.0, 3.0])
    return {"subset": np.stack([one[::-1], one], 1), "number": None}.get(form, one)


def loss_for(form: str, **options: Any) -> FinetuneLoss:
    kind: Any = {"tokens": "classes"}.get(form, form)
    return FinetuneLoss(kind, num_classes=3, **options)


def gradient(model: nn.Module, batch: Any, loss: Any, tokens: int = 10_000) -> Any:
    model.zero_grad(set_to_none=True)
    means = accumulate_gradient(
        model, batch, loss, counts=loss.counts(batch), micro_batch_tokens=tokens, device=CPU,
        precision=Precision("fp32", "cpu"),
    )  # fmt: skip
    return means, {n: p.grad.clone() for n, p in model.named_parameters() if p.grad is not None}


def slow_loss(form: str, logits: Any, labels: Any, smoothing: float, table: Any) -> list[Any]:
    """One loss for each target, by the definition, a class at a time."""
    found: list[Any] = []
    for row, label in zip(logits.double(), labels, strict=True):
        if form == "number":
            found.append((row[0] - label.item()) ** 2)
        elif form == "subset":
            parts = []
            for c in range(3):
                yes = 1 / (1 + torch.exp(-row[c]))
                target = label[c].item() * (1 - smoothing) + smoothing / 2
                part = -target * torch.log(yes) - (1 - target) * torch.log(1 - yes)
                parts.append(part * (1.0 if table is None else table[c][int(label[c])]))
            found.append(sum(parts) / 3)
        elif int(label) != -100:
            shares = torch.exp(row) / torch.exp(row).sum()
            target = [smoothing / 3 + (1 - smoothing) * (c == int(label)) for c in range(3)]
            part = -sum(t * torch.log(s) for t, s in zip(target, shares, strict=True))
            found.append(part * (1.0 if table is None else table[int(label)]))
    return found


@pytest.mark.parametrize(
    ("form", "smoothing", "weighted"),
    [("number", 0.0, False)]
    + [
        (form, *options)
        for form in ("classes", "subset", "tokens")
        for options in ((0.0, False), (0.1, False), (0.3, True))
    ],
)
def test_loss_and_gradient_are_the_definition(form: str, smoothing: float, weighted: bool) -> None:
    table = weights_for(form) if weighted else None
    batch, model = batch_of(form, [3, 7, 1, 5, 4], 1), MODELS[form]
    loss = loss_for(form, label_smoothing=smoothing, class_weights=table)
    means, found = gradient(model, batch, loss)
    model.zero_grad(set_to_none=True)
    logits = forward_packed(model, to_device(batch, CPU), labels=None).logits
    targets = slow_loss(form, logits.view(len(logits), -1), batch.labels, smoothing, table)
    expected = sum(targets) / len(targets)
    expected.backward()
    assert means["loss"] == pytest.approx(expected.item(), rel=RTOL)
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(found[name], parameter.grad, rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("form", HEADS)
def test_without_options_it_is_the_models_own_loss(form: str) -> None:
    batch, model = batch_of(form, [3, 7, 1, 5], 2), MODELS[form]
    means, found = gradient(model, batch, loss_for(form))
    own, wanted = gradient(model, batch, LabelledLoss())
    assert means["loss"] == pytest.approx(own["loss"], rel=RTOL)
    for name, grad in wanted.items():
        torch.testing.assert_close(found[name], grad, rtol=RTOL, atol=ATOL)


@pytest.mark.parametrize("form", HEADS)
@hypothesis_settings(max_examples=8)
@given(
    lengths=st.lists(st.integers(1, 9), min_size=1, max_size=7),
    tokens=st.integers(1, 30),
    seed=st.integers(0, 2**32 - 1),
    r_drop=st.sampled_from([0.0, 0.7]),
)
def test_split_gradient_is_the_unsplit_gradient(
    form: str, lengths: list[int], tokens: int, seed: int, r_drop: float
) -> None:
    batch, model = batch_of(form, lengths, seed), MODELS[form].eval()
    options: dict[str, Any] = {"r_drop": r_drop}
    if form != "number":
        options |= {"label_smoothing": 0.2, "class_weights": weights_for(form)}
    whole, wanted = gradient(model, batch, loss_for(form, **options))
    means, found = gradient(model, batch, loss_for(form, **options), tokens)
    for name in whole:
        assert means[name] == pytest.approx(whole[name], rel=RTOL, abs=ATOL)
    for name, grad in wanted.items():
        torch.testing.assert_close(found[name], grad, rtol=RTOL, atol=ATOL)


def slow_divergence(form: str, one: Any, two: Any, labels: Any) -> Any:
    """(KL(p, q) + KL(q, p)) / 2 of each target, from the definition of KL."""

    def kl(p: Any, q: Any) -> Any:
        return sum(a * (torch.log(a) - torch.log(b)) for a, b in zip(p, q, strict=True))

    found = []
    for a, b, label in zip(one.double(), two.double(), labels, strict=True):
        if form == "number":
            found.append((a[0] - b[0]) ** 2)
        elif form == "subset":
            pairs = [(torch.stack([1 - x.sigmoid(), x.sigmoid()], 1)) for x in (a, b)]
            found.append(
                sum((kl(p, q) + kl(q, p)) / 2 for p, q in zip(*pairs, strict=True)) / len(a)
            )
        elif int(label) != -100:
            p, q = a.softmax(0), b.softmax(0)
            found.append((kl(p, q) + kl(q, p)) / 2)
    return sum(found) / len(found)


@pytest.mark.parametrize("form", HEADS)
def test_r_drop_is_two_passes_and_their_disagreement(form: str) -> None:
    model = build(form, hidden_dropout_prob=0.3, classifier_dropout_prob=0.3).train()
    batch = batch_of(form, [3, 7, 1, 5, 4], 3)
    torch.manual_seed(5)
    means, found = gradient(model, batch, loss_for(form, r_drop=0.7))
    torch.manual_seed(5)
    model.zero_grad(set_to_none=True)
    there = to_device(batch, CPU)
    one, two = (
        forward_packed(model, there, labels=None).logits.view(len(batch.labels), -1)
        for _ in range(2)
    )
    assert not torch.equal(one, two)
    losses = [
        sum(part) / len(part)
        for part in (slow_loss(form, logits, batch.labels, 0.0, None) for logits in (one, two))
    ]
    apart = slow_divergence(form, one, two, batch.labels)
    (sum(losses) / 2 + 0.7 * apart).backward()
    assert means == {
        "loss": pytest.approx((sum(losses) / 2).item(), rel=RTOL),
        "r_drop": pytest.approx(apart.item(), rel=RTOL),
    }
    for name, parameter in model.named_parameters():
        if parameter.grad is not None:
            torch.testing.assert_close(found[name], parameter.grad, rtol=RTOL, atol=ATOL)


def test_without_dropout_passes_agree() -> None:
    batch = batch_of("classes", [3, 4], 4)
    means, _ = gradient(MODELS["classes"].eval(), batch, loss_for("classes", r_drop=1.0))
    assert means["r_drop"] == 0.0


def best_constant(form: str, labels: Any, smoothing: float, table: Any) -> float:
    """Descend from nothing to the best logits that do not see the input."""
    logits = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([logits], max_iter=200, line_search_fn="strong_wolfe")
    targets = torch.as_tensor(labels)

    def value() -> Any:
        rows = logits.expand(len(targets), 3)
        parts = slow_loss(form, rows, targets, smoothing, table)
        return sum(parts) / len(parts)

    def closure() -> Any:
        optimizer.zero_grad()
        loss = value()
        loss.backward()
        return loss

    optimizer.step(closure)
    return value().item()


@pytest.mark.parametrize("form", ["classes", "subset"])
@pytest.mark.parametrize(("smoothing", "weighted"), [(0.0, False), (0.1, False), (0.2, True)])
def test_chance_is_the_loss_of_the_best_constant_answer(
    form: str, smoothing: float, weighted: bool
) -> None:
    labels = batch_of(form, [2] * 12, 6).labels
    table = weights_for(form) if weighted else None
    loss = loss_for(form, label_smoothing=smoothing, class_weights=table, r_drop=1.0)
    assert isinstance(loss, KnowsChance)
    found = chance_of(loss, labels)
    assert found == pytest.approx(best_constant(form, labels, smoothing, table), rel=SEARCH_RTOL)
    if not (smoothing or weighted):
        assert found == pytest.approx(chance_loss(labels), rel=EXACT)


def test_chance_in_corners() -> None:
    tokens = np.array([0, -100, 1, 1, -100])
    assert loss_for("tokens").chance(tokens) == pytest.approx(chance_loss(tokens), rel=EXACT)
    assert loss_for("classes").chance(np.array([1, 1, 1])) is None
    assert loss_for("classes").chance(np.array([-100])) is None
    assert loss_for("classes", label_smoothing=0.3).chance(np.array([1])) == pytest.approx(
        -0.8 * math.log(0.8) - 0.2 * math.log(0.1)
    )
    numbers = np.array([0.0, 2.0], np.float32)
    assert loss_for("number", r_drop=1.0).chance(numbers) == 1.0
    assert chance_of(None, None) is None
    assert chance_of(None, numbers) == 1.0
    assert chance_of(LabelledLoss(), numbers) is None  # what a task makes of labels is not known


@pytest.mark.parametrize("options", [{"label_smoothing": 0.1}, {"class_weights": np.ones(3)}])
def test_numbers_have_no_classes(options: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="the labels are numbers"):
        FinetuneLoss("number", **options)


def test_what_has_no_fitting_labels_is_refused() -> None:
    ids = np.array([1, 2], np.int32)
    batch = collate([EncodedExample(ids, ids * 0, None, 0)])
    with pytest.raises(DataError, match="no labels"):
        loss_for("classes").counts(batch)
    with pytest.raises(DataError, match="no labels"):
        loss_for("classes")(MODELS["classes"], to_device(batch, CPU))
    batch = collate([EncodedExample(ids, ids * 0, 1, 0)])
    with pytest.raises(DataError, match="1 labels for 2 rows"):
        loss_for("tokens")(MODELS["tokens"], to_device(batch, CPU))
