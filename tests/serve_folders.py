"""Tiny exported folders, one for each kind of model that can be served."""

from __future__ import annotations

import hashlib
import json
from functools import cache
from pathlib import Path
from typing import Any

WORDS = ("kettle", "lamp", "chair", "parcel", "radio", "book", "ladder", "carpet", "anna", "berlin")
TEXTS = [f"the {a} near the {b} is fine, she said" for a in WORDS for b in WORDS]
KINDS = ("classify", "pair", "embed", "ner", "intent", "qa", "choice", "words", "score", "many")


@cache
def _tokenizer(root: Path) -> Any:
    from litebert.text.vocabulary import train_vocabulary

    return train_vocabulary(TEXTS, 70, root / "vocabulary")


def task_of(kind: str) -> Any:
    """The task of a kind; None for encoders and word predictors."""
    from litebert.tasks.choice import MultipleChoice
    from litebert.tasks.classification import SequenceClassification
    from litebert.tasks.joint_tagging import IntentSlots
    from litebert.tasks.span import SquadTask
    from litebert.tasks.tagging import SequenceTagging

    if kind in ("embed", "words"):
        return None
    if kind == "ner":
        return SequenceTagging(types=("LOC", "PER"), max_length=48)
    if kind == "intent":
        return IntentSlots(types=("thing",), intents=("find", "order"), max_length=48)
    if kind == "qa":
        return SquadTask(max_length=48, max_query_length=16, doc_stride=16)
    if kind == "choice":
        return MultipleChoice(max_length=48)
    options: dict[str, dict[str, Any]] = {
        "classify": {"kind": "multiclass", "labels": ("bad", "good", "so-so"), "metric": "accuracy"},
        "many": {"kind": "multilabel", "labels": ("late", "broken"), "metric": "micro_f1"},
        "score": {"kind": "regression", "labels": (), "metric": "pearson"},
        "pair": {"kind": "binary", "labels": ("no", "yes"), "metric": "accuracy",
                 "text_columns": ("first", "second")},
    }  # fmt: skip
    return SequenceClassification(**(options[kind] | {"max_length": 32}))


def make_folder(kind: str, root: Path, *, seed: int = 7, precision: str = "fp32") -> Path:
    """Write the export of a tiny model of random weights; return its folder."""
    import torch

    from litebert.checkpoint.folder import save_model
    from litebert.export.onnx.packed import packed_model
    from litebert.export.onnx.source import load_source, make_precision
    from litebert.model.albert import AlbertModel, AlbertWithHead
    from litebert.model.presets import preset

    task = task_of(kind)
    head = "mlm" if kind == "words" else None if task is None else task.head
    tokenizer = _tokenizer(root.parent)
    labels: dict[str, Any] = {} if task is None else {"id2label": task.config_labels()}
    if getattr(task, "problem_type", None):
        labels["problem_type"] = task.problem_type
    config = preset("tiny", vocab_size=tokenizer.vocab_size).replace(
        hidden_size=32, embedding_size=16, num_attention_heads=2, intermediate_size=48,
        max_position_embeddings=64, **labels, litebert={} if head is None else {"head": head},
    )  # fmt: skip
    torch.manual_seed(seed)
    model = AlbertModel(config) if head is None else AlbertWithHead(config, head)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "head" in name:
                parameter.mul_(20.0)  # answers that differ from text to text
    plain = root / f"{kind}-model"
    save_model(model, plain, tokenizer, None if task is None else task.to_json())
    out = root / kind
    (out / "onnx").mkdir(parents=True)
    for path in plain.iterdir():
        if path.suffix != ".safetensors":
            (out / path.name).write_bytes(path.read_bytes())
    source = load_source(plain)
    data = packed_model(source.parts, make_precision(precision, source)).SerializeToString()
    (out / "onnx" / "litebert.onnx").write_bytes(data)
    entry = {"sha256": hashlib.sha256(data).hexdigest(), "precision": precision, "form": "packed"}
    text = json.dumps({"format_version": 1, "files": {"onnx/litebert.onnx": entry}})
    (out / "export.json").write_text(text)
    return out
