"""Multiple-choice questions: the files of public data sets, and tables, as one kind of record."""

from litebert.data.choices.reader import CHOICE_READERS, read_choices
from litebert.data.choices.record import ChoiceRecord

__all__ = ["CHOICE_READERS", "ChoiceRecord", "read_choices"]
