"""Quantized folders: each weight once as integers, loaded as what they mean, refused when damaged."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors.numpy import load_file, save_file

from litebert.checkpoint.folder import load_encoder, load_model, save_model
from litebert.checkpoint.int8_pairs import can_saturate, quantize_in_pairs
from litebert.checkpoint.quantized import read_quantized
from litebert.checkpoint.rounded import attach_rounding, quantize_weight
from litebert.errors import CheckpointError, SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.model.packing import Packing
from litebert.model.quantization import Quantization
from litebert.model.resharing import set_depth
from litebert.model.rounding import quantized_layers


def quantized_model(**options: Any) -> AlbertWithHead:
    config = AlbertConfig(
        vocab_size=40,
        embedding_size=7,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=24,
        max_position_embeddings=16,
        litebert={"quantization": Quantization(**options)},  # pyright: ignore[reportArgumentType]
    )
    torch.manual_seed(0)
    model = AlbertWithHead(config, "sequence").eval()
    attach_rounding(model)
    return model


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"weights": "int8"},
        {"weights": "int7"},
        {"embeddings": "int4", "embedding_group": 3},
        {"activations": "static"},
        {"activations": "none"},
    ],
    ids=str,
)
def test_folders_come_back(options: dict[str, Any], tmp_path: Path) -> None:
    model = quantized_model(**options)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert loaded.config.litebert.quantization == Quantization(**options)
    ids = torch.randint(0, 40, (9,))
    with torch.no_grad():
        a = model.forward_packed(ids, Packing.from_lengths([9]))
        b = loaded.forward_packed(ids, Packing.from_lengths([9]))
    torch.testing.assert_close(a.logits, b.logits, atol=1e-6, rtol=1e-6)
    # Saved again, the same integers lie in the file: nothing is rounded twice.
    save_model(loaded, tmp_path / "again")
    first, again = read_quantized(tmp_path / "m"), read_quantized(tmp_path / "again")
    assert first.keys() == again.keys()
    for name, matrix in first.items():
        np.testing.assert_array_equal(matrix.values, again[name].values, err_msg=name)
        np.testing.assert_allclose(matrix.scales, again[name].scales, rtol=1e-6)


def test_every_matrix_is_stored_once_as_integers(tmp_path: Path) -> None:
    model = quantized_model(embeddings="int4")
    save_model(model, tmp_path / "m")
    stored = load_file(tmp_path / "m" / "model.safetensors")
    layers = quantized_layers(model)
    for name in layers:
        assert f"{name}.weight" not in stored
        assert f"{name}.weight.scales" in stored
    assert stored["model.embeddings.token.weight.int4"].shape == (40, 4)
    assert stored["model.encoder.ffns.0.up.weight.int8"].dtype == np.int8
    assert not [n for n in stored if n.startswith("model.encoder.ffns.1")]
    matrices = read_quantized(tmp_path / "m")
    assert len(matrices) == len(layers)
    assert matrices["encoder.ffns.0.up.weight"].limit == 127
    assert not can_saturate(matrices["encoder.ffns.0.up.weight"].values)
    assert matrices["embeddings.token.weight"].limit == 7
    assert matrices["embeddings.position.weight"].limit == 127
    floats = sum(p.numel() * 4 for p in model.parameters())
    assert (tmp_path / "m" / "model.safetensors").stat().st_size < 0.6 * floats + 4000


def test_the_folder_says_that_it_is_ours_alone(tmp_path: Path) -> None:
    save_model(quantized_model(), tmp_path / "m")
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    assert config["model_type"] == "litebert"
    assert config["litebert"]["quantization"] == {}
    transformers = pytest.importorskip("transformers")
    with pytest.raises(ValueError, match="litebert"):
        transformers.AutoConfig.from_pretrained(tmp_path / "m")


def test_folders_of_floats_have_no_integers(model_folder_of_floats: Path) -> None:
    assert read_quantized(model_folder_of_floats) == {}


@pytest.fixture
def model_folder_of_floats(tmp_path: Path) -> Path:
    model = quantized_model()
    plain = AlbertWithHead(model.config.replace(litebert={"quantization": None}), "sequence")
    save_model(plain, tmp_path / "floats")
    return tmp_path / "floats"


Change = Callable[[dict[str, Any]], None]
NAME = "model.encoder.ffns.0.up.weight"


def drop(name: str) -> Change:
    return lambda tensors: tensors.__delitem__(name)


def put(name: str, make: Callable[[Any], Any]) -> Change:
    return lambda tensors: tensors.__setitem__(name, make(tensors.get(name)))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (drop(NAME + ".scales"), "have no scales"),
        (drop(NAME + ".int8"), "scales without integers"),
        (put(NAME, lambda _: np.zeros((24, 16), np.float32)), "given twice"),
        (put(NAME + ".int4", lambda _: np.zeros((24, 8), np.uint8)), "given twice"),
        (put(NAME + ".scales", lambda a: a * np.float32("nan")), "positive and finite"),
        (put(NAME + ".scales", lambda a: -a), "positive and finite"),
        (put(NAME + ".scales", lambda a: a[:3]), "expected F32 of"),
        (put(NAME + ".scales", lambda a: a.astype(np.float64)), "expected F32 of"),
        (put(NAME + ".int8", lambda a: a.astype(np.int16)), "expected a matrix of I8"),
        (put(NAME + ".int8", lambda a: a.reshape(-1)), "expected a matrix of I8"),
        (put(NAME + ".int8", lambda a: np.full_like(a, 64)), "magnitudes up to 63"),
        (put(NAME + ".int8", lambda a: np.full_like(a, -128)), "magnitudes up to 63"),
        (put(NAME + ".int8", lambda a: a[:, :8].copy()), "another shape"),
        (put("model.embeddings.token.weight.int4", lambda a: a[:, :2].copy()), "expected a matrix"),
        (put("model.extra.weight.int8", lambda _: np.zeros((2, 2), np.int8)), "have no scales"),
    ],
)
def test_damaged_folders_are_refused(change: Change, words: str, tmp_path: Path) -> None:
    save_model(quantized_model(embeddings="int4", weights="int7"), tmp_path / "m")
    path = tmp_path / "m" / "model.safetensors"
    tensors: dict[str, Any] = load_file(path)
    change(tensors)
    save_file(tensors, path)
    for load in (load_model, load_encoder):
        with pytest.raises(CheckpointError, match=words):
            load(tmp_path / "m")


def test_configuration_and_weights_must_agree(tmp_path: Path, model_folder_of_floats: Path) -> None:
    save_model(quantized_model(), tmp_path / "m")
    config = tmp_path / "m" / "config.json"
    values = json.loads(config.read_text())
    values["litebert"]["quantization"] = None
    config.write_text(json.dumps(values))
    with pytest.raises(CheckpointError, match="unexpected"):
        load_model(tmp_path / "m")
    config = model_folder_of_floats / "config.json"
    values = json.loads(config.read_text()) | {"model_type": "litebert"}
    values["litebert"] = values.get("litebert", {}) | {"quantization": {}}
    config.write_text(json.dumps(values))
    with pytest.raises(CheckpointError, match="there are no integers"):
        load_model(model_folder_of_floats)
    values["litebert"]["quantization"] = {"weights": "int3"}
    config.write_text(json.dumps(values))
    with pytest.raises(CheckpointError, match="weights"):
        load_model(model_folder_of_floats)


def test_static_ranges_follow_the_depth() -> None:
    model = quantized_model(activations="static")
    assert set_depth(model, 2).model.encoder.activation_ranges.shape[0] == 2  # pyright: ignore
    with pytest.raises(SettingsError, match="static activation ranges of 3 steps"):
        set_depth(model, 4)


@given(
    hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 5), st.integers(1, 40)),
        elements=st.floats(-8, 8, width=32, allow_subnormal=False),
    )
)
def test_integers_are_found_again_and_not_rounded_twice(weight: np.ndarray) -> None:
    rules = Quantization()
    once = quantize_weight("encoder.ffns.0.up", weight, rules)
    assert not can_saturate(once.values)
    again = quantize_weight("encoder.ffns.0.up", once.dequantize(), rules)
    np.testing.assert_allclose(again.dequantize(), once.dequantize(), rtol=1e-6, atol=1e-30)


def test_weights_off_the_grid_are_rounded_by_the_rule() -> None:
    weight = np.random.default_rng(0).standard_normal((6, 50)).astype(np.float32)
    found = quantize_weight("encoder.ffns.0.up", weight, Quantization())
    np.testing.assert_array_equal(found.values, quantize_in_pairs(weight).values)
    with pytest.raises(CheckpointError, match="NaN"):
        quantize_weight("encoder.ffns.0.up", weight * np.nan, Quantization())
