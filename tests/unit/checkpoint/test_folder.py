from __future__ import annotations

import json
import logging
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file

from litebert.checkpoint import matching
from litebert.checkpoint.folder import load_encoder, load_model, save_model, saved_head
from litebert.errors import CheckpointError, SettingsError
from litebert.model.head_kinds import HEADS

Make = Callable[..., Any]


def states_equal(first: Any, second: Any) -> bool:
    a, b = first.state_dict(), second.state_dict()
    return list(a) == list(b) and all(torch.equal(a[name], b[name]) for name in a)


def change_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    values = json.loads(path.read_text()) | changes
    path.write_text(json.dumps({key: value for key, value in values.items() if value != "DELETE"}))


def change_weights(folder: Path, change: Callable[[dict[str, torch.Tensor]], object]) -> None:
    path = folder / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path, {"format": "pt"})


@pytest.mark.parametrize("head", sorted(HEADS))
def test_every_head_comes_back(tmp_path: Path, make_model: Make, head: str) -> None:
    model = make_model(head)
    save_model(model, tmp_path / "m")
    loaded = load_model(tmp_path / "m")
    assert loaded.head == head == saved_head(tmp_path / "m")
    assert loaded.config == model.config
    assert not loaded.training
    assert states_equal(model, loaded)
    assert all(parameter.requires_grad for parameter in loaded.parameters())
    assert {parameter.device.type for parameter in loaded.parameters()} == {"cpu"}


@pytest.mark.parametrize(
    "changes",
    [
        {"litebert": {"sharing": "all"}, "num_hidden_groups": 1},
        {"litebert": {"sharing": "none"}, "num_hidden_groups": 4},
        {"litebert": {"sharing": "attention_only"}},
        {"litebert": {"sharing": "ffn_only"}},
        {"litebert": {"sharing": "cycle"}},
        {"litebert": {"sharing": "cycle_rev"}},
        {"litebert": {"sharing": "sandwich"}},
        {"litebert": {"num_key_value_heads": 1}},
        {"embedding_size": 8},
        {"embedding_size": 8, "litebert": {"project_embeddings": True}},
    ],
    ids=str,
)
@pytest.mark.parametrize("head", [None, "pretraining"])
def test_every_plan_comes_back(
    tmp_path: Path, make_model: Make, changes: dict[str, Any], head: str | None
) -> None:
    model = make_model(head, **changes)
    save_model(model, tmp_path / "m")
    raw = json.loads((tmp_path / "m" / "config.json").read_text())
    names = set(load_file(tmp_path / "m" / "model.safetensors"))
    assert raw["model_type"] == model.config.model_type
    assert (set(model.state_dict()) == names) == (raw["model_type"] == "litebert")
    loaded = load_encoder(tmp_path / "m") if head is None else load_model(tmp_path / "m")
    assert states_equal(model, loaded)


def test_an_encoder_is_loaded_from_any_head_and_drops_it(
    tmp_path: Path, make_model: Make, caplog: pytest.LogCaptureFixture
) -> None:
    model = make_model("pretraining")
    save_model(model, tmp_path / "m")
    with caplog.at_level(logging.INFO):
        encoder = load_encoder(tmp_path / "m")
    assert states_equal(model.model, encoder)
    assert "not used by this model: mlm, sentence_order" in caplog.text
    assert encoder.config.litebert.head is None


def test_the_pooler_follows_the_folder_and_is_never_made_up(
    tmp_path: Path, make_model: Make
) -> None:
    save_model(make_model("mlm"), tmp_path / "without")
    save_model(make_model("sequence"), tmp_path / "with")
    assert load_encoder(tmp_path / "without").pooler is None
    assert load_encoder(tmp_path / "with").pooler is not None
    assert load_encoder(tmp_path / "with", add_pooler=False).pooler is None
    with pytest.raises(CheckpointError, match=r"pooler\.weight.*allow_missing_pooler"):
        load_encoder(tmp_path / "without", add_pooler=True)
    fresh = load_encoder(tmp_path / "without", allow_missing_pooler=True)
    assert fresh.pooler is not None
    assert float(fresh.pooler.weight.detach().abs().sum()) > 0
    assert float(fresh.pooler.bias.detach().abs().sum()) == 0


def test_half_a_pooler_is_missing_weights(saved: Path) -> None:
    change_weights(saved, lambda tensors: tensors.pop("albert.pooler.bias"))
    with pytest.raises(CheckpointError, match=r"1 weights are missing: pooler\.bias"):
        load_encoder(saved)


