"""Quantization of a model: calibration, growth of the error, refusals; and a real trained encoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from litebert.checkpoint.folder import load_encoder, save_model
from litebert.compress.quantize import calibrate, depth_errors, with_quantization
from litebert.errors import SettingsError
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.model.packing import Packing
from litebert.model.quantization import Quantization


def plain(**options: Any) -> AlbertWithHead:
    config = AlbertConfig(
        vocab_size=40,
        embedding_size=8,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=16,
        initializer_range=0.3,
        litebert=options,  # pyright: ignore[reportArgumentType]
    )
    torch.manual_seed(0)
    return AlbertWithHead(config, "sequence").eval()


BATCH = (
    torch.randint(0, 40, (30,), generator=torch.Generator().manual_seed(1)),
    Packing.from_lengths([14, 16]),
)


@pytest.mark.parametrize(
    "quantization",
    [
        Quantization(),
        Quantization(activations="static"),
        Quantization(activations="none"),
        Quantization(embeddings="int4", embedding_group=4),
    ],
    ids=str,
)
def test_errors_are_small_and_told_by_depth(quantization: Quantization, tmp_path: Path) -> None:
    model = plain()
    new = with_quantization(model, quantization)
    calibrate(new, [BATCH])
    errors = depth_errors(model, new, [BATCH])
    assert [error.depth for error in errors] == [0, 1, 2, 3]
    assert all(error.cosine_min > 0.9 and error.relative < 0.35 for error in errors)
    assert all(error.cosine_min <= error.cosine_mean <= 1.000001 for error in errors)
    same = depth_errors(model, model, [BATCH])
    assert all(error.relative == 0.0 for error in same)
    save_model(new, tmp_path / "m")
    loaded = load_encoder(tmp_path / "m")
    for a, b in zip(errors, depth_errors(model, loaded, [BATCH]), strict=True):
        assert a.relative == pytest.approx(b.relative, rel=0.05)


def outlying() -> AlbertWithHead:
    """As trained encoders are: one channel of every hidden state is large and nearly constant."""
    model = plain()
    with torch.no_grad():
        for part in (*model.model.encoder.attentions, *model.model.encoder.ffns):
            part.norm.bias[3] = 40.0  # pyright: ignore
    return model


def test_centers_take_large_constant_channels_off() -> None:
    model = outlying()
    errors: list[float] = []
    for centers in (False, True):
        new = with_quantization(model, Quantization(centers=centers))
        calibrate(new, [BATCH])
        worst = depth_errors(model, new, [BATCH])[-1]
        # The channel itself hides the rest in a cosine over all channels, so compare lengths.
        errors.append(worst.relative)
    assert errors[1] < 0.6 * errors[0]


def test_the_bias_takes_up_the_mean_error_of_weights() -> None:
    model = outlying()
    new = with_quantization(model, Quantization())
    before = new.model.encoder.ffns[0].up.bias.clone()  # pyright: ignore
    calibrate(new, [BATCH])
    after = new.model.encoder.ffns[0].up.bias  # pyright: ignore
    assert not torch.equal(before, after)


def test_each_depth_has_its_own_static_range() -> None:
    new = with_quantization(plain(), Quantization(activations="static"))
    calibrate(new, [BATCH])
    ranges = new.model.encoder.activation_ranges
    assert ranges is not None and (ranges[..., 0] <= 0).all() and (ranges[..., 1] >= 0).all()
    assert not torch.equal(ranges[0], ranges[1])
    rounding: Any = new.model.encoder.rounding
    assert rounding.is_on and rounding.watcher is None


def test_gated_models_and_models_without_pooler_are_quantized() -> None:
    model = plain(ffn="geglu")
    model.model.pooler = None
    new = with_quantization(model, Quantization())
    assert new.model.pooler is None
    calibrate(new, [BATCH])
    assert depth_errors(model, new, [BATCH])[-1].cosine_min > 0.9


def test_what_cannot_be_done_is_refused() -> None:
    model = plain()
    new = with_quantization(model, Quantization())
    empty = (torch.empty(0, dtype=torch.int64), Packing.from_lengths([0]))
    with pytest.raises(SettingsError, match="quantized already"):
        with_quantization(new, Quantization())
    with pytest.raises(SettingsError, match="needs texts"):
        calibrate(new, [empty])
    with pytest.raises(SettingsError, match="only a quantized model"):
        calibrate(model, [BATCH])
    with pytest.raises(SettingsError, match="no text to compare"):
        depth_errors(model, new, [])
    shallow = AlbertModel(model.config.replace(num_hidden_layers=2))
    with pytest.raises(SettingsError, match="compare equal ones"):
        depth_errors(model, shallow, [BATCH])


def test_a_real_trained_encoder_keeps_its_vectors(shared: Path, tmp_path: Path) -> None:
    """12 depths of one block: every token of the references keeps a cosine of 0.995."""
    from safetensors.torch import load_file

    folder = shared / "models" / "kokoro-albert"
    reference = load_file(folder / "reference.safetensors")
    lengths = reference["attention_mask"].sum(1).tolist()
    rows = [row[:length] for row, length in zip(reference["input_ids"], lengths, strict=True)]
    batch = (torch.cat(rows), Packing.from_lengths(lengths))
    model = load_encoder(folder)
    new = with_quantization(model, Quantization())
    calibrate(new, [batch])
    errors = depth_errors(model, new, [batch])
    assert len(errors) == 13 and errors[12].cosine_min >= 0.995, errors[12]
    save_model(new, tmp_path / "m")
    size = (tmp_path / "m" / "model.safetensors").stat().st_size
    assert size < 0.27 * (folder / "model.safetensors").stat().st_size
