"""Factorised embeddings: token + position + segment at size E, LayerNorm, then E -> H."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from litebert.errors import DataError
from litebert.model.config import AlbertConfig
from litebert.model.norm import LayerNorm

__all__ = ["Embeddings"]


class Embeddings(nn.Module):
    """Token, position and segment embeddings, summed and normalised, projected to the hidden size.

    Dropout stands after the LayerNorm, before the projection. The projection is left out where
    E = H. Source: official `modeling.py`, `embedding_lookup`, `embedding_postprocessor`,
    `transformer_model`.
    Differs from transformers: the gradient of the padding token is not blocked; padding is never
    looked up, and where a padding token is meant as input it learns like any other.
    """

    def __init__(self, config: AlbertConfig) -> None:
        super().__init__()
        size = config.embedding_size
        self.token = nn.Embedding(config.vocab_size, size)
        has_table = config.litebert.has_position_table
        self.position = nn.Embedding(config.max_position_embeddings, size) if has_table else None
        self.token_type = nn.Embedding(config.type_vocab_size, size)
        self.norm = LayerNorm(size, eps=config.layer_norm_eps)
        self.project = nn.Linear(size, config.hidden_size) if config.has_projection else None
        self.dropout_prob = config.hidden_dropout_prob

    def forward(
        self,
        input_ids: Int[Tensor, "*tokens"],
        token_type_ids: Int[Tensor, "*tokens"] | None,
        position_ids: Int[Tensor, "*tokens"] | Int[Tensor, " S"],
    ) -> Float[Tensor, "*tokens H"]:
        """Return the input of the first block.

        Args:
            input_ids: in [0, V).
            token_type_ids: in [0, token types); None: all 0.
            position_ids: in [0, positions); not looked at by a model without a table of positions.

        Raises:
            DataError: an id outside its table. Checked on the CPU; a CUDA device stops by itself.
        """
        summed = self._look_up(self.token, input_ids, "input_ids", "vocab_size")
        if token_type_ids is None:
            summed = summed + self.token_type.weight[0]
        else:
            summed = summed + self._look_up(
                self.token_type, token_type_ids, "token_type_ids", "type_vocab_size"
            )
        if self.position is not None:
            summed = summed + self._look_up(
                self.position, position_ids, "position_ids", "max_position_embeddings"
            )
        hidden = self.norm(summed)
        if self.training and self.dropout_prob:
            hidden = functional.dropout(hidden, self.dropout_prob)
        return hidden if self.project is None else self.project(hidden)

    def _look_up(self, table: nn.Embedding, ids: Tensor, name: str, size_name: str) -> Tensor:
        try:
            return functional.embedding(ids, table.weight)
        except IndexError as error:
            raise DataError(
                f"{name} has values from {int(ids.min())} to {int(ids.max())}, allowed are 0 to "
                f"{table.num_embeddings - 1} ({size_name} = {table.num_embeddings}); "
                "does the tokenizer belong to this model?"
            ) from error
