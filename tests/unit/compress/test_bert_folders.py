"""BERT folders that are damaged, hostile, or of another kind are refused by name."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from tests.bert_folders import SIZES, VOCABULARY, make_bert

from litebert.checkpoint.digest import folder_digest
from litebert.compress.bert import bert_config, load_bert
from litebert.compress.teacher import Teacher, load_encoder_folder, pooling_of
from litebert.compress.teacher_transformers import TransformersTeacher, load_teacher
from litebert.errors import CheckpointError, DataError, MissingDependencyError

pytest.importorskip("transformers")


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bert")
    make_bert(folder)
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "bert"))


def change_config(folder: Path, **changes: Any) -> None:
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def change_weights(folder: Path, change: Any) -> None:
    path = folder / "model.safetensors"
    weights = load_file(path)
    change(weights)
    save_file(weights, path, metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"model_type": "llama"}, "model_type is 'llama'; allowed are bert, electra"),
        ({"model_type": None}, "model_type is None"),
        ({"position_embedding_type": "relative_key"}, "position_embedding_type is 'relative_key'"),
        ({"is_decoder": True}, "is_decoder is True, allowed is False"),
        ({"hidden_size": None}, "sizes missing: hidden_size"),
        ({"hidden_size": "wide"}, "hidden_size"),
        ({"hidden_act": "swish"}, "hidden_act"),
        ({"num_hidden_layers": 10**9}, "num_hidden_layers"),
        ({"num_hidden_layers": 4}, "weights are missing"),
        ({"num_hidden_layers": 2}, "weights are unexpected"),
        ({"intermediate_size": 25}, "weights have another shape"),
    ],
)
def test_configurations(folder: Path, changes: dict[str, Any], message: str) -> None:
    change_config(folder, **changes)
    with pytest.raises(CheckpointError, match=message):
        load_bert(folder)


def test_a_config_alone_is_checked_too() -> None:
    assert bert_config(SIZES | {"model_type": "bert"}).litebert.sharing == "none"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda w: w.pop("encoder.layer.1.output.dense.bias"), "1 weights are missing"),
        (lambda w: w.update({"encoder.layer.0.sneaky.weight": torch.ones(2)}), "unexpected"),
        (lambda w: w.update({"bert.pooler.dense.bias": torch.ones(16)}), "given twice"),
        (
            lambda w: w.update({"pooler.dense.bias": torch.full((16,), float("nan"))}),
            "numbers that are not finite",
        ),
        (
            lambda w: w.update({"pooler.dense.bias": torch.ones(16, dtype=torch.int64)}),
            "no floating-point numbers",
        ),
    ],
)
def test_weights(folder: Path, change: Any, message: str) -> None:
    change_weights(folder, change)
    with pytest.raises(CheckpointError, match=message):
        load_bert(folder)


def test_early_names_of_norms(folder: Path) -> None:
    def rename(weights: dict[str, torch.Tensor]) -> None:
        for name in [name for name in weights if "LayerNorm" in name]:
            new = name.replace(".weight", ".gamma").replace(".bias", ".beta")
            weights[f"bert.{new}"] = weights.pop(name)

    expected = load_bert(folder)(torch.tensor([[2, 7, 3]])).last_hidden_state
    change_weights(folder, rename)
    assert torch.equal(load_bert(folder)(torch.tensor([[2, 7, 3]])).last_hidden_state, expected)


def test_pickles_are_never_opened(folder: Path) -> None:
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(CheckpointError, match="a pickle, which may run foreign code"):
        load_bert(folder)


def test_a_truncated_file(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-7])
    with pytest.raises(CheckpointError, match="cut short"):
        load_bert(folder)


def test_another_vocabulary(folder: Path) -> None:
    (folder / "vocab.txt").write_text("\n".join([*VOCABULARY, "more"]) + "\n")
    with pytest.raises(CheckpointError):
        load_bert(folder)


def test_links_that_lead_out(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("[PAD]\n")
    (folder / "vocab.txt").unlink()
    (folder / "vocab.txt").symlink_to(tmp_path / "secret")
    with pytest.raises(CheckpointError):
        load_bert(folder)


def test_no_classifier_to_learn_from(folder: Path) -> None:
    with pytest.raises(CheckpointError, match="has no classifier with a pooler"):
        load_bert(folder, "sequence")


def test_a_model_of_ours_without_the_head(model_dir: Path) -> None:
    assert load_encoder_folder(model_dir, "sequence").head == "sequence"
    with pytest.raises(CheckpointError, match="was not trained for a task with the head 'token'"):
        load_encoder_folder(model_dir, "token")


def test_relations_of_a_depth_that_is_not_there(folder: Path) -> None:
    with pytest.raises(CheckpointError, match="has 3 depths, relation_depth is 4"):
        Teacher.load(folder, "embedding", relation_depth=4)


@pytest.mark.parametrize(
    ("table", "expected"),
    [
        (None, "mean"),
        ({"pooling_mode_mean_tokens": True, "word_embedding_dimension": 16}, "mean"),
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, "cls"),
    ],
)
def test_pooling_of_sentence_transformers(folder: Path, table: Any, expected: str) -> None:
    if table is not None:
        (folder / "1_Pooling").mkdir()
        (folder / "1_Pooling" / "config.json").write_text(json.dumps(table))
    assert pooling_of(folder) == expected


def test_pooling_that_nobody_here_does(folder: Path) -> None:
    (folder / "1_Pooling").mkdir()
    table = {"pooling_mode_max_tokens": True}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(table))
    with pytest.raises(CheckpointError, match="asks for pooling_mode_max_tokens"):
        pooling_of(folder)


def test_the_digest_follows_the_files(folder: Path) -> None:
    before = folder_digest(folder)
    assert folder_digest(folder) == before
    change_weights(folder, lambda w: w["pooler.dense.bias"].add_(1))
    assert folder_digest(folder) != before
    with pytest.raises(CheckpointError, match="cannot be read"):
        folder_digest(folder / "nowhere")


def test_answers_do_not_depend_on_neighbours(folder: Path) -> None:
    teacher = Teacher.load(folder, "embedding")
    examples = [teacher.encode("the kettle is fine" + " a" * n, None, 30, n) for n in (3, 0, 9)]
    parts = ("hidden", "pooled", "relations")
    together = teacher.answer(examples, parts)
    start = 0
    for n, example in enumerate(examples):
        alone = teacher.answer([example], parts)
        rows = slice(start, start + len(example))
        assert np.allclose(together["hidden"][rows], alone["hidden"], atol=2e-3)
        assert np.allclose(together["relations"][rows], alone["relations"], atol=2e-3)
        assert np.allclose(together["pooled"][n], alone["pooled"][0], atol=2e-3)
        mean = alone["hidden"].astype(np.float32).mean(0)
        assert np.allclose(alone["pooled"][0], mean, atol=2e-3)
        start += len(example)


def test_numbers_that_half_precision_cannot_hold(folder: Path) -> None:
    change_weights(folder, lambda w: w["encoder.layer.2.output.LayerNorm.weight"].fill_(1e6))
    teacher = Teacher.load(folder, "embedding")
    with pytest.raises(DataError, match="half precision does not"):
        teacher.answer([teacher.encode("the kettle", None, 30, 0)], ("hidden",))


def test_transformers_runs_what_we_cannot(tmp_path: Path) -> None:
    theirs = make_bert(tmp_path, "DistilBertModel", dim=16, n_layers=2, n_heads=2, hidden_dim=24)
    teacher = load_teacher(tmp_path, "embedding")
    assert isinstance(teacher, TransformersTeacher)
    assert (teacher.width, teacher.max_length) == (16, 40)
    examples = [
        teacher.encode(text, None, 20, n)
        for n, text in enumerate(("the kettle", "a", "late boat ."))
    ]
    found = teacher.answer(examples, ("pooled",))["pooled"]
    for n, example in enumerate(examples):
        with torch.no_grad():
            states = theirs(torch.from_numpy(example.ids).long()[None]).last_hidden_state
        assert np.allclose(found[n], states[0].mean(0).numpy(), atol=2e-3)
    with pytest.raises(DataError, match="not hidden"):
        teacher.answer(examples, ("hidden",))


def test_code_of_a_folder_is_never_run(tmp_path: Path) -> None:
    make_bert(tmp_path, "DistilBertModel", dim=16, n_layers=2, n_heads=2, hidden_dim=24)
    change_config(tmp_path, auto_map={"AutoModel": "evil.Model"})
    (tmp_path / "evil.py").write_text("raise SystemExit('ran')\n")
    with pytest.raises(CheckpointError, match="auto_map names code of its own"):
        load_teacher(tmp_path, "embedding")


def test_types_that_transformers_does_not_know(folder: Path) -> None:
    change_config(folder, model_type="no-such-model")
    with pytest.raises(CheckpointError, match="transformers cannot read it"):
        load_teacher(folder, "embedding")


def test_without_transformers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    change_config(folder, model_type="distilbert")
    monkeypatch.setitem(__import__("sys").modules, "transformers", None)
    with pytest.raises(MissingDependencyError, match=r"litebert\[hf\]"):
        load_teacher(folder, "embedding")
