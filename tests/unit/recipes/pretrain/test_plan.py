from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[2] / "data"))
from shard_fixture import make_shards, sample_documents

from litebert.checkpoint.saving import save_model
from litebert.data.shards import ShardSet
from litebert.errors import CheckpointError, DataError, LitebertError, SettingsError
from litebert.recipes.pretrain.plan import make_plan
from litebert.recipes.pretrain.run import new_model


def test_chunks_are_trained_on_or_scored_never_both(wanted: Any) -> None:
    plan = make_plan(wanted())
    train, held = set(plan.train_chunks.tolist()), set(plan.eval_chunks)
    assert train and held and not train & held
    assert train | held == set(range(len(plan.train_index)))
    again = make_plan(wanted())
    assert again.eval_chunks == plan.eval_chunks
    assert again.source().fingerprint == plan.source().fingerprint


def test_the_digest_knows_text_chunks_and_objectives(wanted: Any) -> None:
    variants = [
        wanted(),
        wanted(data={"max_length": 80}),
        wanted(data={"short_fraction": 0.5}),
        wanted(objectives={"order": "nsp"}),
        wanted(objectives={"mlm": {"mask_fraction": 0.2}}),
        wanted(data={"eval_fraction": 0.2}),
    ]
    assert len({make_plan(settings).source().fingerprint for settings in variants}) == 6


def test_chunks_are_written_once_and_read_again(wanted: Any, tmp_path: Path) -> None:
    plan = make_plan(wanted(), tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["chunks-train.bin"]
    again = make_plan(wanted(), tmp_path)
    np.testing.assert_array_equal(again.train_index.lengths, plan.train_index.lengths)
    assert again.source().fingerprint == plan.source().fingerprint


def test_held_out_shards_are_found_or_named(wanted: Any, shards: ShardSet, tmp_path: Path) -> None:
    other = make_shards(tmp_path / "b", sample_documents(6, 5), plan_tokenizer(wanted))
    plan = make_plan(wanted(data={"eval_shards": str(other.folder), "eval_examples": 3}))
    assert len(plan.eval_chunks) == 3
    assert plan.eval_shards.fingerprint == other.fingerprint != shards.fingerprint
    assert len(plan.train_chunks) == len(plan.train_index)
    inside = make_shards(tmp_path / "c", None, plan_tokenizer(wanted))
    other.folder.rename(inside.folder / "eval")
    plan = make_plan(wanted(data={"shards": str(inside.folder)}))
    assert plan.eval_shards.folder == inside.folder / "eval"
    assert any("examples of" in line for line in plan.describe())


def plan_tokenizer(wanted: Any) -> Any:
    return make_plan(wanted()).tokenizer


def test_held_out_shards_of_another_tokenizer_are_refused(wanted: Any, tmp_path: Path) -> None:
    other = make_shards(tmp_path, sample_documents(6, 5), 60)
    with pytest.raises(DataError, match=r"made with another tokenizer than .* same --tokenizer"):
        make_plan(wanted(data={"eval_shards": str(other.folder)}))


def test_too_little_text_is_refused(wanted: Any, tmp_path: Path) -> None:
    one = make_shards(tmp_path, [["A single sentence."]], plan_tokenizer(wanted))
    with pytest.raises(
        DataError, match=r"there are 1 examples .* too few to train and to score on"
    ):
        make_plan(wanted(data={"shards": str(one.folder)}))


@pytest.mark.parametrize(
    ("sections", "message"),
    [
        ({"data": {"max_length": 128}}, "max_length is 128, the model has 96 positions"),
        ({"model": {"config": {"litebert": 3}}}, "model.config.litebert must be a table, got 3"),
        (
            {"model": {"config": {"vocab_size": 20}}},
            "vocab_size is 20, the tokenizer .* leave it out",
        ),
    ],
)
def test_a_model_that_cannot_be_is_refused(
    wanted: Any, sections: dict[str, Any], message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        make_plan(wanted(**sections))


def test_a_wrong_name_of_a_model_is_corrected(wanted: Any) -> None:
    with pytest.raises(CheckpointError, match="did you mean 'small'"):
        make_plan(wanted(model={"source": "smal"}))


def test_training_goes_on_from_a_folder_of_the_same_vocabulary(wanted: Any, tmp_path: Path) -> None:
    plan = make_plan(wanted())
    save_model(new_model(plan), tmp_path / "model", plan.tokenizer)
    source = {"model": {"source": str(tmp_path / "model"), "config": {}}}
    going_on = make_plan(wanted(**source))
    assert going_on.folder == tmp_path / "model"
    before, after = (new_model(p).state_dict() for p in (plan, going_on))
    assert all(bool((before[name] == after[name]).all()) for name in before)
    other = make_shards(tmp_path, sample_documents(12, 5), 60)
    with pytest.raises(SettingsError, match=r"another vocabulary than the shards .* --tokenizer"):
        make_plan(wanted(data={"shards": str(other.folder)}, **source))


def test_a_model_folder_that_is_not_there_is_refused(wanted: Any, tmp_path: Path) -> None:
    with pytest.raises(LitebertError, match="no such folder"):
        make_plan(wanted(model={"source": str(tmp_path / "nothing")}))


def test_new_weights_may_start_from_the_words_of_the_text(wanted: Any) -> None:
    plans = [make_plan(wanted(model={"start": start})) for start in ("official", "word_vectors")]
    official, ours = (new_model(plan).model for plan in plans)
    table = ours.embeddings.token.weight.detach()
    assert float(table.std()) > 2 * float(official.embeddings.token.weight.detach().std())
    value = ours.encoder.attentions[0].value.weight.detach()
    assert float(value.diagonal().mean()) == pytest.approx(1.0, abs=0.1)
    assert new_model(plans[1]).model.embeddings.token.weight.equal(table)


def test_a_start_is_for_new_weights(wanted: Any, tmp_path: Path) -> None:
    plan = make_plan(wanted())
    save_model(new_model(plan), tmp_path / "model", plan.tokenizer)
    for model, objectives in (
        ({"source": str(tmp_path / "model"), "config": {}}, {}),
        ({}, {"rtd": {}}),
    ):
        settings = wanted(model={**model, "start": "word_vectors"}, objectives=objectives)
        with pytest.raises(SettingsError, match=r"model\.start is 'word_vectors'"):
            make_plan(settings)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"hidden_siz": 32}, "no setting 'model.config.hidden_siz'; did you mean 'hidden_size'"),
        ({"litebert": {"zzz": 1}}, "no setting 'model.config.litebert.zzz'; known: .*positions"),
        ({"hidden_size": -2}, "model.config: hidden_size: .*got -2"),
        ({"type_vocab_size": 1}, 'type_vocab_size is 1.*raise it to 2.*objectives.order="none"'),
    ],
)
def test_a_wrong_shape_is_told_with_its_place(
    wanted: Any, config: dict[str, Any], message: str
) -> None:
    settings = wanted()
    model = {"config": settings.model.config | config}
    with pytest.raises(SettingsError, match=message):
        make_plan(wanted(model=model))
