from __future__ import annotations

from pathlib import Path

import pytest
import torch

import litebert
from litebert.checkpoint.pretrained import AlbertModel, AlbertWithHead
from litebert.errors import CheckpointError
from litebert.model.config import AlbertConfig


def test_the_public_classes_are_these() -> None:
    assert litebert.AlbertModel is AlbertModel
    assert litebert.AlbertWithHead is AlbertWithHead


def test_an_encoder_is_built_saved_and_loaded(tmp_path: Path, tiny_config: AlbertConfig) -> None:
    model = AlbertModel(tiny_config).eval()
    model.save_pretrained(tmp_path / "m")
    loaded = AlbertModel.from_pretrained(str(tmp_path / "m"))
    assert type(loaded) is AlbertModel
    ids = torch.tensor([[2, 5, 6, 3]])
    with torch.no_grad():
        expected, found = (m(input_ids=ids, output_hidden_states=True) for m in (model, loaded))
    assert torch.equal(found.last_hidden_state, expected.last_hidden_state)
    assert torch.equal(found.pooler_output, expected.pooler_output)
    assert len(found.hidden_states) == tiny_config.num_hidden_layers + 1
    assert AlbertModel.from_pretrained(tmp_path / "m", add_pooler=False).pooler is None


def test_a_model_with_a_head_is_built_saved_and_loaded(
    tmp_path: Path, tiny_config: AlbertConfig
) -> None:
    model = AlbertWithHead(tiny_config, "sequence").eval()
    model.save_pretrained(tmp_path / "m")
    loaded = AlbertWithHead.from_pretrained(tmp_path / "m")
    assert type(loaded) is AlbertWithHead
    ids = torch.tensor([[2, 5, 6, 3]])
    with torch.no_grad():
        assert torch.equal(loaded(ids).logits, model(ids).logits)
    with pytest.raises(CheckpointError, match="allow_new_head"):
        AlbertWithHead.from_pretrained(tmp_path / "m", head="token")
    again = AlbertWithHead.from_pretrained(
        tmp_path / "m", head="token", allow_new_head=True, changes={"id2label": {0: "O"}}
    )
    assert again.heads["token"].classifier.out_features == 1


def test_a_trained_encoder_without_pooler_loads_and_answers(shared: Path) -> None:
    from safetensors.torch import load_file

    folder = shared / "models" / "kokoro-albert"
    model = AlbertModel.from_pretrained(folder)
    reference = load_file(folder / "reference.safetensors")
    with torch.no_grad():
        output = model(
            reference["input_ids"], reference["attention_mask"], output_hidden_states=True
        )
    mask = reference["attention_mask"].bool()
    assert output.pooler_output is None
    assert len(output.hidden_states) == len(reference["hidden_states"]) == 13
    for found, expected in zip(output.hidden_states, reference["hidden_states"], strict=True):
        # The reference was computed in float64; its own float32 run differs by 1.4e-5.
        torch.testing.assert_close(found[mask], expected[mask], atol=5e-5, rtol=0)
