"""Losses of all depths against slow sums, gradients split or not, and depths drawn at random."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

from litebert.data.batch import EncodedExample, collate
from litebert.errors import DataError, SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.train.chance import chance_loss, chance_of
from litebert.train.exit_loss import ExitLoss
from litebert.train.finetune_loss import FinetuneLoss
from litebert.train.loop import fit
from litebert.train.micro import LabelledLoss, accumulate_gradient, to_device
from litebert.train.precision import Precision
from litebert.train.random_depth import RandomDepth, depth_probabilities
from litebert.train.settings import TrainSettings
from litebert.train.two_pass import ComparingLoss

CPU = torch.device("cpu")
ATOL = 1e-5
"""float32 sums in another order."""
DEPTHS = 3
FORMS: dict[str, tuple[str, str | None, int]] = {
    "classes": ("sequence", "single_label_classification", 3),
    "subset": ("sequence", "multi_label_classification", 3),
    "number": ("sequence", "regression", 1),
    "tokens": ("token", None, 3),
}
CONFIG = AlbertConfig.from_dict(
    {
        "vocab_size": 20,
        "embedding_size": 4,
        "hidden_size": 8,
        "num_hidden_layers": DEPTHS,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": 16,
        "classifier_dropout_prob": 0.0,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "initializer_range": 0.3,
        "litebert": {"exit_heads": True},
    }
)


def build(form: str, **changes: Any) -> AlbertWithHead:
    head, problem, outputs = FORMS[form]
    torch.manual_seed(0)
    labels = {i: "abc"[i] for i in range(outputs)}
    model = AlbertWithHead(CONFIG.replace(problem_type=problem, id2label=labels, **changes), head)
    if model.exits is not None:
        with torch.no_grad():
            model.exits.weight.normal_()
            model.exits.bias.normal_()
    return model.train()


def examples_of(form: str, count: int = 5) -> list[EncodedExample]:
    rng = np.random.default_rng(1)
    examples: list[EncodedExample] = []
    for i in range(count):
        ids = rng.integers(0, 20, 3 + i % 4).astype(np.int32)
        label: Any = int(rng.integers(0, 3))
        if form == "subset":
            label = (rng.random(3) < 0.4).astype(np.float32)
        elif form == "number":
            label = float(rng.normal())
        elif form == "tokens":
            label = rng.integers(0, 3, len(ids))
            label[1] = -100
        examples.append(EncodedExample(ids, ids * 0, label, i))
    return examples


def kind_of(form: str) -> Any:
    return "classes" if form == "tokens" else form


def gradient(model: nn.Module, loss: Any, batch: Any, tokens: int) -> dict[str, torch.Tensor]:
    model.zero_grad(set_to_none=True)
    accumulate_gradient(
        model, batch, loss, counts=loss.counts(batch), micro_batch_tokens=tokens, device=CPU,
        precision=Precision("fp32", "cpu"),
    )  # fmt: skip
    return {name: p.grad.clone() for name, p in model.named_parameters() if p.grad is not None}


def slow_rows(form: str, logits: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    if form == "subset":
        return functional.binary_cross_entropy_with_logits(logits, labels, reduction="none").mean(1)
    if form == "number":
        return (logits[:, 0] - labels).square()
    return functional.cross_entropy(logits, labels, reduction="none")


def slow_divergence(form: str, teacher: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
    if form == "number":
        return (teacher - logits).square().sum()
    p, q = teacher.sigmoid(), logits.sigmoid()
    if form == "subset":
        return (p * (p / q).log() + (1 - p) * ((1 - p) / (1 - q)).log()).mean(1).sum()
    p, q = teacher.softmax(-1), logits.softmax(-1)
    return (p * (p / q).log()).sum()


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("law", "first"), [("depth", 1), ("equal", 1), ("depth", 2)])
def test_each_depth_counts_its_share(form: str, law: Any, first: int) -> None:
    model = build(form)
    batch = collate(examples_of(form))
    device_batch = to_device(batch, CPU)
    loss = ExitLoss(FinetuneLoss(kind_of(form)), depth_weights=law, first_depth=first, distill=0.5)
    terms = {term.name: term for term in loss(model, device_batch)}
    labels = device_batch.labels
    assert labels is not None
    rows = torch.ones(len(labels), dtype=torch.bool)
    if form in ("classes", "tokens"):
        rows = labels != -100
    answers = []
    for depth in range(first, DEPTHS + 1):
        model.set_active_depth(depth)
        whole = model.forward_packed(
            device_batch.input_ids, device_batch.packing, device_batch.token_type_ids
        )
        answers.append(whole.logits[rows])
    model.set_active_depth(None)
    raw = torch.tensor([float(d) if law == "depth" else 1.0 for d in range(first, DEPTHS + 1)])
    shares = raw / raw.sum()
    expected = sum(
        w * slow_rows(form, a, labels[rows]).sum() for w, a in zip(shares, answers, strict=True)
    )
    torch.testing.assert_close(terms["loss"].total, expected, atol=ATOL, rtol=ATOL)
    shallow = raw[:-1] / raw[:-1].sum()
    apart = sum(
        w * slow_divergence(form, answers[-1], a) for w, a in zip(shallow, answers, strict=False)
    )
    torch.testing.assert_close(terms["exit_distill"].total, apart, atol=ATOL, rtol=1e-4)
    assert int(terms["loss"].count) == loss.counts(batch)["exit_distill"] == int(rows.sum())


def test_the_deepest_is_not_taught_by_the_others() -> None:
    model = build("classes")
    batch = to_device(collate(examples_of("classes")), CPU)
    loss = ExitLoss(FinetuneLoss("classes"), distill=1.0)
    distill = loss(model, batch)[1]
    distill.total.backward()
    grad = model.heads["sequence"].classifier.weight.grad
    assert grad is None or not grad.any()
    assert model.exits is not None
    assert model.exits.weight.grad is not None
    assert model.exits.weight.grad.any()


@pytest.mark.parametrize("form", FORMS)
def test_micro_batches_add_up(form: str) -> None:
    model, batch = build(form), collate(examples_of(form))
    loss = ExitLoss(
        FinetuneLoss(kind_of(form), label_smoothing=0.1 * (form != "number")), distill=1
    )
    whole, split = gradient(model, loss, batch, 1000), gradient(model, loss, batch, 6)
    assert whole.keys() == split.keys() == dict(model.named_parameters()).keys()
    for name, value in whole.items():
        torch.testing.assert_close(split[name], value, atol=ATOL, rtol=1e-4)


@pytest.mark.parametrize("options", [{}, {"sharing": "none"}, {"lora_rank": 2}])
def test_a_shallow_pass_leaves_no_weight_without_gradient(options: Any) -> None:
    model, batch = build("classes", litebert=options), collate(examples_of("classes"))
    if options:
        model.exits = None
    loss = (
        RandomDepth(LabelledLoss())
        if options
        else RandomDepth(ExitLoss(FinetuneLoss("classes"), distill=1.0), "uniform")
    )
    for seed in range(6):
        torch.manual_seed(seed)
        found = gradient(model, loss, batch, 1000)
        assert found.keys() == dict(model.named_parameters()).keys()
    assert model.model.encoder.active_depth is None


def test_depths_are_drawn_by_their_law() -> None:
    assert depth_probabilities(4, "uniform", 2) == [1 / 3] * 3
    assert depth_probabilities(4, "deep") == [0.1, 0.2, 0.3, 0.4]
    with pytest.raises(SettingsError, match=r"first_depth is 5, but the model has 4 depths"):
        depth_probabilities(4, "uniform", 5)
    model = build("classes")
    seen: list[int] = []

    class Watching(LabelledLoss):
        def __call__(self, model: Any, batch: Any) -> Any:
            seen.append(model.model.encoder.num_depths)
            return super().__call__(model, batch)

    batch = to_device(collate(examples_of("classes")), CPU)
    loss = RandomDepth(Watching(), "deep", 2)
    torch.manual_seed(0)
    for _ in range(300):
        with torch.no_grad():
            loss(model, batch)
    assert set(seen) == {2, 3}
    assert 150 < seen.count(3) < 210  # 3/5 of 300, four standard deviations


def test_a_constant_answer_costs_the_same() -> None:
    labels = np.array([0, 1, 1, 2])
    assert chance_of(ExitLoss(FinetuneLoss("classes")), labels) == pytest.approx(
        chance_loss(labels)
    )
    assert chance_of(RandomDepth(LabelledLoss()), labels) == chance_loss(labels)
    assert not isinstance(RandomDepth(LabelledLoss()), ComparingLoss)

    class Silent:
        def __init__(self) -> None:
            self.weights = {"loss": 1.0}

        def counts(self, batch: Any) -> dict[str, int]:
            return {"loss": len(batch)}

        def __call__(self, model: Any, batch: Any) -> Any:
            raise AssertionError

    assert RandomDepth(Silent()).chance(labels) is None


@pytest.mark.parametrize("parts", ["heads", "depth", "both"])
def test_a_resumed_run_is_the_same_run(tmp_path: Any, parts: str) -> None:
    loss: Any = (
        LabelledLoss() if parts == "depth" else ExitLoss(FinetuneLoss("classes"), distill=0.3)
    )
    if parts != "heads":
        loss = RandomDepth(loss)
    examples = examples_of("classes", 12)

    def settings(steps: int) -> TrainSettings:
        return TrainSettings(
            max_steps=6, batch_size=4, learning_rate=1e-2, eval_steps=100, save_steps=1, threads=1,
            schedule="constant", warmup_fraction=0.0,
        )  # fmt: skip

    straight = build("classes")
    fit(straight, examples, settings(6), step_loss=loss, state_dir=tmp_path / "a")
    from litebert.train.stop import StopRequest

    stop = StopRequest()

    def stopping(event: Any) -> None:
        if getattr(event, "step", 0) >= 3:
            stop.request()

    broken = build("classes")
    result = fit(
        broken, examples, settings(6), step_loss=loss, state_dir=tmp_path / "b", stop=stop,
        on_event=stopping,
    )  # fmt: skip
    assert result.status == "interrupted"
    again = build("classes")
    fit(again, examples, settings(6), step_loss=loss, state_dir=tmp_path / "b", resume=True)
    for (name, mine), other in zip(
        straight.state_dict().items(), again.state_dict().values(), strict=True
    ):
        assert torch.equal(mine, other), name


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"loss.r_drop compares two passes"):
        ExitLoss(FinetuneLoss("classes", r_drop=1.0))
    batch = to_device(collate(examples_of("classes")), CPU)
    plain = build("classes", litebert={"exit_heads": False})
    with pytest.raises(SettingsError, match=r"this model has none; set"):
        ExitLoss(FinetuneLoss("classes"))(plain, batch)
    with pytest.raises(SettingsError, match=r"first_depth is 4, but 3 depths run"):
        ExitLoss(FinetuneLoss("classes"), first_depth=4)(build("classes"), batch)
    with pytest.raises(SettingsError, match=r"Linear has no depths"):
        RandomDepth(LabelledLoss())(nn.Linear(1, 1), batch)
    unlabelled = to_device(
        collate([EncodedExample(np.ones(3, np.int32), np.zeros(3, np.int32), None, 0)]), CPU
    )
    with pytest.raises(DataError, match=r"no labels; give a labelled file"):
        ExitLoss(FinetuneLoss("classes"))(build("classes"), unlabelled)
