"""Pruning: importance is that of removal from every depth; smaller matrices give what masks give."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from litebert.compress.prune.importance import Importance, Masks, taylor_importance
from litebert.compress.prune.remove import Kept, choose, keep_rows, remove
from litebert.errors import SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.model.counting import parameter_count
from litebert.model.packing import Packing


def made(**options: Any) -> AlbertWithHead:
    groups = options.pop("groups", 1)
    config = AlbertConfig(
        vocab_size=40,
        embedding_size=8,
        hidden_size=16,
        num_hidden_layers=4,
        num_hidden_groups=groups,
        num_attention_heads=4,
        intermediate_size=12,
        max_position_embeddings=16,
        initializer_range=0.3,
        litebert=options,  # pyright: ignore[reportArgumentType]
    )
    torch.manual_seed(0)
    model = AlbertWithHead(config, "sequence").eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if ".adapters." in name or "bias" in name:
                parameter.normal_(0.0, 0.2)
    return model


IDS = torch.randint(0, 40, (40,), generator=torch.Generator().manual_seed(1))
PACKING = Packing.from_lengths([12, 12, 16])
LABELS = torch.tensor([0, 1, 1])


def losses(model: AlbertWithHead) -> list[tuple[Callable[[], Tensor], int]]:
    def loss() -> Tensor:
        found = model.forward_packed(IDS, PACKING, labels=LABELS).loss
        assert found is not None
        return found

    return [(loss, 40)]


OPTIONS: list[dict[str, Any]] = [
    {},
    {"groups": 2},
    {"num_key_value_heads": 2},
    {"ffn": "geglu"},
    {"lora_rank": 2},
    {"positions": "disentangled", "relative_distance": 4, "relative_form": "v1"},
    {"positions": "rotary", "norm_position": "pre"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda o: "-".join(map(str, o)) or "plain")
def test_the_smaller_model_gives_what_the_masked_one_gives(options: dict[str, Any]) -> None:
    model = made(**dict(options))
    importance = taylor_importance(model, losses(model))
    kept = choose(model.config, importance, heads=2, units=5)
    masks = Masks(model)
    for mask, stays in zip((*masks.heads, *masks.units), (*kept.heads, *kept.units), strict=True):
        gone = [place for place in range(len(mask)) if place not in stays]
        mask[gone] = 0.0
    undo = masks.attach(model)
    with torch.no_grad():
        wanted = model.forward_packed(IDS, PACKING)
    undo()
    small = remove(model, kept)
    with torch.no_grad():
        found = small.forward_packed(IDS, PACKING)
    torch.testing.assert_close(found.logits, wanted.logits, atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(
        found.last_hidden_state, wanted.last_hidden_state, atol=1e-5, rtol=1e-5
    )
    assert small.config.attention_size == 8 and small.config.intermediate_size == 5
    assert small.config.model_type == "litebert"
    count = sum(p.numel() for p in small.parameters())
    assert count == parameter_count(small.config, head="sequence")
    assert count < sum(p.numel() for p in model.parameters())
    whole = remove(model, choose(model.config, importance))
    assert whole.config == model.config


def test_importance_is_the_change_of_the_loss_at_all_depths_at_once() -> None:
    """The gradient of a factor is the slope of the loss when the part fades at every depth."""
    model = made()
    importance = taylor_importance(model, losses(model))
    assert importance.tokens == 40
    loss = losses(model)[0][0]
    step = 1e-2
    for kind, scores in (("heads", importance.heads[0]), ("units", importance.units[0])):
        for place in range(4):
            values: list[float] = []
            for factor in (1.0 - step, 1.0 + step):
                masks = Masks(model)
                getattr(masks, kind)[0][place] = factor
                undo = masks.attach(model)
                with torch.no_grad():
                    values.append(loss().item())
                undo()
            slope = abs(values[1] - values[0]) / (2 * step)
            assert scores[place].item() == pytest.approx(slope, rel=0.05, abs=2e-4)


def test_the_least_important_units_cost_least_when_they_are_removed() -> None:
    model = made()
    loss = losses(model)[0][0]
    with torch.no_grad():
        start = loss().item()
    scores = taylor_importance(model, losses(model)).units[0]

    def cost(unit: int) -> float:
        stays = tuple(place for place in range(12) if place != unit)
        small = remove(model, Kept(((0, 1, 2, 3),), (stays,)))
        with torch.no_grad():
            return abs(losses(small)[0][0]().item() - start)

    order = scores.argsort().tolist()
    assert sum(map(cost, order[:4])) < sum(map(cost, order[-4:]))


def test_gradients_of_the_model_stay_untouched() -> None:
    model = made()
    taylor_importance(model, losses(model))
    assert all(parameter.grad is None for parameter in model.parameters())
    assert model.model.encoder.rounding is None


def test_named_heads_and_equal_sizes() -> None:
    model = made(groups=2)
    scores = taylor_importance(model, losses(model))
    assert choose(model.config, scores, keep_heads=[3, 1]).heads == ((1, 3), (1, 3))
    kept = choose(model.config, scores, heads=1, units=3)
    assert [len(part) for part in (*kept.heads, *kept.units)] == [1, 1, 3, 3]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"heads": 0}, "1 to 4"),
        ({"heads": 5}, "1 to 4"),
        ({"units": 0}, "1 to 12"),
        ({"units": 13}, "1 to 12"),
        ({"keep_heads": []}, "different numbers from 0 to 3"),
        ({"keep_heads": [4]}, "different numbers from 0 to 3"),
        ({"keep_heads": [1, 1]}, "different numbers from 0 to 3"),
        ({"heads": 1, "keep_heads": [1]}, "not both"),
    ],
)
def test_sizes_that_cannot_be_are_refused(options: dict[str, Any], words: str) -> None:
    config = made().config
    scores = Importance((torch.ones(4),), (torch.ones(12),), 1)
    with pytest.raises(SettingsError, match=words):
        choose(config, scores, **options)


def test_heads_that_share_keys_stay_together_and_quantized_models_are_refused() -> None:
    config = made(num_key_value_heads=2).config
    scores = Importance((torch.ones(2),), (torch.ones(12),), 1)
    with pytest.raises(SettingsError, match="multiples of 2"):
        choose(config, scores, heads=3)
    with pytest.raises(SettingsError, match="needs labelled examples"):
        taylor_importance(made(), [])
    from litebert.compress.quantize import with_quantization
    from litebert.model.quantization import Quantization

    model = with_quantization(made(), Quantization())
    with pytest.raises(SettingsError, match="then quantize"):
        taylor_importance(model, losses(model))
    with pytest.raises(SettingsError, match="then quantize"):
        remove(model, Kept(((0,),), ((0,),)))


def test_rows_of_the_vocabulary() -> None:
    torch.manual_seed(0)
    model = AlbertWithHead(made().config.replace(litebert={"head": None}), "mlm").eval()
    old = [0, 1, 2, 3, 4, 9, 30]
    small = keep_rows(model, old, {"pad_token_id": 0})
    new_ids = torch.tensor([2, 5, 6, 3])
    with torch.no_grad():
        a = model.forward_packed(torch.tensor(old)[new_ids], Packing.from_lengths([4])).logits
        b = small.forward_packed(new_ids, Packing.from_lengths([4])).logits
    torch.testing.assert_close(a[:, old], b)  # pyright: ignore
    for wrong in ([], [40], [-1]):
        with pytest.raises(SettingsError, match="must lie in"):
            keep_rows(model, wrong, {})
