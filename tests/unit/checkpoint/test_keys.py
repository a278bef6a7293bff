from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from litebert.checkpoint.keys import (
    ARCHITECTURE_HEADS,
    CLASSIFIER_HEADS,
    HEAD_PARTS,
    head_part,
    resolve,
    to_ours,
    to_published,
)
from litebert.checkpoint.skeleton import skeleton
from litebert.errors import CheckpointError
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.config import ARCHITECTURES, AlbertConfig
from litebert.model.head_kinds import HEADS

ONE_BLOCK = {
    "embeddings.token.weight": "embeddings.word_embeddings.weight",
    "embeddings.position.weight": "embeddings.position_embeddings.weight",
    "embeddings.token_type.weight": "embeddings.token_type_embeddings.weight",
    "embeddings.norm.weight": "embeddings.LayerNorm.weight",
    "embeddings.norm.bias": "embeddings.LayerNorm.bias",
    "embeddings.project.weight": "encoder.embedding_hidden_mapping_in.weight",
    "encoder.attentions.0.query.weight": (
        "encoder.albert_layer_groups.0.albert_layers.0.attention.query.weight"
    ),
    "encoder.attentions.0.output.bias": (
        "encoder.albert_layer_groups.0.albert_layers.0.attention.dense.bias"
    ),
    "encoder.attentions.5.norm.weight": (
        "encoder.albert_layer_groups.2.albert_layers.1.attention.LayerNorm.weight"
    ),
    "encoder.ffns.3.up.weight": "encoder.albert_layer_groups.1.albert_layers.1.ffn.weight",
    "encoder.ffns.3.down.weight": "encoder.albert_layer_groups.1.albert_layers.1.ffn_output.weight",
    "encoder.ffns.2.norm.bias": (
        "encoder.albert_layer_groups.1.albert_layers.0.full_layer_layer_norm.bias"
    ),
    "pooler.weight": "pooler.weight",
}


def names_of(head: str | None, groups: int, inner: int) -> list[str]:
    """Our names, without prefix, of a real model."""
    config = AlbertConfig(
        vocab_size=5,
        embedding_size=2,
        hidden_size=4,
        num_hidden_layers=max(groups, 2),
        num_hidden_groups=groups,
        inner_group_num=inner,
        num_attention_heads=2,
        intermediate_size=3,
    )
    with skeleton():
        model = AlbertModel(config) if head is None else AlbertWithHead(config, head)
    return [name.removeprefix("model.") for name in model.state_dict()]


def test_the_tables_agree_with_the_model() -> None:
    assert {head: parts for head, parts in HEAD_PARTS.items() if head} == {
        head: kind.parts for head, kind in HEADS.items()
    }
    assert all(ARCHITECTURES[head] == name for name, head in ARCHITECTURE_HEADS.items())
    assert set(ARCHITECTURES.values()) == set(ARCHITECTURE_HEADS)


@pytest.mark.parametrize(("ours", "published"), ONE_BLOCK.items())
def test_known_names(ours: str, published: str) -> None:
    assert to_published(ours, inner=2, head=None) == published
    assert to_published(ours, inner=2, head="mlm") == "albert." + published
    assert to_ours(published, inner=2, classifier=None) == ours
    assert to_ours("albert." + published, inner=2, classifier=None) == ours


def test_known_names_of_heads() -> None:
    expected = {
        "mlm": [
            "predictions.bias",
            "predictions.dense.weight",
            "predictions.dense.bias",
            "predictions.LayerNorm.weight",
            "predictions.LayerNorm.bias",
        ],
        "sentence_order": ["sop_classifier.classifier.weight", "sop_classifier.classifier.bias"],
        "sequence": ["classifier.weight", "classifier.bias"],
        "token": ["classifier.weight", "classifier.bias"],
        "choice": ["classifier.weight", "classifier.bias"],
        "span": ["qa_outputs.weight", "qa_outputs.bias"],
        "embedding": [],
    }
    for head, published in expected.items():
        found = [
            to_published(name, inner=1, head=head)
            for name in names_of(head, 1, 1)
            if name.startswith("heads.")
        ]
        assert sorted(found) == sorted(published)


def test_a_head_that_transformers_lacks_has_no_published_names() -> None:
    with pytest.raises(CheckpointError, match="no published name for head 'span_joint'"):
        to_published("heads.span_joint.start.weight", inner=1, head="span_joint")


