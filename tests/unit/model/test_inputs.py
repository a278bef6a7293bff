"""What a model is called with: tensors of the right kind pass, anything else is named in the error."""

from __future__ import annotations

import pytest
import torch

from litebert.errors import DataError, SettingsError
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.model.presets import preset

CONFIG = AlbertConfig.from_dict(
    {
        "vocab_size": 40,
        "embedding_size": 4,
        "hidden_size": 8,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 12,
        "max_position_embeddings": 8,
    }
)
IDS = torch.tensor([[2, 5, 3], [2, 6, 3]])
ONES = torch.ones_like(IDS)


@pytest.fixture(scope="module")
def model() -> AlbertModel:
    return AlbertModel(CONFIG).eval()


@pytest.mark.parametrize(
    "ids", [[[2, 5, 3]], None, "text", IDS.numpy()], ids=["list", "None", "text", "array"]
)
def test_ids_that_are_no_tensor_are_refused(model, ids):
    with pytest.raises(DataError, match="input_ids must be a torch tensor"):
        model(ids)


@pytest.mark.parametrize("kind", [torch.float32, torch.bool, torch.int16, torch.uint8])
def test_ids_of_another_type_are_refused(model, kind):
    for inputs in ((IDS.to(kind),), (IDS, ONES, ONES.to(kind)), (IDS, ONES, None, ONES.to(kind))):
        with pytest.raises(DataError, match=r"has the type torch\.\w+, allowed are torch.int64"):
            model(*inputs)


@pytest.mark.parametrize("value", [-10_000.0, float("-inf"), float("nan"), 0.5, 2.0])
def test_masks_of_another_convention_are_refused(model, value):
    mask = ONES.float()
    mask[0, 2] = value
    with pytest.raises(DataError, match="allowed are 1 for tokens and 0 for padding"):
        model(IDS, mask)


def test_a_mask_of_any_type_says_the_same(model):
    mask = torch.tensor([[1, 1, 0], [1, 1, 1]])
    expected = model(IDS, mask).last_hidden_state
    for kind in (torch.bool, torch.float32, torch.float16, torch.uint8, torch.int32):
        assert torch.equal(model(IDS, mask.to(kind)).last_hidden_state, expected)


def test_masks_and_segments_that_are_lists_are_refused(model):
    with pytest.raises(DataError, match="attention_mask must be a torch tensor, got list"):
        model(IDS, [[1, 1, 1], [1, 1, 0]])
    with pytest.raises(DataError, match="token_type_ids must be a torch tensor, got list"):
        model(IDS, ONES, [[0, 0, 0], [0, 0, 0]])


@pytest.mark.parametrize(
    ("head", "labels", "message"),
    [
        ("sequence", [0, 1], "labels must be a torch tensor, got list"),
        ("span", (ONES[:, 0], ONES[:, 0]), "labels must be a torch tensor, got tuple"),
        ("pretraining", [1, 2], "labels must be a torch tensor"),
        ("pretraining", {"mlm": IDS, "sentence_order": [0, 1]}, "labels of sentence_order must be"),
        ("mlm", IDS + 0.5, "labels of mlm has the type torch.float32"),
        ("token", ONES.bool(), "labels of token has the type torch.bool"),
    ],
)
def test_labels_of_another_kind_are_refused(head, labels, message):
    with pytest.raises(DataError, match=message):
        AlbertWithHead(CONFIG, head)(IDS, labels=labels)


def test_fractional_classes_are_refused():
    model = AlbertWithHead(CONFIG.replace(problem_type="single_label_classification"), "sequence")
    with pytest.raises(DataError, match="expected class indices"):
        model(IDS, labels=torch.tensor([0.0, 0.7]))


def test_choices_that_are_no_tensor_are_refused():
    with pytest.raises(DataError, match="every input must be a torch tensor, got list"):
        AlbertWithHead(CONFIG, "choice")([[[2, 3], [2, 3]]])


@pytest.mark.parametrize("config", [None, {"hidden_size": 8}, "tiny", 3])
def test_what_is_no_configuration_is_refused(config):
    for make in (AlbertModel, AlbertWithHead):
        with pytest.raises(SettingsError, match="config must be an AlbertConfig"):
            make(config)


@pytest.mark.parametrize("values", [None, [1], "abc", 3])
def test_a_configuration_is_a_table(values):
    with pytest.raises(SettingsError, match="expected a table"):
        AlbertConfig.from_dict(values)
    with pytest.raises(SettingsError, match="unknown preset"):
        preset(str(values))
    with pytest.raises(SettingsError, match="unknown preset"):
        preset(None)
