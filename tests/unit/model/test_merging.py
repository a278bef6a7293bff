"""Parts of single depths merged into private blocks: the same outputs, in the published layout."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.named_encoders import make_student
from typer.testing import CliRunner

from litebert.checkpoint.folder import load_model
from litebert.cli import app
from litebert.errors import SettingsError
from litebert.model.merging import merge_depth_parts
from litebert.recipes.standard import write_standard

IDS = torch.tensor([[2, 7, 9, 5, 3], [2, 8, 3, 0, 0]])


@pytest.mark.parametrize(
    "options",
    [
        {"depth_norms": True},
        {"lora_rank": 2, "lora_alpha": 3.0},
        {"depth_norms": True, "lora_rank": 1, "lora_on": ["query", "down"]},
    ],
)
@pytest.mark.parametrize("head", ["embedding", "mlm"])
def test_outputs_stay_the_same(tmp_path: Path, options: dict[str, object], head: str) -> None:
    make_student(tmp_path / "student", head=head, **options)
    model = load_model(tmp_path / "student", head)
    merged = merge_depth_parts(model)
    assert (model.config.model_type, merged.config.model_type) == ("litebert", "albert")
    with torch.inference_mode():
        before, after = (m.eval()(IDS, IDS != 0).logits for m in (model, merged))
    assert isinstance(before, torch.Tensor)
    assert isinstance(after, torch.Tensor)
    torch.testing.assert_close(before, after, atol=1e-5, rtol=1e-5)


def test_transformers_computes_the_twin(tmp_path: Path) -> None:
    transformers = pytest.importorskip("transformers")
    make_student(tmp_path / "student", depth_norms=True, lora_rank=2)
    done = CliRunner().invoke(
        app, ["convert", str(tmp_path / "student"), str(tmp_path / "twin"), "--standard"]
    )
    assert done.exit_code == 0, done.output
    assert "a block for each depth" in done.stdout
    theirs = transformers.AutoModel.from_pretrained(tmp_path / "twin").eval()
    model = load_model(tmp_path / "student", "embedding").eval()
    mask = IDS != 0
    with torch.inference_mode():
        wanted = model(IDS, mask).last_hidden_state
        found = theirs(IDS, mask.long()).last_hidden_state
    torch.testing.assert_close(found[mask], wanted[mask], atol=1e-5, rtol=1e-5)
    assert (tmp_path / "twin" / "modules.json").is_file()


def test_what_no_block_can_hold_is_refused(tmp_path: Path) -> None:
    make_student(tmp_path / "a", adapter_size=2)
    with pytest.raises(SettingsError, match="bottlenecks"):
        merge_depth_parts(load_model(tmp_path / "a", "embedding"))
    make_student(tmp_path / "b", positions="rotary")
    with pytest.raises(SettingsError, match="transformers does not know"):
        write_standard(tmp_path / "b", tmp_path / "out")
    with pytest.raises(SettingsError, match="not empty"):
        write_standard(tmp_path / "b", tmp_path / "a")