def test_a_mean_embedding_needs_no_pooler_but_a_pooled_one_does(
    tmp_path: Path, make_model: Make
) -> None:
    save_model(make_model("mlm"), tmp_path / "m")
    mean = load_model(tmp_path / "m", "embedding", changes={"litebert": {"pooling": "mean"}})
    assert mean.model.pooler is None
    with pytest.raises(CheckpointError, match="allow_missing_pooler"):
        load_model(tmp_path / "m", "embedding")


def test_a_new_head_needs_permission(
    tmp_path: Path, make_model: Make, caplog: pytest.LogCaptureFixture
) -> None:
    pretrained = make_model("pretraining")
    save_model(pretrained, tmp_path / "m")
    labels = {"id2label": {0: "a", 1: "b", 2: "c"}}
    with pytest.raises(CheckpointError, match=r"heads\.sequence\.classifier.*allow_new_head"):
        load_model(tmp_path / "m", "sequence", changes=labels)
    loaded = load_model(tmp_path / "m", "sequence", allow_new_head=True, changes=labels)
    assert states_equal(pretrained.model, loaded.model)
    weight = loaded.heads["sequence"].classifier.weight.detach()
    assert weight.shape == (3, 8)
    assert 0 < float(weight.abs().max()) <= 2 * loaded.config.initializer_range
    assert "new, untrained weights for: sequence" in caplog.text


def test_a_new_mlm_head_is_whole(tmp_path: Path, make_model: Make) -> None:
    save_model(make_model(None), tmp_path / "m")
    loaded = load_model(tmp_path / "m", "mlm", allow_new_head=True)
    head = loaded.heads["mlm"]
    assert float(head.bias.detach().abs().sum()) == 0
    assert head.norm.weight.detach().tolist() == [1.0] * 4
    assert float(head.dense.weight.detach().abs().sum()) > 0


def test_a_head_of_another_size_is_replaced_only_with_permission(saved: Path) -> None:
    labels = {"id2label": {0: "a", 1: "b", 2: "c"}}
    with pytest.raises(CheckpointError, match=r"2 weights have another shape: classifier\.weight"):
        load_model(saved, changes=labels)
    loaded = load_model(saved, changes=labels, allow_new_head=True)
    assert loaded.heads["sequence"].classifier.weight.shape == (3, 8)


def test_half_a_head_is_replaced_whole(saved: Path) -> None:
    change_weights(saved, lambda tensors: tensors["classifier.weight"].fill_(9.0))
    change_weights(saved, lambda tensors: tensors.pop("classifier.bias"))
    with pytest.raises(CheckpointError, match="allow_new_head"):
        load_model(saved)
    loaded = load_model(saved, allow_new_head=True)
    assert float(loaded.heads["sequence"].classifier.weight.detach().max()) < 1


def test_a_head_of_the_same_published_name_is_not_taken_for_another(
    tmp_path: Path, make_model: Make
) -> None:
    save_model(make_model("token"), tmp_path / "m")
    with pytest.raises(CheckpointError, match="allow_new_head; and for a new pooler"):
        load_model(tmp_path / "m", "sequence")
    save_model(make_model("choice"), tmp_path / "c")
    with pytest.raises(CheckpointError, match=r"heads\.sequence"):
        load_model(tmp_path / "c", "sequence")


def test_a_folder_that_names_no_head(tmp_path: Path, make_model: Make, saved: Path) -> None:
    save_model(make_model(None), tmp_path / "m")
    with pytest.raises(CheckpointError, match="names no head"):
        load_model(tmp_path / "m")
    change_config(saved, litebert="DELETE", architectures=["AlbertForSomethingElse"])
    assert saved_head(saved) is None
    with pytest.raises(CheckpointError, match="names no head"):
        load_model(saved)
    assert load_model(saved, "sequence").head == "sequence"
    change_config(saved, architectures=["AlbertForSequenceClassification"])
    assert load_model(saved).head == "sequence"
    change_config(saved, architectures="AlbertModel")
    assert saved_head(saved) is None


def test_settings_of_the_caller_and_of_the_folder_are_told_apart(
    saved: Path, tmp_path: Path, make_model: Make
) -> None:
    with pytest.raises(SettingsError, match="unknown head"):
        load_model(saved, "sequnce")
    with pytest.raises(SettingsError):
        load_model(saved, changes={"hidden_size": -1})
    save_model(make_model("span"), tmp_path / "span")
    change_config(tmp_path / "span", id2label={"0": "a"}, label2id={"a": 0})
    with pytest.raises(CheckpointError, match=r"config\.json.*span head"):
        load_model(tmp_path / "span")
    with pytest.raises(SettingsError, match="span head"):
        load_model(tmp_path / "span", "span")


