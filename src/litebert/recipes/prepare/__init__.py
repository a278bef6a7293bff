"""`litebert prepare`: documents to sentences to token ids to shards, on all cores, in constant memory."""

from litebert.recipes.prepare.run import PrepareOutcome, PrepareProgress, prepare_corpus
from litebert.recipes.prepare.settings import PrepareSettings

__all__ = ["PrepareOutcome", "PrepareProgress", "PrepareSettings", "prepare_corpus"]
