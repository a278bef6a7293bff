"""Folding: what is shared already stays as it is, what full rank gives back, what is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from litebert.compress.fold import FoldOptions, fold
from litebert.errors import SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.model.resharing import unshare

ATOL = 1e-5


def make(head: str = "embedding", *, seed: int = 0, **changes: Any) -> AlbertWithHead:
    options = {"sharing": "none", "pooling": "mean", "project_embeddings": False}
    sizes: dict[str, Any] = {
        "vocab_size": 30, "embedding_size": 16, "hidden_size": 16, "num_hidden_layers": 4,
        "num_attention_heads": 2, "intermediate_size": 24, "max_position_embeddings": 20,
        "litebert": options | changes.pop("litebert", {}),
    }  # fmt: skip
    torch.manual_seed(seed)
    model = AlbertWithHead(AlbertConfig.model_validate(sizes | changes), head).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(torch.randn_like(weight) * 0.3 + (1.0 if "norm.weight" in name else 0.0))
    return model


def output(model: AlbertWithHead) -> torch.Tensor:
    ids = torch.randint(30, (3, 9), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        return model(ids).last_hidden_state


@pytest.mark.parametrize("keep", ["average", "stepwise", 2])
def test_a_shared_model_loses_nothing(keep: Any) -> None:
    shared = make(litebert={"sharing": "all"}, num_hidden_groups=1)
    folded, report = fold(unshare(shared), FoldOptions(keep=keep))
    assert torch.equal(output(folded), output(shared))
    assert max(report.residual.values()) == 0.0
    assert report.parameters_after == sum(p.numel() for p in shared.parameters())
    assert report.parameters_after < report.parameters_before


@pytest.mark.parametrize(("sharing", "blocks"), [("groups", 2), ("cycle", 2), ("groups", 4)])
def test_several_blocks(sharing: Any, blocks: int) -> None:
    model = make(num_hidden_groups=4)
    folded, _ = fold(model, FoldOptions(blocks=blocks, sharing=sharing))
    config = folded.config
    assert [step.ffn for step in config.plan] == {
        ("groups", 2): [0, 0, 1, 1], ("cycle", 2): [0, 1, 0, 1], ("groups", 4): [0, 1, 2, 3],
    }[(sharing, blocks)]  # fmt: skip
    if blocks == 4:
        assert torch.equal(output(folded), output(model))
    else:
        ups = [ffn.up.weight for ffn in model.model.encoder.ffns]
        used = [d for d, step in enumerate(config.plan) if step.ffn == 1]
        expected = torch.stack([ups[d] for d in used]).mean(0)
        assert torch.allclose(folded.model.encoder.ffns[1].up.weight, expected)


@pytest.mark.parametrize(
    ("keep", "depths"), [("stepwise", (0, 3)), (0, (0, 2)), (1, (1, 3)), ((2, 1), (2, 1))]
)
def test_chosen_depths(keep: Any, depths: tuple[int, int]) -> None:
    model = make(num_hidden_groups=4)
    folded, _ = fold(model, FoldOptions(blocks=2, keep=keep))
    for block, depth in enumerate(depths):
        found = folded.model.encoder.attentions[block].query.weight
        assert torch.equal(found, model.model.encoder.attentions[depth].query.weight)


def test_updates_of_full_rank_and_own_norms_restore_the_model() -> None:
    model = make(num_hidden_groups=4)
    with torch.no_grad():  # the biases of projections are no part of an update
        for blocks in (model.model.encoder.attentions, model.model.encoder.ffns):
            for name, bias in blocks.named_parameters():
                if name.endswith("bias") and "norm" not in name:
                    bias.copy_(blocks[0].get_parameter(name.partition(".")[2]))
    expected = output(model)
    bare, report = fold(model, FoldOptions())
    assert (output(bare) - expected).abs().max() > 0.1
    low, half = fold(model, FoldOptions(lora_rank=8, depth_norms=True))
    assert (output(low) - expected).abs().max() > 0.01
    full, none = fold(model, FoldOptions(lora_rank=24, depth_norms=True))
    assert torch.allclose(output(full), expected, atol=ATOL)
    worst = [max(found.residual.values()) for found in (report, half, none)]
    assert worst[0] > worst[1] > worst[2]
    assert worst[2] < 1e-6
    assert full.config.model_type == "litebert"


def test_an_update_is_the_best_one_of_its_rank() -> None:
    model = make(num_hidden_groups=4)
    folded, report = fold(model, FoldOptions(lora_rank=3))
    gap = (model.model.encoder.ffns[2].up.weight - folded.model.encoder.ffns[0].up.weight).double()
    values = torch.linalg.svdvals(gap.detach())
    norm = model.model.encoder.ffns[2].up.weight.detach().double().norm()
    expected = float(values[3:].square().sum().sqrt() / norm)
    assert report.residual[(2, "up")] == pytest.approx(expected, rel=1e-5)


def test_the_table_is_cut_and_the_old_projection_follows() -> None:
    """With E - 1 directions of the table's own rank nothing is lost, but for the ridge of the fit."""
    model = make(num_hidden_groups=4)
    with torch.no_grad():
        mix = torch.randn(5, 16)
        embeddings = model.model.embeddings
        for table in (embeddings.token, embeddings.position, embeddings.token_type):
            table.weight.copy_(torch.randn(len(table.weight), 5) @ mix)
    cut, report = fold(model, FoldOptions(blocks=4, embedding_size=8))
    assert (cut.config.embedding_size, cut.config.has_projection) == (8, True)
    assert report.embedding_fit == pytest.approx(1.0, abs=1e-4)
    assert torch.allclose(output(cut), output(model), atol=0.05)
    again, report = fold(cut, FoldOptions(blocks=4, embedding_size=7))
    assert report.embedding_fit == pytest.approx(1.0, abs=1e-3)
    assert torch.allclose(output(again), output(model), atol=0.1)


def test_heads_and_poolers_stay() -> None:
    model = make("sequence", num_hidden_groups=4)
    folded, _ = fold(model, FoldOptions())
    assert torch.equal(
        folded.heads["sequence"].classifier.weight, model.heads["sequence"].classifier.weight
    )
    assert torch.equal(folded.model.pooler.weight, model.model.pooler.weight)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (FoldOptions(blocks=5), "blocks is 5, allowed are 1 to the 4 depths"),
        (FoldOptions(embedding_size=17), "embedding size is 17, allowed are up to the 16"),
        (FoldOptions(keep=4), "keep is 4; allowed are 'average', 'stepwise', or 0 to 3"),
        (
            FoldOptions(blocks=2, keep=(0, 4)),
            "depths 0, 4; needed is one from 0 to 3 for each of the 2",
        ),
        (FoldOptions(blocks=2, keep=(0,)), "depths 0; needed is one from 0 to 3 for each of the 2"),
        (FoldOptions(lora_rank=2, lora_on=("querry",)), "no projection 'querry'"),
    ],
)
def test_refused_options(options: FoldOptions, message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        fold(make(num_hidden_groups=4), options)


def test_parts_of_depths_are_refused() -> None:
    model = make(num_hidden_groups=4, litebert={"depth_norms": True})
    with pytest.raises(SettingsError, match="has parts of single depths already"):
        fold(model, FoldOptions())