def test_missing_and_unexpected_weights_are_named_and_counted(saved: Path) -> None:
    prefix = "albert.encoder.albert_layer_groups.0.albert_layers."

    def damage(tensors: dict[str, torch.Tensor]) -> None:
        for name in ("0.attention.query.weight", "1.ffn.bias"):
            tensors[f"{name}.elsewhere"] = tensors.pop(prefix + name)
        tensors["albert.encoder.albert_layer_groups.2.albert_layers.0.ffn.bias"] = torch.ones(6)
        tensors["classifier.extra.weight"] = torch.ones(1)

    change_weights(saved, damage)
    with pytest.raises(CheckpointError) as caught:
        load_model(saved)
    message = str(caught.value)
    assert message.startswith(str(saved / "model.safetensors"))
    assert (
        "2 weights are missing: encoder.attentions.0.query.weight, encoder.ffns.1.up.bias"
        in message
    )
    assert "4 weights are unexpected" in message
    assert "and 1 more" in message


def test_weights_of_another_shape_are_named(saved: Path) -> None:
    change_weights(saved, lambda t: t.update({"albert.pooler.weight": torch.ones(8, 9)}))
    with pytest.raises(
        CheckpointError, match=r"albert\.pooler\.weight is \[8, 9\], expected \[8, 8\]"
    ):
        load_model(saved)


def test_weights_given_twice(saved: Path) -> None:
    change_weights(saved, lambda t: t.update({"pooler.bias": torch.ones(8)}))
    with pytest.raises(CheckpointError, match=r"given twice: pooler\.bias"):
        load_model(saved)


def test_a_tied_decoder_may_be_repeated_but_not_differ(tmp_path: Path, make_model: Make) -> None:
    folder = tmp_path / "m"
    model = make_model("mlm")
    save_model(model, folder)

    def repeat(tensors: dict[str, torch.Tensor]) -> None:
        table = tensors["albert.embeddings.word_embeddings.weight"]
        tensors["predictions.decoder.weight"] = table.clone()
        tensors["predictions.decoder.bias"] = tensors["predictions.bias"].clone()
        tensors["albert.embeddings.position_ids"] = torch.arange(12)[None]

    change_weights(folder, repeat)
    assert states_equal(load_model(folder), model)
    change_weights(folder, lambda tensors: tensors["predictions.decoder.weight"].add_(1))
    with pytest.raises(CheckpointError, match="are one weight of an ALBERT but differ"):
        load_model(folder)
    assert load_encoder(folder) is not None  # the decoder is not part of it


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_number_formats_load_into_float32(saved: Path, dtype: torch.dtype) -> None:
    def convert(tensors: dict[str, torch.Tensor]) -> None:
        for name in tensors:
            tensors[name] = tensors[name].to(dtype)

    original = load_model(saved)
    change_weights(saved, convert)
    loaded = load_model(saved)
    assert {parameter.dtype for parameter in loaded.parameters()} == {torch.float32}
    for name, tensor in loaded.state_dict().items():
        assert torch.equal(tensor, original.state_dict()[name].to(dtype).float())


def test_integers_are_no_weights(saved: Path) -> None:
    change_weights(saved, lambda t: t.update({"albert.pooler.bias": torch.ones(8).to(torch.int8)}))
    with pytest.raises(CheckpointError, match=r"albert\.pooler\.bias is I8"):
        load_model(saved)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_are_refused(saved: Path, value: float) -> None:
    change_weights(saved, lambda tensors: tensors["albert.pooler.bias"].fill_(value))
    with pytest.raises(CheckpointError, match=r"albert\.pooler\.bias.*not finite"):
        load_model(saved)


def test_large_finite_numbers_are_fine(saved: Path) -> None:
    change_weights(saved, lambda tensors: tensors["albert.pooler.bias"].fill_(3e38))
    assert float(load_model(saved).model.pooler.bias.detach().max()) == pytest.approx(3e38)


def test_early_names_load(saved: Path) -> None:
    original = load_model(saved)

    def age(tensors: dict[str, torch.Tensor]) -> None:
        for name in list(tensors):
            old = name.replace("LayerNorm.weight", "LayerNorm.gamma")
            tensors[old.replace("LayerNorm.bias", "LayerNorm.beta")] = tensors.pop(name)

    change_weights(saved, age)
    assert states_equal(load_model(saved), original)


