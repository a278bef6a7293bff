"""Every published configuration loads, is refused or warned about; the 41 real files among them."""

from __future__ import annotations

import json
import os
import warnings
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.errors import CheckpointError, SettingsError
from litebert.model.config import AlbertConfig, read_config_json
from litebert.model.presets import PRESETS, preset

SIZES = {
    "vocab_size": 40,
    "embedding_size": 8,
    "hidden_size": 12,
    "num_hidden_layers": 4,
    "num_attention_heads": 3,
    "intermediate_size": 20,
}
NOT_CONFIGS = {"SOURCES.json", "param_counts.json", "tokenizer_config_variants.json"}
REFUSED = {
    "trap__clhuang_albert-sentiment.json": "model_type is 'bert'",
    "trap__robot-test_minimal.json": "sizes missing",
    "brightmart__albert_zh__tiny_google_fast.json": "num_hidden_groups is 12",
}
WARNED = {
    "trap__m-polignano_alberto.json": "keys of a BERT configuration",
    "brightmart__albert_zh__xxlarge.json": "preln",
}


def make(**changes) -> AlbertConfig:
    return AlbertConfig.from_dict({**SIZES, **changes})


def published(shared: Path) -> list[Path]:
    files = sorted((shared / "models" / "configs").glob("*.json"))
    return [file for file in files if file.name not in NOT_CONFIGS]


def test_every_real_configuration_loads_or_is_refused_with_the_reason(shared):
    files = published(shared)
    assert len(files) >= 41
    for file in files:
        if file.name in REFUSED:
            with pytest.raises(CheckpointError, match=REFUSED[file.name]):
                AlbertConfig.load(file)
            continue
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            config = AlbertConfig.load(file)
        said = " ".join(str(item.message) for item in caught)
        assert bool(said) == (file.name in WARNED), f"{file.name}: {said}"
        assert WARNED.get(file.name, "") in said
        values = json.loads(file.read_text())
        assert config.vocab_size == values["vocab_size"]
        assert config.num_hidden_groups == values.get("num_hidden_groups", 1)
        assert config.model_type == "albert"


def test_real_configurations_survive_the_round_trip(shared):
    for file in published(shared):
        if file.name in REFUSED or file.name in WARNED:
            continue
        config = AlbertConfig.load(file)
        assert AlbertConfig.from_dict(json.loads(json.dumps(config.to_dict()))) == config


@pytest.mark.parametrize("name", PRESETS)
def test_presets_load_and_survive_the_round_trip(name):
    config = preset(name)
    assert AlbertConfig.from_dict(config.to_dict()) == config
    assert config.replace() == config
    # BERT has no projection; everything else is what transformers computes.
    assert config.model_type == ("litebert" if name.startswith("bert") else "albert")


def test_presets_take_changes_and_name_the_nearest():
    assert preset("tiny", vocab_size=77).vocab_size == 77
    with pytest.raises(SettingsError, match=r"did you mean 'albert-base-v2'"):
        preset("albert-base-v3x")
    with pytest.raises(SettingsError, match="known: albert-base-v1"):
        preset("?")


def test_facts_of_the_published_presets():
    assert preset("albert-xlarge-v2").num_attention_heads == 16  # not H / 64
    assert preset("albert-base-v1").hidden_act == "gelu"
    assert preset("albert-base-v2").hidden_act == "gelu_new"
    assert preset("albert-base-v1").hidden_dropout_prob == 0.1
    assert preset("albert-xxlarge-v1").hidden_dropout_prob == 0.0
    assert preset("albert-zh-base").hidden_act == "relu"
    assert preset("albert-zh-xxlarge").initializer_range == 0.01
    assert preset("bert-base").num_hidden_groups == 12


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"num_attention_heads": 5}, "no multiple of num_attention_heads"),
        ({"litebert": {"num_key_value_heads": 2}}, "no multiple of num_key_value_heads"),
        ({"litebert": {"project_embeddings": False}}, "needs embedding_size = hidden_size"),
        ({"pad_token_id": 40}, "outside the vocabulary"),
        ({"id2label": {"0": "a", "2": "b"}}, "keys 0..C-1"),
        ({"id2label": {}}, "keys 0..C-1"),
        ({"id2label": {"x": "a"}}, "key that is no number"),
        ({"id2label": ["a", "b"]}, "id2label must be an object"),
        ({"num_hidden_groups": 9}, "num_hidden_groups is 9"),
        ({"litebert": {"sharing": "nothing"}}, "unknown sharing pattern"),
        ({"litebert": {"sharing": "none"}, "num_hidden_groups": 2}, "one group per depth"),
        ({"litebert": {"sharing": "all"}, "num_hidden_groups": 2}, "has one group"),
        ({"litebert": {"format_version": 2}}, "format_version"),
        ({"hidden_actt": "gelu"}, "did you mean 'hidden_act'"),
        ({"rotary": True}, "additions live under the key 'litebert'"),
        ({"hidden_act": "swish"}, "hidden_act"),
        ({"hidden_dropout_prob": 1.0}, "hidden_dropout_prob"),
        ({"position_embedding_type": "relative_key"}, "is another model"),
        ({"tie_word_embeddings": False}, "is another model"),
        ({"model_type": "roberta"}, "model_type is 'roberta'"),
        ({"hidden_size": None}, "sizes missing: hidden_size"),
        ({"litebert": "none"}, "litebert: "),
        ({"litebert": [1]}, "litebert: "),
        ({"litebert": {"sharing": {"a": 1}}}, "litebert.sharing"),
        ({None: 1}, "unknown key None"),
        ({("a",): 1}, "unknown key"),
        ({"label2id": {"a": float("inf")}}, "key that is no number"),
        ({"label2id": {"a": {"b": 1}}}, "key that is no number"),
        ({"label2id": [1]}, "label2id must be an object"),
        ({"id2label": {"0": "a", "00": "b"}}, "same index"),
        ({"num_labels": -1}, "num_labels is -1"),
        ({"num_labels": True}, "num_labels is True"),
        ({"num_labels": 10**30}, "num_labels is 1000"),
        ({"is_decoder": {"a": "x" * 100_000}}, "is another model"),
    ],
)
def test_wrong_configurations_are_refused(changes, message):
    with pytest.raises(SettingsError, match=message) as caught:
        AlbertConfig.from_dict(SIZES | changes)
    assert len(str(caught.value)) < 2000


