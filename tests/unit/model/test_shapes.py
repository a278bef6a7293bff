"""The shapes in the signatures are true: every head runs with each of them checked."""

from __future__ import annotations

import subprocess
import sys

import pytest

CHECKED = """
import warnings
warnings.simplefilter("ignore")
from jaxtyping import install_import_hook
names = "albert backbone attend embeddings encoder heads layers losses packing resharing simple_start"
with install_import_hook(["litebert.model." + name for name in names.split()], "beartype.beartype"):
    from litebert.model import albert, resharing, simple_start
    from litebert.model.config import AlbertConfig
    from litebert.model.head_kinds import HEADS
    from litebert.model.packing import Packing
import torch
for sharing, kv in (("groups", None), ("attention_only", 1)):
    for head in HEADS:
        config = AlbertConfig.from_dict(dict(
            vocab_size=20, embedding_size=8, hidden_size=12, num_hidden_layers=2,
            num_attention_heads=3, intermediate_size=16, hidden_dropout_prob=0.1,
            attention_probs_dropout_prob=0.1,
            litebert=dict(sharing=sharing, num_key_value_heads=kv)))
        model = albert.AlbertWithHead(config, head)
        simple_start.start_simple(model, torch.randn(20, 8))
        ids, mask = torch.ones(4, 5, dtype=torch.long), torch.ones(4, 5)
        mask[1, 2:] = mask[2, :3] = mask[3] = 0
        types = torch.zeros_like(ids)
        one, tokens = torch.tensor([0, 1, 1, 0]), torch.zeros_like(ids)
        labels = {"mlm": tokens, "token": tokens, "sequence": one, "sentence_order": one,
            "pretraining": {"mlm": tokens, "sentence_order": one}, "embedding": None,
            "span": torch.zeros(4, 2, dtype=torch.long), "choice": torch.tensor([0, 1]),
            "span_joint": torch.zeros(4, 4, dtype=torch.long)}[head]
        inputs = (ids, mask, types)
        if head == "choice":
            inputs = tuple(part.view(2, 2, 5) for part in inputs)
        for train in (True, False):
            out = model.train(train)(*inputs, labels=labels,
                output_hidden_states=True, output_attentions=True)
            if out.loss is not None:
                out.loss.backward()
        model.forward_packed(ids.view(-1)[:9], Packing.from_lengths([4, 5]),
            types.view(-1)[:9] if head == "span_joint" else None, num_choices=2 if head == "choice" else None)
    resharing.resize_vocabulary(resharing.set_depth(resharing.unshare(model), 1), 30)
try:
    model.model(torch.ones(2, 3))  # floats where ids belong
except Exception as error:
    print("caught", type(error).__module__.split(".")[0])
"""


@pytest.mark.slow
def test_signatures_tell_the_truth():
    result = subprocess.run(
        [sys.executable, "-c", CHECKED], capture_output=True, text=True, timeout=200, check=False
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert "caught jaxtyping" in result.stdout or "caught beartype" in result.stdout, result.stdout
