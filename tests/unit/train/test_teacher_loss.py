"""The loss on labels and a teacher's answers: slow sums, gradients, ids of a cut vocabulary, refusals."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch.nn import functional

from litebert.data.batch import EncodedExample, collate
from litebert.errors import DataError, SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.train.chance import chance_of
from litebert.train.finetune_loss import FinetuneLoss
from litebert.train.micro import forward_packed, to_device
from litebert.train.teacher_loss import TEMPERATURE, TeacherLoss

CONFIG = AlbertConfig.from_dict(
    {
        "vocab_size": 12,
        "embedding_size": 4,
        "hidden_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 16,
        "max_position_embeddings": 16,
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "classifier_dropout_prob": 0.0,
        "initializer_range": 0.4,
    }
)


def model(seed: int, labels: int = 3, head: str = "sequence", **changes: Any) -> AlbertWithHead:
    torch.manual_seed(seed)
    named = {i: "abc"[i] for i in range(labels)}
    return AlbertWithHead(CONFIG.replace(id2label=named, **changes), head)


def batch(labels: list[Any]) -> Any:
    rng = np.random.default_rng(0)
    examples = [
        EncodedExample(
            rng.integers(0, 12, 5).astype(np.int32), np.zeros(5, np.int32), label, number
        )
        for number, label in enumerate(labels)
    ]
    return to_device(collate(examples), torch.device("cpu"))


def test_both_terms_are_slow_sums_and_only_the_student_learns() -> None:
    student, teacher, rows = model(0), model(1), batch([0, 2, 1])
    loss = TeacherLoss(FinetuneLoss("classes"), teacher, share=0.25)
    assert loss.weights == {"loss": 0.75, "teacher": 0.25}
    terms = {term.name: term for term in loss(student, rows)}
    own = forward_packed(student, rows, None).logits
    with torch.no_grad():
        theirs = forward_packed(teacher, rows, None).logits
    assert torch.allclose(
        terms["loss"].total, functional.cross_entropy(own, rows.labels, reduction="sum")
    )
    p, q = (torch.softmax(part / TEMPERATURE, -1) for part in (theirs, own))
    wanted = TEMPERATURE**2 * (p * (p.log() - q.log())).sum()
    assert torch.allclose(terms["teacher"].total, wanted, atol=1e-5)
    terms["teacher"].total.backward()
    assert all(part.grad is None for part in teacher.parameters())
    grad = student.model.encoder.ffns[0].up.weight.grad  # pyright: ignore
    assert grad is not None and float(grad.abs().sum()) > 0
    assert chance_of(loss, np.array([0, 1])) is None


def test_a_student_that_is_the_teacher_has_nothing_to_learn_from_it() -> None:
    student, rows = model(0), batch([0, 2, 1])
    terms = TeacherLoss(FinetuneLoss("classes"), model(0))(student, rows)
    assert abs(float(terms[1].total.detach())) < 1e-5 and int(terms[1].count) == 3


def test_numbers_and_tokens() -> None:
    student = model(0, 1, problem_type="regression")
    teacher = model(1, 1, problem_type="regression")
    rows = batch([0.5, -1.0])
    loss = TeacherLoss(FinetuneLoss("number"), teacher, problem_type="regression")
    found = float(loss(student, rows)[1].total.detach())
    own, theirs = (forward_packed(m, rows, None).logits.detach() for m in (student, teacher))
    assert found == pytest.approx(float((own - theirs).square().sum()), abs=1e-5)
    tokens = batch([np.array([0, -100, 1, 2, -100]), np.array([1, 1, -100, 0, 0])])
    found = TeacherLoss(FinetuneLoss("classes"), model(1, head="token"))(
        model(0, head="token"), tokens
    )
    assert int(found[0].count) == int(found[1].count) == 7


def test_ids_of_a_cut_vocabulary_are_the_teachers_again() -> None:
    teacher, old = model(1), torch.tensor([0, 1, 2, 3, 4, 7, 9, 11])
    student = model(1, vocab_size=8)
    state = teacher.state_dict()
    state["model.embeddings.token.weight"] = state["model.embeddings.token.weight"][old]
    student.load_state_dict(state)
    small = to_device(
        collate(
            [
                EncodedExample(np.array([0, 5, 7, 3], np.int32), np.zeros(4, np.int32), 1, 0),
            ]
        ),
        torch.device("cpu"),
    )
    term = TeacherLoss(FinetuneLoss("classes"), teacher, ids=old)(student, small)[1]
    assert abs(float(term.total.detach())) < 1e-5


def test_what_cannot_be_taught_is_refused() -> None:
    with pytest.raises(SettingsError, match="r_drop"):
        TeacherLoss(FinetuneLoss("classes", r_drop=1.0), model(0))
    with pytest.raises(SettingsError, match="above 0 to 1"):
        TeacherLoss(FinetuneLoss("classes"), model(0), share=0.0)
    loss = TeacherLoss(FinetuneLoss("classes"), model(0, 2))
    with pytest.raises(SettingsError, match="same classes"):
        loss(model(0, 3), batch([0, 2]))
    with pytest.raises(DataError, match="no labels"):
        loss(model(0, 2), batch([None, None]))
