"""Model folders go to transformers and back, byte for byte, and answer the same."""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from litebert.checkpoint.folder import load_encoder, load_model, save_model
from litebert.checkpoint.keys import CLASSIFIER_HEADS, resolve
from litebert.checkpoint.pretrained import AlbertModel, AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.text.tokenizer import Tokenizer

transformers = pytest.importorskip("transformers")
pytestmark = pytest.mark.parity

FP32_ATOL = 1e-5
"""Sums of products in another order; values are around 1."""

HEADS = {
    "AlbertModel": None,
    "AlbertForMaskedLM": "mlm",
    "AlbertForPreTraining": "pretraining",
    "AlbertForSequenceClassification": "sequence",
    "AlbertForTokenClassification": "token",
    "AlbertForQuestionAnswering": "span",
    "AlbertForMultipleChoice": "choice",
}
SHAPES = [(1, 1), (2, 1), (1, 2), (2, 2), (4, 1)]


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Progress bars and deprecations of transformers are its own matter."""
    transformers.utils.logging.disable_progress_bar()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def theirs(name: str, groups: int = 1, inner: int = 1, **changes: Any) -> Any:
    torch.manual_seed(7)
    config = transformers.AlbertConfig(
        **{
            "vocab_size": 64,
            "embedding_size": 8,
            "hidden_size": 16,
            "num_hidden_layers": 4,
            "num_hidden_groups": groups,
            "inner_group_num": inner,
            "num_attention_heads": 2,
            "intermediate_size": 24,
            "max_position_embeddings": 32,
            "initializer_range": 0.3,
        }
        | changes
    )
    model = getattr(transformers, name)(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim == 1:  # biases start at 0, which would hide a mix-up
                parameter.normal_(std=0.3)
    return model


def ours_from(folder: Path, name: str) -> Any:
    kind = AlbertModel if HEADS[name] is None else AlbertWithHead
    return kind.from_pretrained(folder)


def batch(name: str) -> dict[str, torch.Tensor]:
    torch.manual_seed(1)
    ids = torch.randint(5, 64, (2, 9))
    mask = torch.ones_like(ids)
    mask[1, 6:] = 0
    types = torch.zeros_like(ids)
    types[:, 4:] = 1
    values = {"input_ids": ids, "attention_mask": mask, "token_type_ids": types}
    if name == "AlbertForMultipleChoice":
        values = {key: value[None] for key, value in values.items()}
    return values


def answers(model: Any, name: str) -> list[torch.Tensor]:
    """Every output of a model, on real tokens only."""
    inputs = batch(name)
    mask = inputs["attention_mask"].bool()
    with torch.no_grad():
        output = model(**inputs)
    if name == "AlbertModel":
        return [output.last_hidden_state[mask], output.pooler_output]
    if name == "AlbertForPreTraining":
        if isinstance(model, AlbertWithHead):
            return [output.logits["mlm"][mask], output.logits["sentence_order"]]
        return [output.prediction_logits[mask], output.sop_logits]
    if name == "AlbertForQuestionAnswering":
        if isinstance(model, AlbertWithHead):
            return [output.logits[..., 0][mask], output.logits[..., 1][mask]]
        return [output.start_logits[mask], output.end_logits[mask]]
    return [output.logits[mask] if output.logits.shape[:2] == mask.shape else output.logits]


@pytest.mark.parametrize(("groups", "inner"), SHAPES)
@pytest.mark.parametrize("name", HEADS)
def test_a_folder_survives_the_round_trip_byte_for_byte(
    tmp_path: Path, name: str, groups: int, inner: int
) -> None:
    reference = theirs(name, groups, inner)
    reference.save_pretrained(tmp_path / "theirs")
    ours = ours_from(tmp_path / "theirs", name)
    ours.save_pretrained(tmp_path / "ours")
    first = (tmp_path / "theirs" / "model.safetensors").read_bytes()
    assert (tmp_path / "ours" / "model.safetensors").read_bytes() == first
    again, info = getattr(transformers, name).from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    assert not any(info.values()), info
    before, after = reference.state_dict(), again.state_dict()
    assert list(before) == list(after)
    assert all(torch.equal(before[key], after[key]) for key in before)
    assert {again.dtype} == {torch.float32}
    for found, expected in zip(answers(ours, name), answers(again.eval(), name), strict=True):
        torch.testing.assert_close(found, expected, atol=FP32_ATOL, rtol=0)


@pytest.mark.parametrize("name", HEADS)
def test_auto_classes_find_the_model(tmp_path: Path, name: str) -> None:
    config = AlbertConfig.from_dict(theirs(name).config.to_dict())
    torch.manual_seed(0)
    head = HEADS[name]
    model = AlbertModel(config) if head is None else AlbertWithHead(config, head)
    model.eval().save_pretrained(tmp_path / "m")
    auto = {
        "AlbertModel": "AutoModel",
        "AlbertForMaskedLM": "AutoModelForMaskedLM",
        "AlbertForPreTraining": "AutoModelForPreTraining",
        "AlbertForSequenceClassification": "AutoModelForSequenceClassification",
        "AlbertForTokenClassification": "AutoModelForTokenClassification",
        "AlbertForQuestionAnswering": "AutoModelForQuestionAnswering",
        "AlbertForMultipleChoice": "AutoModelForMultipleChoice",
    }[name]
    found, info = getattr(transformers, auto).from_pretrained(
        tmp_path / "m", output_loading_info=True
    )
    assert type(found).__name__ == name
    assert not any(info.values()), info
    for a, b in zip(answers(model, name), answers(found.eval(), name), strict=True):
        torch.testing.assert_close(a, b, atol=FP32_ATOL, rtol=0)


@pytest.mark.parametrize(("groups", "inner"), SHAPES)
@pytest.mark.parametrize("name", HEADS)
def test_every_published_key_has_one_name_of_ours(name: str, groups: int, inner: int) -> None:
    keys = list(theirs(name, groups, inner).state_dict())
    classifier = HEADS[name] if HEADS[name] in CLASSIFIER_HEADS else None
    found = resolve(keys, inner=inner, classifier=classifier, own_layout=False)
    assert not found.unknown
    assert not found.repeated
    assert sorted(key for copies in found.sources.values() for key in copies) == sorted(keys)
    tied = {key for key in keys if key.startswith("predictions.decoder.")}
    assert len(found.sources) == len(keys) - len(tied)


def test_tied_weights_that_are_stored_twice_load(tmp_path: Path) -> None:
    """As releases before safetensors did, which kept the decoder."""
    from safetensors.torch import save_file

    reference = theirs("AlbertForMaskedLM")
    reference.save_pretrained(tmp_path / "m")
    everything = {key: value.clone() for key, value in reference.state_dict().items()}
    save_file(everything, tmp_path / "m" / "model.safetensors", {"format": "pt"})
    ours = load_model(tmp_path / "m")
    for found, expected in zip(
        answers(AlbertWithHead.from_pretrained(tmp_path / "m"), "AlbertForMaskedLM"),
        answers(reference, "AlbertForMaskedLM"),
        strict=True,
    ):
        torch.testing.assert_close(found, expected, atol=FP32_ATOL, rtol=0)
    assert ours.head == "mlm"


def test_their_shards_load(tmp_path: Path) -> None:
    reference = theirs("AlbertForPreTraining", 2, 2)
    reference.save_pretrained(tmp_path / "m", max_shard_size="8KB")
    assert not (tmp_path / "m" / "model.safetensors").exists()
    save_model(load_model(tmp_path / "m"), tmp_path / "m")
    assert [path.name for path in (tmp_path / "m").glob("model*")] == ["model.safetensors"]
    again, info = transformers.AlbertForPreTraining.from_pretrained(
        tmp_path / "m", output_loading_info=True
    )
    assert not any(info.values())
    assert all(
        torch.equal(value, again.state_dict()[key]) for key, value in reference.state_dict().items()
    )


def test_equal_sizes_keep_their_projection(tmp_path: Path) -> None:
    reference = theirs("AlbertModel", embedding_size=16)
    reference.save_pretrained(tmp_path / "theirs")
    save_model(load_encoder(tmp_path / "theirs"), tmp_path / "ours")
    again, info = transformers.AlbertModel.from_pretrained(
        tmp_path / "ours", output_loading_info=True
    )
    assert not any(info.values())
    assert all(
        torch.equal(value, again.state_dict()[key]) for key, value in reference.state_dict().items()
    )


def test_a_plan_of_our_own_does_not_pretend_to_be_published(tmp_path: Path) -> None:
    config = AlbertConfig.from_dict(theirs("AlbertModel").config.to_dict())
    model = AlbertModel(config.replace(num_hidden_groups=2, litebert={"sharing": "cycle"}))
    model.save_pretrained(tmp_path / "m")
    assert json.loads((tmp_path / "m" / "config.json").read_text())["model_type"] == "litebert"
    with pytest.raises((ValueError, KeyError)):
        transformers.AutoModel.from_pretrained(tmp_path / "m")


@pytest.fixture
def english(shared: Path, tmp_path: Path) -> Tokenizer:
    folder = tmp_path / "vocabulary"
    folder.mkdir()
    source = shared / "models" / "albert-english-vocab" / "30k-clean.model"
    (folder / "spiece.model").write_bytes(source.read_bytes())
    return Tokenizer.from_pretrained(folder)


def test_their_tokenizer_reads_our_folder_and_marks_the_second_text(
    tmp_path: Path, english: Tokenizer
) -> None:
    config = AlbertConfig.from_dict(
        theirs("AlbertForSequenceClassification", vocab_size=30_000).config.to_dict()
    )
    model = AlbertWithHead(config, "sequence").eval()
    model.save_pretrained(tmp_path / "m", english)
    names = {path.name for path in (tmp_path / "m").iterdir()}
    assert names >= {
        "spiece.model", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
    }  # fmt: skip
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "m")
    encoded = tokenizer("the parcel never came", "where is it now", return_tensors="pt")
    expected = english.encode("the parcel never came", "where is it now")
    assert encoded["input_ids"][0].tolist() == expected.ids
    assert encoded["token_type_ids"][0].tolist() == expected.type_ids
    assert 1 in expected.type_ids
    assert tokenizer.model_max_length == config.max_position_embeddings
    found = transformers.AutoModelForSequenceClassification.from_pretrained(tmp_path / "m").eval()
    with torch.no_grad():
        torch.testing.assert_close(
            AlbertWithHead.from_pretrained(tmp_path / "m")(**encoded).logits,
            found(**encoded).logits,
            atol=FP32_ATOL,
            rtol=0,
        )
