"""A new pooler on an encoder of mean vectors reads the mean, in torch and in the exported graph."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.bert_folders import VOCABULARY
from tests.named_encoders import make_student

from litebert.checkpoint.folder import load_model, save_model
from litebert.model.albert import AlbertWithHead
from litebert.recipes.finetune.pooler_choice import has_pooler, pooler_options
from litebert.recipes.finetune.run import new_model
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan
from litebert.recipes.predictor import Predictor
from litebert.settings import build_settings
from litebert.text.tokenizer import Tokenizer

PAIRS = [("the kettle is broken", "a boat"), ("a boat", "the lamp sails"), ("the", "the the")]
IDS = torch.tensor([[2, 7, 9, 5, 3], [2, 8, 3, 0, 0]])


def plan_of(folder: Path, source: Path, **config: Any) -> Any:
    rows = [f"the {word} {n},{'ab'[n % 2]}" for n in range(10) for word in VOCABULARY[10:20]]
    return plan_over(folder, ("text",), rows, source, config)


def plan_over(
    folder: Path, columns: tuple[str, ...], rows: list[str], source: Path, config: dict[str, Any]
) -> Any:
    (folder / "t.csv").write_text("\n".join([",".join((*columns, "label")), *rows, ""]), "utf-8")
    values = {
        "data": {"train": str(folder / "t.csv"), "text_columns": list(columns)},
        "model": {"source": str(source), "config": config},
    }
    return make_plan(build_settings(FinetuneSettings, values))


def test_a_new_pooler_reads_the_mean_and_begins_near_the_identity(tmp_path: Path) -> None:
    make_student(tmp_path / "student")
    plan = plan_of(tmp_path, tmp_path / "student")
    assert plan.model.config.litebert.pooler_reads == "mean"
    model = new_model(plan, None)
    weight = model.get_parameter("model.pooler.weight")
    assert float(weight.diagonal().mean().detach()) == pytest.approx(0.5, abs=0.05)
    told = plan_of(tmp_path, tmp_path / "student", litebert={"pooler_reads": "first"})
    assert told.model.config.litebert.pooler_reads == "first"
    first = new_model(told, None).get_parameter("model.pooler.weight")
    assert abs(float(first.diagonal().mean().detach())) < 0.05


def test_a_pooler_that_is_there_goes_on_as_it_was(tmp_path: Path) -> None:
    make_student(tmp_path / "student")
    trained = new_model(plan_of(tmp_path, tmp_path / "student"), None)
    tokenizer = Tokenizer.from_pretrained(tmp_path / "student")
    save_model(trained, tmp_path / "trained", tokenizer)
    assert has_pooler(tmp_path / "trained")
    assert not has_pooler(tmp_path / "student")
    plan = plan_of(tmp_path, tmp_path / "trained")
    assert plan.model.config.litebert.pooler_reads == "mean"  # as it was saved
    again = new_model(plan, None).get_parameter("model.pooler.weight")
    assert torch.equal(again, trained.get_parameter("model.pooler.weight"))
    config = load_model(tmp_path / "student", "embedding").config
    assert pooler_options(tmp_path / "trained", "sequence", config) == {}
    assert pooler_options(tmp_path / "student", "token", config) == {}
    assert pooler_options(tmp_path / "student", "choice", config) == {"pooler_reads": "mean"}
    pair = pooler_options(tmp_path / "student", "sequence", config, is_pair=True)
    assert pair == {"pooler_reads": "segments"}
    assert pooler_options(tmp_path / "trained", "sequence", config, is_pair=True) == {}


def test_the_logits_are_of_the_mean(tmp_path: Path) -> None:
    make_student(tmp_path / "student", pooler_reads="mean")
    config = load_model(tmp_path / "student", "embedding").config
    assert config.model_type == "litebert"  # transformers always reads the first token
    model = AlbertWithHead(config.replace(id2label={0: "a", 1: "b", 2: "c"}), "sequence").eval()
    with torch.inference_mode():
        output = model(IDS, IDS != 0)
        mask = (IDS != 0)[..., None].float()
        mean = (output.last_hidden_state * mask).sum(1) / mask.sum(1)
        pooled = torch.tanh(model.model.pooler(mean))  # type: ignore[misc]
        wanted = model.heads["sequence"](pooled)
    torch.testing.assert_close(output.logits, wanted)


def test_the_exported_graph_answers_the_same(tmp_path: Path) -> None:
    pytest.importorskip("onnx")
    from litebert.recipes.export import export_model
    from litebert.runtime.session import Session

    make_student(tmp_path / "student")
    plan = plan_of(tmp_path, tmp_path / "student")
    model = new_model(plan, None).eval()
    with torch.no_grad():
        for weight in model.heads.parameters():
            weight.normal_(std=0.5)
    save_model(model, tmp_path / "m", plan.model.tokenizer, task=plan.task.to_json())
    export_model("onnx", tmp_path / "m", tmp_path / "e", precisions=("fp32",))
    texts = ["the kettle is broken", "a boat", "the the the lamp sails at night"]
    ours, theirs = Predictor.load(tmp_path / "m"), Session(tmp_path / "e", threads=1)
    for a, b in zip(ours.predict(texts), theirs.predict(texts), strict=True):
        np.testing.assert_allclose(list(a.scores.values()), list(b.scores.values()), atol=1e-4)


def pair_plan(folder: Path, source: Path, **config: Any) -> Any:
    words = VOCABULARY[10:16]
    rows = [f"the {a} {n},a {b},{int(a == b)}" for n in range(3) for a in words for b in words]
    return plan_over(folder, ("text", "pair"), rows, source, config)


def test_pairs_begin_as_the_difference_of_their_vectors(tmp_path: Path) -> None:
    make_student(tmp_path / "student")
    plan = pair_plan(tmp_path, tmp_path / "student")
    assert plan.model.config.litebert.pooler_reads == "segments"
    weight = new_model(plan, None).get_parameter("model.pooler.weight").detach()
    assert weight.shape == (16, 48)
    assert float(weight.diagonal().mean()) == pytest.approx(0.5, abs=0.05)
    assert abs(float(weight[:, 16:].mean())) < 0.02
    # A folder whose pooler has another width gives no start, so the new one begins as any other.
    single = plan_of(tmp_path, tmp_path / "student")
    save_model(new_model(single, None), tmp_path / "single", single.model.tokenizer)
    wide = pair_plan(tmp_path, tmp_path / "single", litebert={"pooler_reads": "segments"})
    weight = new_model(wide, None).get_parameter("model.pooler.weight").detach()
    assert float(weight.diagonal().mean()) == pytest.approx(0.5, abs=0.05)
    told = pair_plan(tmp_path, tmp_path / "student", litebert={"pooler_reads": "mean"})
    assert new_model(told, None).get_parameter("model.pooler.weight").shape == (16, 16)


@pytest.mark.parametrize("exit_heads", [False, True])
def test_the_exported_graph_compares_two_texts_the_same(tmp_path: Path, exit_heads: bool) -> None:
    pytest.importorskip("onnx")
    from litebert.recipes.export import export_model
    from litebert.runtime.session import Session

    make_student(tmp_path / "student")
    plan = pair_plan(tmp_path, tmp_path / "student", litebert={"exit_heads": exit_heads})
    model = new_model(plan, None).eval()
    with torch.no_grad():
        for weight in model.heads.parameters():
            weight.normal_(std=0.5)
    save_model(model, tmp_path / "m", plan.model.tokenizer, task=plan.task.to_json())
    export_model("onnx", tmp_path / "m", tmp_path / "e", precisions=("fp32",))
    ours, theirs = Predictor.load(tmp_path / "m"), Session(tmp_path / "e", threads=1)
    for a, b in zip(ours.predict(PAIRS), theirs.predict(PAIRS), strict=True):
        np.testing.assert_allclose(list(a.scores.values()), list(b.scores.values()), atol=1e-4)
    swapped = ours.predict([(b, a) for a, b in PAIRS])
    assert [a.scores for a in swapped] != [a.scores for a in ours.predict(PAIRS)]