def test_sharded_weights_load(saved: Path) -> None:
    original = load_model(saved)
    tensors = load_file(saved / "model.safetensors")
    (saved / "model.safetensors").unlink()
    names = sorted(tensors)
    parts = {"model-1.safetensors": names[:9], "model-2.safetensors": names[9:]}
    for shard, inside in parts.items():
        save_file({name: tensors[name] for name in inside}, saved / shard, {"format": "pt"})
    (saved / "model.safetensors.index.json").write_text(
        json.dumps({"weight_map": {n: shard for shard, inside in parts.items() for n in inside}})
    )
    assert states_equal(load_model(saved), original)


def test_equal_sizes_with_a_published_projection(tmp_path: Path, make_model: Make) -> None:
    """Official code has no projection where E = H, transformers always has one."""
    model = make_model("sequence", embedding_size=8, litebert={"project_embeddings": True})
    save_model(model, tmp_path / "m")
    change_config(tmp_path / "m", litebert="DELETE")
    assert states_equal(load_model(tmp_path / "m"), model)


def test_a_published_folder_that_transformers_reads_differently_is_logged(
    tmp_path: Path, make_model: Make, caplog: pytest.LogCaptureFixture
) -> None:
    model = make_model(None, embedding_size=8)
    save_model(model, tmp_path / "m")
    change_config(tmp_path / "m", model_type="albert", litebert="DELETE")

    def publish(tensors: dict[str, torch.Tensor]) -> None:
        from litebert.checkpoint.keys import to_published

        for name in list(tensors):
            tensors[to_published(name, inner=2, head=None)] = tensors.pop(name)

    change_weights(tmp_path / "m", publish)
    assert states_equal(load_encoder(tmp_path / "m"), model)
    assert "another function" in caplog.text


def test_extra_files_do_not_matter(saved: Path) -> None:
    (saved / "notes.txt").write_text("mine")
    (saved / "onnx").mkdir()
    os.mkfifo(saved / "pipe")
    assert load_model(saved).head == "sequence"


# Hostile folders


def test_not_a_folder(tmp_path: Path, saved: Path) -> None:
    for path in (tmp_path / "none", saved / "config.json"):
        with pytest.raises(CheckpointError, match="expected a model folder"):
            load_model(path)
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"has no config\.json"):
        load_encoder(tmp_path / "empty")


@pytest.mark.parametrize(
    "text",
    [b"not json", b"", b"[]", b'{"a":' * 100_000, b"\xff\xfe\x00", b'{"vocab_size": 1e999}', b"{}"],
    ids=["text", "empty", "list", "deep", "binary", "infinite", "no sizes"],
)
def test_a_config_that_is_none(saved: Path, text: bytes) -> None:
    (saved / "config.json").write_bytes(text)
    with pytest.raises(CheckpointError, match=r"config\.json"):
        load_model(saved)


def test_a_giant_config(saved: Path) -> None:
    with (saved / "config.json").open("ab") as file:
        file.truncate(1 << 33)
    with pytest.raises(CheckpointError, match="allowed are"):
        load_model(saved)
    with pytest.raises(CheckpointError, match="allowed are"):
        saved_head(saved)


@pytest.mark.parametrize(
    "changes",
    [
        {"num_hidden_layers": 10**9},
        {"hidden_size": 2**40},
        {"vocab_size": 10**15},
        {"num_hidden_layers": True},
        {"id2label": {"7": "a"}},
        {"model_type": "bert"},
        {"position_embedding_type": "relative_key"},
        {"litebert": {"format_version": 99}},
    ],
    ids=str,
)
def test_a_config_out_of_bounds(saved: Path, changes: dict[str, Any]) -> None:
    change_config(saved, **changes)
    with pytest.raises(CheckpointError, match=r"config\.json|shape|needs at least|missing"):
        load_model(saved)


