"""Tiny BERT folders as transformers writes them, with a WordPiece vocabulary of their own."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_SENTENCE = (
    "the kettle lamp chair parcel radio book ladder carpet is fine broken lovely late dented quiet "
    "heavy green and a boat sails to far harbour at night . , ##s ##ing"
)
WORDS = tuple(_SENTENCE.split())
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
SIZES: dict[str, Any] = {
    "vocab_size": len(VOCABULARY),
    "hidden_size": 16,
    "num_hidden_layers": 3,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 40,
    "type_vocab_size": 2,
}


def write_vocabulary(folder: Path) -> None:
    """Write `vocab.txt` and its settings."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", "utf-8")
    settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings), "utf-8")


def make_bert(folder: Path, kind: str = "BertModel", *, seed: int = 0, **changes: Any) -> Any:
    """Write a folder with random weights (also of biases and LayerNorms); return their model."""
    import torch
    import transformers

    library: Any = transformers
    torch.manual_seed(seed)
    family = kind.removesuffix("Model").partition("For")[0]
    config = getattr(library, f"{family}Config")(**(SIZES | changes))
    model = getattr(library, kind)(config).eval()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            is_gain = "LayerNorm.weight" in name
            weight.copy_(torch.randn_like(weight) * 0.2 + (1.0 if is_gain else 0.0))
    write_vocabulary(folder)
    model.save_pretrained(folder)
    return model
