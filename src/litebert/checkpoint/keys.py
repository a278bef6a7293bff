"""Weight names: ours to the published ones (those of transformers) and back.

A published name belongs to one weight of ours and to no other, for every head and sharing plan
that transformers can compute. A model that it cannot compute is stored under our own names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from litebert.errors import CheckpointError
from litebert.model.head_kinds import HEADS
from litebert.model.options import PROJECTIONS

__all__ = [
    "ARCHITECTURE_HEADS",
    "CLASSIFIER_HEADS",
    "EXIT_KEYS",
    "HEAD_PARTS",
    "Resolved",
    "head_part",
    "resolve",
    "to_ours",
    "to_published",
]

# (ours, published); a pair renames everything below it.
_ENCODER: Final = (
    ("embeddings.token.", "embeddings.word_embeddings."),
    ("embeddings.position.", "embeddings.position_embeddings."),
    ("embeddings.token_type.", "embeddings.token_type_embeddings."),
    ("embeddings.norm.", "embeddings.LayerNorm."),
    ("embeddings.project.", "encoder.embedding_hidden_mapping_in."),
    ("pooler.", "pooler."),
)
_BLOCK: Final = {
    "attentions": (
        ("query", "attention.query"),
        ("key", "attention.key"),
        ("value", "attention.value"),
        ("output", "attention.dense"),
        ("norm", "attention.LayerNorm"),
    ),
    "ffns": (("up", "ffn"), ("down", "ffn_output"), ("norm", "full_layer_layer_norm")),
}
_HEADS: Final = {
    "mlm": (
        ("heads.mlm.dense.", "predictions.dense."),
        ("heads.mlm.norm.", "predictions.LayerNorm."),
        ("heads.mlm.bias", "predictions.bias"),
    ),
    "sentence_order": (("heads.sentence_order.classifier.", "sop_classifier.classifier."),),
    "sequence": (("heads.sequence.classifier.", "classifier."),),
    "token": (("heads.token.classifier.", "classifier."),),
    "choice": (("heads.choice.classifier.", "classifier."),),
    "span": (("heads.span.classifier.", "qa_outputs."),),
    "span_joint": (),  # no published model has it
}
_OWN_HEADS: Final = tuple(
    f"heads.span_joint.{layer}"
    for layer in ("start", "end_dense", "end_norm", "end", "answer_dense", "answer")
)

HEAD_PARTS: Final[dict[str | None, tuple[str, ...]]] = {
    None: (),
    **{word: kind.parts for word, kind in HEADS.items()},
}
"""Head word -> heads whose weights it has."""

CLASSIFIER_HEADS: Final = ("sequence", "token", "choice")
"""Heads whose published name is the same, `classifier.*`."""

ARCHITECTURE_HEADS: Final[dict[str, str | None]] = {
    "AlbertModel": None,
    "AlbertForMaskedLM": "mlm",
    "AlbertForPreTraining": "pretraining",
    "AlbertForSequenceClassification": "sequence",
    "AlbertForTokenClassification": "token",
    "AlbertForQuestionAnswering": "span",
    "AlbertForMultipleChoice": "choice",
}
"""Published class name -> head word; the inverse of what `config.json` is written with."""

EXIT_KEYS: Final = frozenset({"exits.weight", "exits.bias"})
"""Classifiers of the depths, under the same names in both layouts: other readers leave them out."""

# The decoder of the MLM head is the token table; transformers may store it again.
_TIED: Final = {
    "predictions.decoder.weight": "embeddings.token.weight",
    "predictions.decoder.bias": "heads.mlm.bias",
}
_TABLES: Final = frozenset({"embeddings.token", "embeddings.position", "embeddings.token_type"})
_LAYERS: Final = frozenset(
    ours[:-1]
    for ours, _ in (*_ENCODER, *(pair for pairs in _HEADS.values() for pair in pairs))
    if ours.endswith(".")
) | frozenset(_OWN_HEADS)
_INDEX: Final = r"(0|[1-9][0-9]{0,4})"
# Weights of options; no published model has them, so they have no published name.
_OPTIONS: Final = re.compile(
    rf"encoder\.(?:attentions\.{_INDEX}\.(?:relative_key\.weight|relative_query\.(?:weight|bias)"
    r"|(?:qkv|output)_center)"
    rf"|ffns\.{_INDEX}\.(?:gate\.(?:weight|bias)|(?:up|down)_center)"
    rf"|adapters\.{_INDEX}\.(?:(?:{'|'.join(PROJECTIONS)})\.[ab]"
    r"|(?:attention|ffn)_norm\.(?:weight|bias)"
    r"|(?:attention|ffn)_bottleneck\.(?:down|down_bias|up|up_bias))"
    r"|relative\.(?:table\.weight|norm\.(?:weight|bias))"
    r"|depths\.weight|activation_ranges|final_norm\.(?:weight|bias))"
)
_OUR_BLOCK: Final = re.compile(rf"encoder\.(attentions|ffns)\.{_INDEX}\.([a-z]+)\.(weight|bias)")
_PUBLISHED_BLOCK: Final = re.compile(
    rf"encoder\.albert_layer_groups\.{_INDEX}\.albert_layers\.{_INDEX}\.([A-Za-z_.]+)\.(weight|bias)"
)
_PUBLISHED_PREFIX: Final = "albert."
_OUR_PREFIX: Final = "model."


def head_part(name: str) -> str | None:
    """Return the head that a weight of ours belongs to, `exits`, `pooler`, or None for the encoder."""
    if name.startswith("heads."):
        return name.split(".", 2)[1]
    if name in EXIT_KEYS:
        return "exits"
    return "pooler" if name.startswith("pooler.") else None


def to_published(name: str, *, inner: int, head: str | None) -> str:
    """Return the published name of a weight of ours.

    Args:
        name: our name without the `model.` prefix, for example `encoder.ffns.3.up.bias`.
        inner: `inner_group_num`; stored block b is inner block `b % inner` of group `b // inner`.
        head: head word of the model; with a head the encoder's names start with `albert.`.

    Raises:
        CheckpointError: there is no such weight in the published layout.
    """
    if name in EXIT_KEYS:
        return name
    prefix = _PUBLISHED_PREFIX if HEAD_PARTS[head] else ""
    for part in HEAD_PARTS[head]:
        for ours, theirs in _HEADS[part]:
            if name.startswith(ours):
                return theirs + name[len(ours) :]
    for ours, theirs in _ENCODER:
        if name.startswith(ours):
            return prefix + theirs + name[len(ours) :]
    match = _OUR_BLOCK.fullmatch(name)
    if match:
        kind, block, layer, leaf = match.groups()
        theirs = dict(_BLOCK[kind]).get(layer)
        if theirs is not None:
            group, slot = divmod(int(block), inner)
            return (
                f"{prefix}encoder.albert_layer_groups.{group}.albert_layers.{slot}.{theirs}.{leaf}"
            )
    raise CheckpointError(
        f"the weight {name!r} has no published name for head {head!r}; "
        "models that transformers cannot compute are stored under our own names"
    )


def to_ours(name: str, *, inner: int, classifier: str | None) -> str | None:
    """Return our name of a published weight, or None if it is no weight of an ALBERT.

    Args:
        name: published name, with or without the `albert.` prefix.
        inner: `inner_group_num`.
        classifier: head that `classifier.*` belongs to: sequence, token or choice.
    """
    if name in EXIT_KEYS:
        return name
    heads = [part for part in _HEADS if part in (classifier, "mlm", "sentence_order", "span")]
    for part in heads:
        for ours, theirs in _HEADS[part]:
            if name.startswith(theirs):
                return _known(ours + name[len(theirs) :])
    name = name.removeprefix(_PUBLISHED_PREFIX)
    for ours, theirs in _ENCODER:
        if name.startswith(theirs):
            return _known(ours + name[len(theirs) :])
    match = _PUBLISHED_BLOCK.fullmatch(name)
    if match:
        group, slot, layer, leaf = match.groups()
        for kind, pairs in _BLOCK.items():
            for ours, theirs in pairs:
                if theirs == layer and int(slot) < inner:
                    return f"encoder.{kind}.{int(group) * inner + int(slot)}.{ours}.{leaf}"
    return None


@dataclass(frozen=True, slots=True)
class Resolved:
    """What the names in a weight file are to us."""

    sources: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    """Our name without prefix -> names in the file, more than one where a tied weight is repeated."""
    unknown: list[str] = field(default_factory=list[str])
    """Names in the file that no ALBERT has."""
    repeated: list[str] = field(default_factory=list[str])
    """Weights of ours that the file gives twice without being tied."""


def resolve(
    names: Iterable[str], *, inner: int, classifier: str | None, own_layout: bool
) -> Resolved:
    """Sort the names of a weight file by our weights; buffers that hold no weight are left out.

    Args:
        names: names in the file.
        inner: `inner_group_num`.
        classifier: head that a published `classifier.*` belongs to.
        own_layout: the file uses our names (`model_type` is "litebert").
    """
    found = Resolved()
    tied: dict[str, list[str]] = {}
    for name in names:
        if name.endswith("embeddings.position_ids"):
            continue
        plain = _modern(name)
        if own_layout:
            ours = _known(plain.removeprefix(_OUR_PREFIX))
        elif plain in _TIED:
            tied.setdefault(_TIED[plain], []).append(name)
            continue
        else:
            ours = to_ours(plain, inner=inner, classifier=classifier)
        if ours is None:
            found.unknown.append(name)
        elif ours in found.sources:
            found.repeated.append(ours)
        else:
            found.sources[ours] = [name]
    for ours, copies in tied.items():
        found.sources.setdefault(ours, []).extend(copies)
    return found


def _modern(name: str) -> str:
    """Early files call the LayerNorm's weight and bias gamma and beta."""
    stem, dot, leaf = name.rpartition(".")
    if stem.endswith(("LayerNorm", "full_layer_layer_norm")):
        return stem + dot + {"gamma": "weight", "beta": "bias"}.get(leaf, leaf)
    return name


def _known(name: str) -> str | None:
    """Return a name of ours if such a weight can exist, else None."""
    if name == "heads.mlm.bias" or name in EXIT_KEYS:
        return name
    stem, _, leaf = name.rpartition(".")
    if stem in _LAYERS:
        return name if leaf == "weight" or (leaf == "bias" and stem not in _TABLES) else None
    if _OPTIONS.fullmatch(name):
        return name
    match = _OUR_BLOCK.fullmatch(name)
    return name if match and match[3] in dict(_BLOCK[match[1]]) else None