def test_a_configuration_that_is_read_cannot_name_code(tmp_path):
    values = SIZES | {"litebert": {"sharing": "own_pattern:plan"}}
    marker = tmp_path / "ran"
    (tmp_path / "own_pattern.py").write_text(f"open({str(marker)!r}, 'w').close()\n")
    with pytest.raises(SettingsError, match="names code"):
        AlbertConfig.from_dict(values)
    (tmp_path / "config.json").write_text(json.dumps(values))
    with pytest.raises(CheckpointError, match="names code"):
        AlbertConfig.load(tmp_path)
    assert not marker.exists()


def test_replace_refuses_and_merges():
    config = make(litebert={"sharing": "cycle"})
    changed = config.replace(hidden_act="relu", litebert={"head": "mlm"})
    assert changed.litebert.sharing == "cycle"
    assert changed.litebert.head == "mlm"
    assert changed.hidden_act == "relu"
    assert config.replace(litebert=changed.litebert).litebert == changed.litebert
    with pytest.raises(SettingsError, match="wider"):
        config.replace(wider=3)
    with pytest.raises(SettingsError, match="litebert must be a table of options, got 'cycle'"):
        config.replace(litebert="cycle")


def test_labels_in_all_published_forms():
    assert make(num_labels=3).id2label == {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"}
    assert make(label2id={"no": "0", "yes": "1"}).id2label == {0: "no", 1: "yes"}
    assert make(id2label={"1": "b", "0": "a"}, label2id={"z": 0}).label2id == {"a": 0, "b": 1}


@pytest.mark.parametrize(
    ("changes", "model_type"),
    [
        ({}, "albert"),
        ({"litebert": {"sharing": "all"}}, "albert"),
        ({"litebert": {"sharing": "none"}}, "albert"),
        ({"litebert": {"sharing": "cycle"}, "num_hidden_groups": 2}, "litebert"),
        ({"litebert": {"sharing": "attention_only"}}, "litebert"),
        ({"litebert": {"num_key_value_heads": 1}}, "litebert"),
        ({"embedding_size": 12}, "litebert"),  # transformers always projects
        ({"embedding_size": 12, "litebert": {"project_embeddings": True}}, "albert"),
    ],
)
def test_what_transformers_cannot_compute_does_not_say_albert(changes, model_type):
    config = make(**changes)
    assert config.model_type == model_type
    written = config.to_dict()
    assert written["model_type"] == model_type
    assert AlbertConfig.from_dict(written) == config


def test_unreadable_files(tmp_path):
    path = tmp_path / "config.json"
    with pytest.raises(CheckpointError, match=r"needs a config\.json"):
        AlbertConfig.load(tmp_path)
    for content, message in (
        (b"[1]", "holds a JSON list"),
        (b"{", "not valid JSON"),
        (b"\xff\xfe{", "not valid JSON"),
        (b"[" * 200_000, "not valid JSON"),
        (b" " * (4 * 1024 * 1024 + 1), "allowed are 4,194,304"),
        (b'{"model_type": "albert"}', "sizes missing"),
    ):
        path.write_bytes(content)
        with pytest.raises(CheckpointError, match=message):
            AlbertConfig.load(path)
    path.write_text(json.dumps(SIZES))
    assert AlbertConfig.load(tmp_path) == make()
    assert read_config_json(path) == SIZES


def test_a_pipe_or_a_link_out_of_the_folder_is_not_opened(tmp_path):
    outside, folder = tmp_path / "outside.json", tmp_path / "model"
    outside.write_text(json.dumps(SIZES))
    folder.mkdir()
    os.mkfifo(folder / "config.json")
    with pytest.raises(CheckpointError, match="is a pipe"):
        AlbertConfig.load(folder)
    with pytest.raises(CheckpointError, match="is a pipe"):
        AlbertConfig.load(folder / "config.json")
    (folder / "config.json").unlink()
    (folder / "config.json").symlink_to(outside)
    with pytest.raises(CheckpointError, match="is a link"):
        AlbertConfig.load(folder)


@given(
    st.dictionaries(
        st.sampled_from([*AlbertConfig.model_fields, "num_labels", "label2id", "dtype"]),
        st.none() | st.booleans() | st.integers(-5, 3000) | st.floats() | st.text(max_size=5)
        | st.lists(st.integers(), max_size=2)
        | st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
        max_size=5,
    )
)  # fmt: skip
def test_any_json_gives_a_configuration_or_a_settings_error(values):
    try:
        config = AlbertConfig.from_dict(SIZES | values)
    except SettingsError:
        return
    assert len(config.plan) == config.num_hidden_layers * config.inner_group_num
