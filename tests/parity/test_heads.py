"""Logits, losses and gradients of every head against transformers, over the whole grid."""

from __future__ import annotations

import pytest
import torch

from litebert.model.packing import Packing
from litebert.model.presets import preset

pytestmark = pytest.mark.parity

OUTPUT_ATOL = 1e-5
"""float32, logits of order 1."""
LOSS_ATOL = 1e-5
"""A mean of order 1 to 10 nats."""
GRADIENT_ATOL = 1e-4
"""Gradients summed over depths and tokens."""

GRID = [(groups, inner) for groups in (1, 2, 4) for inner in (1, 2)]
LENGTHS = {"masked": [9, 4, 7, 2], "unmasked": [6, 6, 6, 6]}
HEADS = {
    "mlm": {},
    "pretraining": {},
    "sequence": {"id2label": {0: "a", 1: "b", 2: "c"}},
    "regression": {"id2label": {0: "score"}},
    "multilabel": {"id2label": {0: "a", 1: "b", 2: "c"}},
    "token": {"id2label": {0: "O", 1: "B", 2: "I"}},
    "span": {},
    "choice": {},
}


def make_labels(kind: str, ids, mask):
    """(ours, keyword arguments of theirs)."""
    generator = torch.Generator().manual_seed(5)

    def draw(high: int, *shape: int):
        return torch.randint(0, high, shape, generator=generator)

    batch, width = ids.shape
    tokens = torch.where((draw(2, batch, width) == 1) & mask.bool(), draw(3, batch, width), -100)
    tokens[0, 1] = 2
    if kind in ("mlm", "token"):
        return tokens, {"labels": tokens}
    if kind == "pretraining":
        order = draw(2, batch)
        return {"mlm": tokens, "sentence_order": order}, {
            "labels": tokens,
            "sentence_order_label": order,
        }
    if kind == "sequence":
        labels = draw(3, batch)
    elif kind == "regression":
        labels = torch.randn(batch, generator=generator)
    elif kind == "multilabel":
        labels = draw(2, batch, 3).float()
    elif kind == "choice":
        labels = draw(2, batch // 2)
    else:
        last = mask.sum(1) - 1
        span = torch.stack([torch.zeros_like(last), last], dim=1)
        span[1, 1] = 99  # outside: does not count
        return span, {"start_positions": span[:, 0], "end_positions": span[:, 1]}
    return labels, {"labels": labels}


def run_theirs(model, kind, ids, mask, types, labels):
    """(logits, loss); spans row by row, since transformers lets padding into their softmax."""
    if kind == "span":
        total, count, logits = [0.0, 0.0], [0, 0], []
        for row, length in enumerate(mask.sum(1).tolist()):
            out = model(ids[row : row + 1, :length], token_type_ids=types[row : row + 1, :length])
            logits.append(torch.stack([out.start_logits[0], out.end_logits[0]], dim=1))
            for side, name in enumerate(("start_positions", "end_positions")):
                target = int(labels[name][row])
                if target < length:
                    total[side] = total[side] - logits[-1][:, side].log_softmax(0)[target]
                    count[side] += 1
        return torch.cat(logits), (total[0] / count[0] + total[1] / count[1]) / 2
    if kind == "choice":
        ids, mask, types = (x.view(2, 2, -1) for x in (ids, mask, types))
    out = model(ids, attention_mask=mask, token_type_ids=types, **labels)
    if kind == "pretraining":
        return {"mlm": out.prediction_logits, "sentence_order": out.sop_logits}, out.loss
    return out.logits, out.loss


def run_ours(model, kind, ids, mask, types, labels, packed):
    real = mask.bool()
    if not packed:
        if kind == "choice":
            ids, mask, types = (x.view(2, 2, -1) for x in (ids, mask, types))
        out = model(ids, mask, types, labels=labels)
        return out.logits[real] if kind == "span" else out.logits, out.loss
    packing = Packing.from_lengths(mask.sum(1).tolist())
    if kind in ("mlm", "token"):
        labels = labels[real]
    if kind == "pretraining":
        labels = {**labels, "mlm": labels["mlm"][real]}
    out = model.forward_packed(
        ids[real],
        packing,
        types[real],
        labels=labels,
        num_choices=2 if kind == "choice" else None,
    )
    return out.logits, out.loss


def assert_logits_equal(ours, theirs, mask, name=""):
    if isinstance(theirs, dict):
        for part in theirs:
            assert_logits_equal(ours[part], theirs[part], mask, part)
        return
    real = mask.bool()
    if theirs.ndim == 3:
        theirs = theirs[real]
        ours = ours[real] if ours.ndim == 3 else ours
    assert ours.shape == theirs.shape
    assert (ours - theirs).abs().max() <= OUTPUT_ATOL, name


@pytest.mark.parametrize("packed", [False, True], ids=["padded", "packed"])
@pytest.mark.parametrize("masked", ["masked", "unmasked"])
@pytest.mark.parametrize(("groups", "inner"), GRID)
@pytest.mark.parametrize("kind", HEADS)
def test_logits_losses_and_gradients(
    reference,
    tiny_config,
    ragged_batch,
    assert_gradients_equal,
    kind,
    groups,
    inner,
    masked,
    packed,
):
    head = "sequence" if kind in ("regression", "multilabel") else kind
    config = tiny_config(groups, inner, **HEADS[kind])
    theirs = reference.model(config, head)
    ours = reference.ours(theirs, config, head)
    ids, mask, types = ragged_batch(LENGTHS[masked], vocab=61)
    my_labels, their_labels = make_labels(kind, ids, mask)
    b_logits, b_loss = run_theirs(theirs, kind, ids, mask, types, their_labels)
    a_logits, a_loss = run_ours(ours, kind, ids, mask, types, my_labels, packed)
    assert_logits_equal(a_logits, b_logits, mask)
    assert (a_loss - b_loss).abs() <= LOSS_ATOL
    a_loss.backward()
    b_loss.backward()
    assert_gradients_equal(ours, reference.gradients(theirs, config, head), GRADIENT_ATOL)


def test_unpadded_span_loss_is_that_of_transformers(reference, tiny_config, ragged_batch):
    config = tiny_config()
    theirs = reference.model(config, "span")
    ours = reference.ours(theirs, config, "span")
    ids, mask, types = ragged_batch([6, 6, 6], vocab=61)
    span = torch.tensor([[1, 3], [-4, 2], [5, 17]])  # negative: first token; 17: not counted
    a = ours(ids, mask, types, labels=span).loss
    b = theirs(ids, token_type_ids=types, start_positions=span[:, 0], end_positions=span[:, 1]).loss
    assert (a - b).abs() <= LOSS_ATOL


def test_full_base_shape(reference, ragged_batch, assert_gradients_equal):
    """Encoder, pooler, both heads of pretraining, their loss and every gradient."""
    config = preset("albert-base-v2")
    theirs = reference.model(config, "pretraining")
    with torch.no_grad():  # the noise of the fixture is meant for tiny shapes
        for weight in theirs.parameters():
            weight.mul_(0.3)
    ours = reference.ours(theirs, config, "pretraining")
    ids, mask, types = ragged_batch([23, 9], vocab=30_000)
    my_labels, their_labels = make_labels("pretraining", ids, mask)
    b = theirs(ids, mask, types, output_hidden_states=True, **their_labels)
    a = ours(ids, mask, types, labels=my_labels, output_hidden_states=True)
    real = mask.bool()
    for mine, other in zip(a.hidden_states, b.hidden_states, strict=True):
        assert (mine - other)[real].abs().max() <= OUTPUT_ATOL
    assert (a.logits["mlm"] - b.prediction_logits)[real].abs().max() <= OUTPUT_ATOL
    assert (a.logits["sentence_order"] - b.sop_logits).abs().max() <= OUTPUT_ATOL
    assert (a.loss - b.loss).abs() <= LOSS_ATOL
    a.loss.backward()
    b.loss.backward()
    found = reference.gradients(theirs, config, "pretraining")
    assert_gradients_equal(ours, found, GRADIENT_ATOL)
