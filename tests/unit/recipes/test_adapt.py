"""Adaptation and losses through the recipe: plan, training, files, resuming, refusals."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from litebert.checkpoint.folder import load_model, save_model
from litebert.errors import SettingsError
from litebert.model.albert import AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.recipes.finetune.adapt import count_trained
from litebert.recipes.finetune.adapt_settings import AdaptSettings
from litebert.recipes.finetune.job import open_run, start_run
from litebert.recipes.finetune.run import new_model, run_plan
from litebert.recipes.finetune.settings import FinetuneSettings
from litebert.recipes.finetune.work import make_plan, work_of
from litebert.settings import build_settings
from litebert.train.events import Stepped
from litebert.train.finetune_loss import FinetuneLoss
from litebert.train.stop import StopRequest

WORDS = ("fine", "late", "dented")
H, STEPS = 32, 2
"""Of the model in `model_dir`: width, and depths of preset tiny."""
WITHOUT_DROPOUT = (
    "model.config.hidden_dropout_prob=0.0", "model.config.attention_probs_dropout_prob=0.0"
)  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "t.csv"
    rows = [f"parcel number {n} was {WORDS[n % 3]},{WORDS[n % 3]}" for n in range(45)]
    path.write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    return path


def settings(train: Path, model: Path | str, *told: str, **data: Any) -> FinetuneSettings:
    values = {
        "data": {"train": str(train)} | data,
        "model": {"source": str(model)},
        "train": {"epochs": 2.0, "batch_size": 16, "precision": "fp32", "threads": 1,
                  "guard": {"enabled": False}},
        "num_seeds": 1,
        "has_baselines": False,
    }  # fmt: skip
    return build_settings(FinetuneSettings, values, overrides=told)


def carry_out(wanted: FinetuneSettings, out: Path, stop_at: int | None = None) -> Any:
    plan, stop = make_plan(wanted), StopRequest()
    folder = start_run(plan, out, "litebert train t.csv")

    def listen(event: Any) -> None:
        if isinstance(event, Stepped) and event.step == stop_at:
            stop.request()

    return run_plan(plan, folder, on_event=listen, stop=stop), folder


def trained(model: AlbertWithHead) -> set[str]:
    return {name for name, p in model.named_parameters() if p.requires_grad}


def moved(folder: Path, base: Path) -> set[str]:
    """Weights that differ between the two folders, apart from heads."""
    one = load_model(folder).state_dict()
    two = load_model(base, "sequence", allow_new_head=True).state_dict()
    return {n for n in two if not n.startswith("heads.") and not torch.equal(one[n], two[n])}


@pytest.mark.parametrize(
    ("told", "part", "count"),
    [
        ("adapt.method=head", "", 0),
        ("adapt.method=lora", "query", STEPS * 8 * (4 * 2 * H + 2 * (H + 48))),
        ("adapt.method=norms", "attention_norm", STEPS * 4 * H),
        ("adapt.method=adapters", "ffn_bottleneck", STEPS * 2 * (2 * H * 16 + 16 + H)),
    ],
)
def test_a_method_trains_its_parts_and_nothing_else(
    table: Path, model_dir: Path, tmp_path: Path, told: str, part: str, count: int
) -> None:
    wanted = settings(table, model_dir, told)
    plan = make_plan(wanted)
    model = new_model(plan, None)
    assert model.config == plan.model.config.replace(litebert={"head": "sequence"})
    ends = H * H + H + 3 * H + 3  # pooler and head
    numbers = {n: p.numel() for n, p in model.named_parameters()}
    assert sum(numbers[name] for name in trained(model)) == count + ends
    line = next(line for line in plan.describe() if line.startswith("trains"))
    assert f"{count + ends:,} of {sum(numbers.values()):,} weights" in line
    _, folder = carry_out(wanted, tmp_path / "run")
    assert moved(folder.best, model_dir) <= {"model.pooler.weight", "model.pooler.bias"}
    last = f".adapters.{STEPS - 1}.{part}."
    own = [v for n, v in load_model(folder.best).state_dict().items() if part and last in n]
    assert all(value.any() for value in own) and bool(own) == bool(part)


def test_adding_parts_changes_no_output_and_a_trained_model_keeps_them(
    table: Path, model_dir: Path, tmp_path: Path
) -> None:
    plan = make_plan(settings(table, model_dir, "adapt.method=lora", "adapt.depth_norms=true"))
    torch.manual_seed(1)
    wide = new_model(plan, None)
    torch.manual_seed(1)
    plain = new_model(make_plan(settings(table, model_dir)), None)
    ids = torch.arange(12).view(2, 6)
    with torch.inference_mode():
        assert torch.equal(wide(ids).last_hidden_state, plain(ids).last_hidden_state)
    save_model(wide, tmp_path / "wide", plan.model.tokenizer, plan.task.to_json())
    again = make_plan(settings(table, tmp_path / "wide", "adapt.method=lora"))
    assert again.model.config.litebert.lora_rank == 8
    names = trained(new_model(again, None))
    assert names and all(
        ".query." in n or ".adapters." in n or "heads" in n or "pooler" in n for n in names
    )
    assert not any("_norm." in n for n in names)
    with pytest.raises(SettingsError, match="lora_rank is 4, but the model has lora_rank 8"):
        make_plan(settings(table, tmp_path / "wide", "adapt.lora_rank=4"))
    with pytest.raises(SettingsError, match="the model has its own"):
        make_plan(settings(table, tmp_path / "wide", "adapt.method=lora", "adapt.lora_alpha=4"))


def test_parts_named_in_the_configuration_are_added_to_a_folder(
    table: Path, model_dir: Path
) -> None:
    told = ("model.config.litebert.lora_rank=2", "model.config.litebert.depth_embeddings=true")
    model = new_model(make_plan(settings(table, model_dir, *told)), None)
    assert model.config.litebert.lora_rank == 2 and model.config.litebert.depth_embeddings
    assert trained(model) == set(dict(model.named_parameters()))


def test_freezing_by_part_and_pattern(table: Path, model_dir: Path, tmp_path: Path) -> None:
    told = ("adapt.freeze=embeddings,attention", "adapt.train=[]")
    _, folder = carry_out(settings(table, model_dir, *told), tmp_path / "run")
    changed = moved(folder.best, model_dir)
    assert changed and all(".ffns." in n or ".norm." in n or "pooler" in n for n in changed)
    text = "\n".join(make_plan(settings(table, model_dir, *told)).describe())
    assert "without embeddings, attention" in text
    told = ("adapt.method=head", "adapt.train=encoder.ffns.0.up.*")
    names = trained(new_model(make_plan(settings(table, model_dir, *told)), None))
    assert {n for n in names if ".encoder." in n} == {
        "model.encoder.ffns.0.up.weight", "model.encoder.ffns.0.up.bias"
    }  # fmt: skip


@pytest.mark.parametrize(
    ("told", "message"),
    [
        ("adapt.freeze=poler", "did you mean 'pooler'"),
        ("adapt.freeze=lora", "no weights in 'lora'"),
        ("adapt.methods=lora", "did you mean 'adapt.method'|did you mean 'method'"),
        ("adapt.method=prefix", "Input should be 'full', 'lora'"),
        ("adapt.lora_alpha=4", "there are no low-rank updates"),
        ("loss.class_weights.fine2=2", "did you mean 'fine'"),
        ("loss.label_smoothing=1.5", "less than 1"),
        ("train.depth_decay=0", "greater than 0"),
        ("train.averaging.kind=mean", "Input should be 'ema' or 'swa'"),
    ],
)
def test_refused_before_anything_is_trained(
    table: Path, model_dir: Path, told: str, message: str
) -> None:
    with pytest.raises(SettingsError, match=message):
        make_plan(settings(table, model_dir, told))


def test_random_weights_are_no_base_for_adapters(table: Path) -> None:
    with pytest.raises(SettingsError, match="which would stay random"):
        make_plan(settings(table, "tiny", "adapt.method=lora", "model.vocab_size=80"))
    plan = make_plan(settings(table, "tiny", "adapt.freeze=embeddings", "model.vocab_size=80"))
    assert not any("embeddings" in name for name in trained(new_model(plan, None)))


def test_losses_of_the_run(table: Path, model_dir: Path) -> None:
    assert work_of(make_plan(settings(table, model_dir))).step_loss is None
    told = ("loss.label_smoothing=0.1", "loss.class_weights=balanced", "loss.r_drop=1")
    plan = make_plan(settings(table, model_dir, *told, *WITHOUT_DROPOUT))
    loss = work_of(plan).step_loss
    assert isinstance(loss, FinetuneLoss) and loss.weights == {"loss": 1.0, "r_drop": 1.0}
    text = "\n".join(plan.describe())
    for words in ("labels smoothed by 0.1", "class weights dented ", "R-Drop 1", "only the head"):
        assert words in text
    told = ("loss.r_drop=1", "model.config.classifier_dropout_prob=0.0", *WITHOUT_DROPOUT)
    with pytest.raises(SettingsError, match=r"set model.config.hidden_dropout_prob"):
        make_plan(settings(table, model_dir, *told))


@pytest.mark.parametrize("told", ["loss.label_smoothing=0.1", "loss.class_weights=balanced"])
def test_numbers_have_no_classes(tmp_path: Path, model_dir: Path, told: str) -> None:
    path = tmp_path / "n.csv"
    rows = [f"parcel number {n},{n % 7}.5" for n in range(40)]
    path.write_text("text,label\n" + "\n".join(rows) + "\n", encoding="utf-8")
    with pytest.raises(SettingsError, match="the labels are numbers"):
        make_plan(settings(path, model_dir, told, kind="regression"))
    plan = make_plan(settings(path, model_dir, "loss.r_drop=0.5", kind="regression"))
    assert isinstance(work_of(plan).step_loss, FinetuneLoss)


def test_tasks_with_losses_of_their_own_are_refused(tmp_path: Path, model_dir: Path) -> None:
    path = tmp_path / "people.conll"
    path.write_text("".join(f"Mira{n} B-PER\nsings O\n\n\n" for n in range(20)), encoding="utf-8")
    plan = make_plan(settings(path, model_dir, "loss.label_smoothing=0.1", task="tagging"))
    assert isinstance(work_of(plan).step_loss, FinetuneLoss)
    assert any("smoothed" in line for line in plan.describe())
    pairs = tmp_path / "pairs.tsv"
    lines = [f"a parcel {n}\ta letter {n}\t{n % 5}" for n in range(30)]
    pairs.write_text("\n".join(["sentence1\tsentence2\tscore", *lines]) + "\n", encoding="utf-8")
    with pytest.raises(SettingsError, match="labels of texts and of tokens"):
        make_plan(settings(pairs, model_dir, "loss.label_smoothing=0.1", task="similarity"))


EVERYTHING = (
    "adapt.method=lora",
    "adapt.depth_norms=true",
    "loss.r_drop=0.5",
    "loss.label_smoothing=0.1",
    "loss.class_weights=inverse_sqrt",
    "train.averaging.start_fraction=0.3",
    "train.depth_decay=0.7",
    "model.config.hidden_dropout_prob=0.1",
)


def test_all_together_and_resumed_exactly(table: Path, model_dir: Path, tmp_path: Path) -> None:
    wanted = settings(table, model_dir, *EVERYTHING)
    _, whole = carry_out(wanted, tmp_path / "whole")
    stopped, folder = carry_out(wanted, tmp_path / "run", stop_at=3)
    assert stopped.is_interrupted
    opened, again = open_run(folder.path)
    plan = make_plan(again)
    assert plan.settings == make_plan(wanted).settings
    run_plan(plan, opened, on_event=lambda event: None, stop=StopRequest(), resume=True)
    for name in ("model-best", "model-last"):
        weights = (folder.path / name / "model.safetensors").read_bytes()
        assert weights == (whole.path / name / "model.safetensors").read_bytes()
    text = "\n".join(plan.describe())
    for words in ("low-rank updates of rank 8", "each depth counts 0.7", "averaging ema"):
        assert words in text


def test_counting_needs_no_weights() -> None:
    config = AlbertConfig.from_dict(
        {"vocab_size": 30_000, "embedding_size": 128, "hidden_size": 4096, "num_hidden_layers": 12,
         "num_attention_heads": 64, "intermediate_size": 16_384, "litebert": {"lora_rank": 8}}
    )  # fmt: skip
    found = count_trained(config, "sequence", AdaptSettings(method="lora"))
    assert found.trained == 12 * 8 * (4 * 8192 + 2 * 20_480) + 4096**2 + 4096 + 2 * 4096 + 2
    assert found.describe().endswith(" %)") or found.describe().endswith("%)")


def test_the_estimate_knows_what_is_trained(table: Path, model_dir: Path) -> None:
    def megabytes(*told: str) -> int:
        line = make_plan(settings(table, model_dir, *told, "train.precision=fp32")).estimate()[1]
        return int(line.split("about ")[1].split(" MB")[0].replace(",", ""))

    wide = ("model.config.litebert.lora_rank=4096",)  # so that weights count
    every, few = megabytes(*wide), megabytes(*wide, "adapt.method=head")
    assert few < every < megabytes(*wide, "train.averaging.kind=ema")


def test_few_examples_learn_from_pairs_only_without_options(table: Path, model_dir: Path) -> None:
    def plan_of(*told: str, **more: Any) -> Any:
        values = {"data": {"train": str(table)}, "model": {"source": str(model_dir)}} | more
        return make_plan(build_settings(FinetuneSettings, values, overrides=told))

    assert plan_of().is_few_shot
    assert not plan_of("adapt.method=lora").is_few_shot
    assert not plan_of("loss.label_smoothing=0.1").is_few_shot
    with pytest.raises(SettingsError, match="few_shot trains the whole encoder"):
        plan_of("adapt.method=lora", few_shot=True)
