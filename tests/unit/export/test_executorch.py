"""ExecuTorch files beside torch, and the parts that they are made of."""

from __future__ import annotations

import copy
import importlib.util
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from litebert.checkpoint.folder import save_model
from litebert.errors import ExportError, MissingDependencyError
from litebert.export.base import Options
from litebert.export.executorch import exporter
from litebert.export.executorch.exporter import ExecuTorchExporter
from litebert.export.executorch.parts import EMBED, HEAD, IntegerTable, make_parts
from litebert.export.folder import export_and_verify
from litebert.export.onnx.source import Source
from litebert.model.albert import AlbertModel, AlbertWithHead

from .tiny import tiny

needs_executorch = pytest.mark.skipif(
    importlib.util.find_spec("executorch") is None,
    reason="executorch is not installed: pip install litebert[mobile]",
)
HEADS = (None, "sequence", "token", "span", "embedding", "mlm", "pretraining", "choice")
OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"norm_position": "pre", "ffn": "geglu"},
    {"num_key_value_heads": 2, "depth_embeddings": True},
    {"lora_rank": 2, "depth_norms": True, "adapter_size": 3},
    {"pooler_reads": "mean"},
)


def answers(model: AlbertModel | AlbertWithHead, width: int, real: slice) -> list[torch.Tensor]:
    """What the parts give in torch, run as a host would run them."""
    parts = make_parts(copy.deepcopy(model))
    ids = torch.arange(width)[None] % 60
    mask = torch.zeros(1, width, dtype=torch.int64)
    mask[0, real] = 1
    with torch.no_grad():
        hidden, bias = parts.embed(ids, mask, torch.zeros_like(ids))
        for name in parts.order:
            hidden = parts.steps[name](hidden, bias)
        found = list(parts.head(hidden, mask))
    assert len(found) == len(parts.outputs) and all(len(part) == 1 for part in found)
    return found


@pytest.mark.parametrize("head", HEADS)
def test_parts_give_what_the_model_gives(head: str | None) -> None:
    model = tiny(head)
    ids, mask = torch.arange(9)[None] % 60, torch.ones(1, 9, dtype=torch.int64)
    with torch.no_grad():
        if not isinstance(model, AlbertWithHead):
            whole = model(ids, mask)
            wanted = [whole.last_hidden_state, whole.pooler_output]
        elif model.head == "choice":
            wanted = [model(ids[None], mask[None]).logits]
        else:
            output = model(ids, mask)
            logits = output.logits
            wanted = {
                "span": lambda: [logits[..., 0], logits[..., 1]],
                "embedding": lambda: [output.last_hidden_state, logits],
                "pretraining": lambda: [logits["mlm"], logits["sentence_order"]],
            }.get(model.head, lambda: [logits])()
    for ours, theirs in zip(answers(model, 9, slice(0, 9)), wanted, strict=True):
        assert torch.allclose(ours, theirs, atol=1e-5)


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("real", [slice(0, 6), slice(3, 9)], ids=["right", "left"])
def test_options_and_padding(options: dict[str, Any], real: slice) -> None:
    model = tiny("sequence", litebert=options)
    mask = torch.zeros(1, 9, dtype=torch.int64)
    mask[0, real] = 1
    with torch.no_grad():
        wanted = model(torch.arange(9)[None] % 60, mask).logits
    assert torch.allclose(answers(model, 9, real)[0], wanted, atol=1e-5)


def test_a_shared_block_is_one_part_and_special_depths_are_their_own() -> None:
    shared = make_parts(tiny())
    assert shared.order == ("step_0",) * 4 and list(shared.steps) == ["step_0"]
    groups = make_parts(tiny(num_hidden_groups=2))
    assert groups.order == ("step_0", "step_0", "step_1", "step_1")
    special = make_parts(tiny(litebert={"depth_norms": True}))
    assert special.order == ("step_0", "step_1", "step_2", "step_3")
    assert shared.limit == 32


def test_what_has_no_part_is_refused() -> None:
    with pytest.raises(ExportError, match="span_joint"):
        make_parts(tiny("span_joint"))
    with pytest.raises(ExportError, match="rotary positions and local windows"):
        make_parts(tiny(litebert={"positions": "rotary", "local_window": 4}))


def test_integer_tables_hold_each_row_to_half_a_step() -> None:
    table = torch.randn(7, 5)
    table[3] = 0.0
    found = IntegerTable(table)(torch.arange(7))
    steps = table.abs().amax(1, keepdim=True) / 127
    assert bool(((found - table).abs() <= steps / 2 + 1e-7).all())


def test_a_weight_stored_twice_is_refused() -> None:
    source = Source.of(tiny())
    parts = make_parts(tiny())
    with pytest.raises(ExportError, match="stored twice"):
        exporter._check_size(bytes(1 << 20), source, parts, "fp32", is_tied=False)
    exporter._check_size(bytes(1 << 10), source, parts, "int8", is_tied=True)


def test_without_executorch_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("executorch", "executorch.exir"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingDependencyError, match=r"litebert\[mobile\]"):
        list(ExecuTorchExporter().artifacts(Source.of(tiny()), Options(("fp32",))))


@needs_executorch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(("head", "precision"), [("sequence", "int8"), ("span", "fp32")])
def test_files_are_verified_and_written(head: str, precision: str, tmp_path: Path) -> None:
    save_model(tiny(head, num_hidden_layers=2), tmp_path / "model")
    report = export_and_verify(
        "executorch", tmp_path / "model", tmp_path / "out", Options((precision,))
    )
    (item,) = report.files
    assert (tmp_path / "out" / item.name).stat().st_size == item.bytes
    assert item.facts["methods"] == [EMBED, "step_0", "step_0", HEAD]
    assert item.difference.agreement > (0.99 if precision == "int8" else 0.99999)