@given(
    head=st.sampled_from([None, *sorted(set(HEADS) - {"span_joint"})]),
    groups=st.integers(1, 5),
    inner=st.integers(1, 3),
)
def test_the_tables_are_one_to_one(head: str | None, groups: int, inner: int) -> None:
    ours = names_of(head, groups, inner)
    published = [to_published(name, inner=inner, head=head) for name in ours]
    assert len(set(published)) == len(ours)
    classifier = head if head in CLASSIFIER_HEADS else "sequence"
    assert [to_ours(name, inner=inner, classifier=classifier) for name in published] == ours
    resolved = resolve(published, inner=inner, classifier=classifier, own_layout=False)
    assert resolved.sources == {our: [name] for our, name in zip(ours, published, strict=True)}
    assert not resolved.unknown
    assert not resolved.repeated


@given(head=st.sampled_from([None, *HEADS]), inner=st.integers(1, 3))
def test_our_own_layout_is_the_state_dict(head: str | None, inner: int) -> None:
    ours = names_of(head, 2, inner)
    stored = [
        name if name.startswith("heads.") or head is None else f"model.{name}" for name in ours
    ]
    resolved = resolve(stored, inner=inner, classifier=None, own_layout=True)
    assert list(resolved.sources) == ours
    assert not resolved.unknown


@pytest.mark.parametrize(
    "name",
    [
        "bert.encoder.layer.0.attention.self.query.weight",
        "encoder.albert_layer_groups.00.albert_layers.0.ffn.weight",
        "encoder.albert_layer_groups.0.albert_layers.1.ffn.weight",
        "encoder.albert_layer_groups.0.albert_layers.0.ffn.gate",
        "encoder.albert_layer_groups.0.albert_layers.0.attention.self.weight",
        "encoder.albert_layer_groups.٣.albert_layers.0.ffn.weight",
        "encoder.albert_layer_groups.999999.albert_layers.0.ffn.weight",
        "embeddings.word_embeddings.bias",
        "embeddings.word_embeddings.deep.weight",
        "embeddings.word_embeddings",
        "albert.predictions.bias",
        "predictions.bias.weight",
        "classifier.dense.weight",
        "optimizer.step",
        "",
    ],
)
def test_foreign_names_are_unknown(name: str) -> None:
    assert to_ours(name, inner=1, classifier="sequence") is None
    assert resolve([name], inner=1, classifier="sequence", own_layout=False).unknown == [name]


@pytest.mark.parametrize(
    "name",
    [
        "encoder.attentions.0.up.weight",
        "encoder.ffns.0.up.gate",
        "heads.other.classifier.weight",
        "embeddings.word_embeddings.weight",
    ],
)
def test_foreign_names_of_our_layout_are_unknown(name: str) -> None:
    assert resolve([name], inner=1, classifier=None, own_layout=True).unknown == [name]


def test_a_weight_without_published_name_is_refused() -> None:
    for name in ("heads.token.classifier.weight", "encoder.ffns.0.gate.weight", "nonsense"):
        with pytest.raises(CheckpointError, match="has no published name"):
            to_published(name, inner=1, head="sequence")


def test_early_names_and_buffers() -> None:
    found = resolve(
        [
            "albert.embeddings.LayerNorm.gamma",
            "albert.embeddings.LayerNorm.beta",
            "albert.embeddings.position_ids",
            "albert.encoder.albert_layer_groups.0.albert_layers.0.full_layer_layer_norm.gamma",
            "albert.encoder.albert_layer_groups.0.albert_layers.0.ffn.gamma",
        ],
        inner=1,
        classifier=None,
        own_layout=False,
    )
    assert list(found.sources) == [
        "embeddings.norm.weight",
        "embeddings.norm.bias",
        "encoder.ffns.0.norm.weight",
    ]
    assert found.unknown == ["albert.encoder.albert_layer_groups.0.albert_layers.0.ffn.gamma"]


def test_tied_weights_are_further_copies_and_others_are_repetitions() -> None:
    names = [
        "predictions.decoder.bias",
        "predictions.decoder.weight",
        "albert.embeddings.word_embeddings.weight",
        "predictions.bias",
        "albert.pooler.bias",
        "pooler.bias",
    ]
    found = resolve(names, inner=1, classifier=None, own_layout=False)
    assert found.sources["embeddings.token.weight"] == [names[2], names[1]]
    assert found.sources["heads.mlm.bias"] == [names[3], names[0]]
    assert found.repeated == ["pooler.bias"]


def test_a_decoder_alone_stands_for_what_it_is_tied_to() -> None:
    found = resolve(["predictions.decoder.bias"], inner=1, classifier=None, own_layout=False)
    assert found.sources == {"heads.mlm.bias": ["predictions.decoder.bias"]}


def test_parts() -> None:
    assert head_part("heads.mlm.dense.weight") == "mlm"
    assert head_part("pooler.weight") == "pooler"
    assert head_part("encoder.ffns.0.up.weight") is None
