"""Wiring of `litebert data check`: source, schema and tokenizer into one report."""

from __future__ import annotations

from pathlib import Path

from litebert.data.check import check_data
from litebert.data.examples import example_texts, make_examples
from litebert.data.report import DataReport
from litebert.data.sources import load_source
from litebert.recipes.finetune.own_vocabulary import train_own_vocabulary
from litebert.recipes.finetune.settings import DataSettings, ModelSettings
from litebert.recipes.run_folder import model_folder
from litebert.text.tokenizer import Tokenizer

__all__ = ["run_check"]


def run_check(
    data: Path,
    evaluation: Path | None = None,
    *,
    task: str | None = None,
    tokenizer: Path | None = None,
    max_length: int = 128,
    text_columns: tuple[str, ...] | None = None,
    label_column: str | None = None,
    encoding: str | None = None,
) -> DataReport:
    """Check a data set; arguments as the command line has them.

    Raises:
        DataError: no usable record.
        SettingsError: a column or reader that does not exist.
        CheckpointError: `tokenizer` is no model folder.
    """
    source = load_source(data, task, eval_path=evaluation, encoding=encoding, on_bad_row="skip")
    schema = source.schema(text_columns=text_columns, label_column=label_column)
    if tokenizer is not None:
        pieces = Tokenizer.from_pretrained(model_folder(tokenizer))
    else:
        # What training from scratch would use; its unknown pieces are those of the eval texts.
        texts = example_texts(make_examples(source.train, schema, "skip", skipped=[]))
        pieces = train_own_vocabulary(ModelSettings(), texts) if texts else None
    return check_data(
        source.train,
        source.eval,
        schema=schema,
        tokenizer=pieces,
        max_length=max_length,
        eval_fraction=DataSettings(train=str(data)).eval_fraction,  # the split of `train`
    )