@pytest.mark.parametrize(
    "changes",
    [
        {"vocab_size": 2_000_000, "embedding_size": 16_384},
        {"hidden_size": 16_384, "intermediate_size": 131_072},
        {"num_hidden_layers": 256, "num_hidden_groups": 256, "inner_group_num": 64},
    ],
    ids=["vocabulary", "width", "blocks"],
)
def test_a_config_of_a_huge_model_is_refused_before_anything_is_built(
    saved: Path, changes: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    change_config(saved, **changes)
    monkeypatch.setattr("litebert.checkpoint.folder.find_weights", lambda *a, **k: pytest.fail())
    with pytest.raises(CheckpointError, match="needs at least"):
        load_model(saved)


def test_a_config_of_many_small_blocks_is_refused_before_anything_is_built(
    tmp_path: Path, make_model: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    save_model(make_model("sequence", vocab_size=50_000), tmp_path / "m")
    change_config(tmp_path / "m", num_hidden_layers=64, num_hidden_groups=64)
    monkeypatch.setattr(
        "litebert.checkpoint.folder.AlbertWithHead", lambda *a, **k: pytest.fail("built")
    )
    with pytest.raises(CheckpointError, match=r"holds 75 tensors.*have 2048"):
        load_model(tmp_path / "m")


def test_a_model_that_exceeds_the_memory_is_refused_before_it_is_reserved(
    saved: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matching, "available_memory_bytes", lambda: 5000)
    monkeypatch.setattr("litebert.checkpoint.folder.reserve", lambda model: pytest.fail("reserved"))
    with pytest.raises(CheckpointError, match="bytes of memory to load, 5,000 are free"):
        load_model(saved)


def test_no_limit_where_the_memory_is_unknown(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "available_memory_bytes", lambda: None)
    assert load_model(saved)


def test_layer_norm_before_each_sub_layer_is_another_model(saved: Path) -> None:
    change_config(saved, ln_type="postln")
    assert load_model(saved)
    change_config(saved, ln_type="preln")
    with pytest.raises(CheckpointError, match="preln"):
        load_model(saved)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "spiece.model"])
def test_what_is_no_file_in_a_files_place(saved: Path, tmp_path: Path, name: str) -> None:
    path, outside = saved / name, tmp_path / "outside"
    original = path.read_bytes() if path.exists() else b""
    for make in (
        lambda: os.mkfifo(path),
        path.mkdir,
        lambda: path.symlink_to(outside),
        lambda: path.symlink_to(path),
        lambda: path.symlink_to("/dev/zero"),
    ):
        path.unlink(missing_ok=True)
        outside.write_bytes(original)
        make()
        with pytest.raises(CheckpointError, match=str(path)):
            load_model(saved)
        path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()


@pytest.mark.parametrize("name", ["tokenizer.json", "spiece.model", "vocab.txt"])
def test_a_giant_tokenizer(saved: Path, name: str) -> None:
    with (saved / name).open("wb") as file:
        file.truncate((50 << 20) + 1)
    with pytest.raises(CheckpointError, match=rf"{name}.*allowed are"):
        load_model(saved)


def test_a_file_that_may_not_be_read(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open

    def refuse(path: Any, *arguments: Any, **options: Any) -> int:
        if str(path).endswith("model.safetensors"):
            raise PermissionError(13, "Permission denied")
        return real(path, *arguments, **options)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(CheckpointError, match=r"model\.safetensors.*Permission denied"):
        load_model(saved)


@pytest.mark.slow
def test_hostile_folders_take_little_memory(tmp_path: Path, make_model: Make) -> None:
    """Each is refused in a process that may take 300 MB beyond what it has after its imports."""
    base = tmp_path / "base"
    save_model(make_model("sequence"), base)

    def variant(name: str) -> Path:
        return Path(shutil.copytree(base, tmp_path / name))

    with (variant("header") / "model.safetensors").open("wb") as file:
        file.write((1 << 36).to_bytes(8, "little"))
        file.truncate(1 << 40)
    wide = variant("lists") / "model.safetensors"
    body = b'{"a":[' + b"[]," * 33_000_000 + b"[]]}"
    wide.write_bytes(len(body).to_bytes(8, "little") + body)
    change_config(variant("config"), vocab_size=2_000_000, embedding_size=16_384)
    with (variant("tokenizer") / "tokenizer.json").open("wb") as file:
        file.truncate(1 << 36)
    script = """
import resource, sys
from pathlib import Path
from litebert.checkpoint.folder import load_model
from litebert.errors import CheckpointError
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + 300_000_000,) * 2)
for folder in sys.argv[1:]:
    try:
        load_model(folder)
    except CheckpointError as error:
        print("refused", error)
"""
    if not hasattr(resource, "RLIMIT_AS") or not Path("/proc/self/statm").exists():
        pytest.skip("no limit of the address space on this system")
    names = ("header", "lists", "config", "tokenizer")
    done = subprocess.run(
        [sys.executable, "-c", script, *(str(tmp_path / name) for name in names)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("refused") == len(names), done.stdout
