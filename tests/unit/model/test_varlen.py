"""The kernel for packed sequences: chosen where it fits, used only once it agreed, else left with a word."""

from __future__ import annotations

import sys
import warnings

import pytest
import torch

from litebert.model import attend as attend_module
from litebert.model import sight as sight_module
from litebert.model.attend import HeadLayout, attend, attend_buckets
from litebert.model.packing import Packing
from litebert.model.sight import Sight, look, look_probabilities
from litebert.model.varlen import VariableLength

ATOL = 0.02
"""bfloat16 has three digits."""


def fake_kernel(query, key, value, cu_q, cu_k, max_q, max_k, *, window_size, enable_gqa):
    """What the real one documents, one sequence at a time."""
    assert cu_q.dtype == torch.int32
    assert query.is_contiguous()
    assert enable_gqa == (query.shape[1] != key.shape[1])
    parts = []
    for a, b in zip(cu_q[:-1].tolist(), cu_q[1:].tolist(), strict=True):
        assert b - a <= max_q == max_k
        q, k, v = (x[a:b].transpose(0, 1).float() for x in (query, key, value))
        k, v = (x.repeat_interleave(len(q) // len(x), dim=0) for x in (k, v))
        scores = q @ k.transpose(1, 2) / q.shape[-1] ** 0.5
        places = torch.arange(b - a)
        distance = places[:, None] - places[None]
        if window_size != (-1, -1):
            hidden = (distance > window_size[0]) | (-distance > window_size[1])
            scores = scores.masked_fill(hidden, -torch.inf)
        parts.append((scores.softmax(-1) @ v).transpose(0, 1))
    return torch.cat(parts).to(query.dtype)


def blind_kernel(*args, **kwargs):
    """Wrong: sees the whole sequence whatever the window."""
    return fake_kernel(*args, **{**kwargs, "window_size": (-1, -1)})


def zero_kernel(query, *args, **kwargs):
    return query * 0


def failing_kernel(*args, **kwargs):
    raise RuntimeError("no kernel image is available\nfor this device")


def plain(qkv, packing, half):
    if half is None:
        return attend_buckets(qkv, HEADS, packing)
    return look(qkv, HEADS, packing, Sight(packing.position_ids, half=half), None, is_local=True)


HEADS = HeadLayout(4, 2, 8)
QKV = torch.randn(30, sum(HEADS.widths), generator=torch.Generator().manual_seed(1)).bfloat16()
PACKING = Packing.from_lengths([12, 1, 0, 17])


def test_an_agreeing_kernel_is_used_and_asked_once():
    calls = []

    def counted(*args, **kwargs):
        calls.append(1)
        return fake_kernel(*args, **kwargs)

    chosen = VariableLength(counted, device_type="cpu")
    assert chosen.is_usable(QKV, HEADS, plain)
    assert chosen.is_usable(QKV, HEADS, plain)
    assert len(calls) == 1
    assert chosen.is_usable(QKV, HEADS, plain, windowed=True)
    assert len(calls) == 2  # another kind of call
    found = chosen.attend(QKV, HEADS, PACKING)
    assert torch.allclose(found, attend_buckets(QKV, HEADS, PACKING), atol=ATOL)
    with torch.inference_mode():
        assert VariableLength(fake_kernel, device_type="cpu").is_usable(QKV, HEADS, plain)


@pytest.mark.parametrize(
    ("kernel", "windowed", "message"),
    [
        (failing_kernel, False, r"it failed \(\w+: no kernel image is available\)"),
        (zero_kernel, False, "it differs from ordinary attention by"),
        (blind_kernel, True, "it differs from ordinary attention by"),
        (lambda query, *a, **k: query.flatten(1), False, "it failed|it differs"),
    ],
)
def test_any_other_is_left_with_one_warning(kernel, windowed, message):
    chosen = VariableLength(kernel, device_type="cpu")
    with pytest.warns(UserWarning, match=message):
        assert not chosen.is_usable(QKV, HEADS, plain, windowed=windowed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not chosen.is_usable(QKV, HEADS, plain, windowed=windowed)


def test_a_torch_without_the_kernel_is_a_failure(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.nn.attention.varlen", None)
    chosen = VariableLength(device_type="cpu")
    with pytest.warns(UserWarning, match="it failed"):
        assert not chosen.is_usable(QKV, HEADS, plain)


@pytest.mark.parametrize(
    ("qkv", "heads", "device_type"),
    [
        (QKV.float(), HEADS, "cpu"),
        (QKV, HEADS, "cuda"),
        (QKV, HeadLayout(4, 2, 12), "cpu"),
        (QKV, HeadLayout(1, 1, 264), "cpu"),
    ],
)
def test_calls_that_do_not_fit_are_not_tried(qkv, heads, device_type):
    assert not VariableLength(failing_kernel, device_type=device_type).is_usable(qkv, heads, plain)


@pytest.mark.parametrize("half", [None, 3])
def test_attention_takes_it(monkeypatch, half):
    used = []

    def kernel(*args, **kwargs):
        used.append(kwargs["window_size"])
        return fake_kernel(*args, **kwargs)

    chosen = VariableLength(kernel, device_type="cpu")
    monkeypatch.setattr(attend_module, "VARLEN", chosen)
    monkeypatch.setattr(sight_module, "VARLEN", chosen)
    if half is None:
        monkeypatch.setattr(attend_module, "SEQUENTIAL_DEVICES", frozenset())
        found = attend(QKV, HEADS, PACKING)
        assert used[-1] == (-1, -1)
        attend(QKV, HEADS, PACKING, dropout_prob=0.1)
    else:
        sight = Sight(PACKING.position_ids, half=half)
        found = look(QKV, HEADS, PACKING, sight, None, is_local=True)
        assert used[-1] == (half, half)
        look(QKV, HEADS, PACKING, sight, None, is_local=True, dropout_prob=0.1)
    assert len(used) == 2  # the probe and one use; it has no dropout
    value = QKV.float().split(HEADS.widths, -1)[2].unflatten(-1, (2, 8))
    value = value.repeat_interleave(2, dim=1).split(PACKING.lengths)
    sight = Sight(PACKING.position_ids, half=half)
    probabilities = look_probabilities(
        QKV.float(), HEADS, PACKING, sight, None, is_local=half is not None
    )
    expected = [
        torch.einsum("anm,mad->nad", p, v) for p, v in zip(probabilities, value, strict=True)
    ]
    assert torch.allclose(found.float(), torch.cat(expected).flatten(1), atol=ATOL)
