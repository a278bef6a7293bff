"""Generator and discriminator in one module, sharing what the settings say.

With `share = "all"` there is one block and one set of embeddings: the generator is the same
encoder run to a smaller depth, so that it costs no weights but its prediction head.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from litebert.errors import SettingsError
from litebert.model.albert import AlbertModel, AlbertWithHead
from litebert.model.config import AlbertConfig
from litebert.model.encoder import Checkpointing
from litebert.model.heads import ClassifierHead, MlmHead, ReplacedTokenHead
from litebert.model.layers import init_weights
from litebert.model.packing import Packing
from litebert.objectives.rtd import RtdSettings

__all__ = ["BorrowedTable", "RtdModel"]


class BorrowedTable(nn.Module):
    """Stands for an embedding table that another module owns.

    With a difference it is `stop_gradient(table) + difference`: the borrower does not move what
    it borrows, and learns what it needs beside it. Source: He et al. 2021 (DeBERTaV3), section 3.2.
    """

    def __init__(self, owner: nn.Embedding, *, has_difference: bool = False) -> None:
        super().__init__()
        self._owner = (owner,)  # in a tuple, so that the weights are registered with the owner only
        self.num_embeddings = owner.num_embeddings
        self.difference = nn.Parameter(torch.zeros_like(owner.weight)) if has_difference else None
        self.is_owner_asked = False

    @property
    def weight(self) -> Tensor:
        """The table [V, E]; the owner's as it is while `is_owner_asked`."""
        table = self._owner[0].weight
        if self.difference is None or self.is_owner_asked:
            return table
        return table.detach() + self.difference


class RtdModel(nn.Module):
    """A discriminator to keep, and a generator to train it with.

    Attributes:
        config: of the discriminator.
        model: the discriminator's encoder.
        generator: the generator's encoder; None: `model`, run to `generator_depth`.
        heads: `mlm` (of the generator), `replaced`, and `sentence_order` if asked for.
        table: the token table that generator and discriminator share; None for `share = "none"`.
    """

    def __init__(self, config: AlbertConfig, settings: RtdSettings, *, has_order: bool) -> None:
        super().__init__()
        self.config = config.replace(litebert={"head": "sentence_order" if has_order else None})
        self.share = settings.share
        self.generator_depth = settings.generator_depth or max(1, config.num_hidden_layers // 3)
        self.model = AlbertModel(self.config, add_pooler=has_order)
        narrow = self._generator_config(settings)
        self.generator = None if self.share == "all" else AlbertModel(narrow, add_pooler=False)
        self.heads = nn.ModuleDict({"mlm": MlmHead(narrow), "replaced": ReplacedTokenHead(config)})
        if has_order:
            self.heads["sentence_order"] = ClassifierHead(
                config.hidden_size, config.num_labels, 0.0
            )
        init_weights(self.heads, config.initializer_range)
        self.table = None if self.share == "none" else self._share_tables(settings.disentangle)

    def _generator_config(self, settings: RtdSettings) -> AlbertConfig:
        config, width = self.config, settings.generator_hidden_size
        depth = self.generator_depth
        if depth > config.num_hidden_layers:
            raise SettingsError(
                f"rtd.generator_depth is {depth}, the model has {config.num_hidden_layers} depths; "
                "a generator should be smaller than the model it trains"
            )
        if self.share == "all":
            if width not in (None, config.hidden_size):
                raise SettingsError(
                    f'rtd.generator_hidden_size is {width}, but with share = "all" the block is '
                    f'that of the model ({config.hidden_size}); use share = "embeddings"'
                )
            return config
        width = width or config.hidden_size
        head_size = config.head_size
        if width % head_size:
            raise SettingsError(
                f"rtd.generator_hidden_size is {width}; allowed are multiples of the size of an "
                f"attention head, {head_size}"
            )
        heads = width // head_size
        return config.replace(
            num_hidden_layers=depth,
            num_hidden_groups=1,
            inner_group_num=1,
            hidden_size=width,
            num_attention_heads=heads,
            intermediate_size=max(1, config.intermediate_size * width // config.hidden_size),
            litebert={
                "sharing": "all",
                "num_key_value_heads": None,
                "head_size": None,
                "head": None,
            },
        )

    def _share_tables(self, is_disentangled: bool) -> nn.Embedding:
        """Give the one token table to this module, and lend it to both encoders."""
        own = self.model.embeddings
        table = own.token
        own.token = BorrowedTable(table, has_difference=is_disentangled)  # pyright: ignore[reportAttributeAccessIssue]
        if self.generator is not None:
            other = self.generator.embeddings
            other.token = BorrowedTable(table)  # pyright: ignore[reportAttributeAccessIssue]
            other.token_type = BorrowedTable(own.token_type)  # pyright: ignore[reportAttributeAccessIssue]
            if own.position is not None:
                other.position = BorrowedTable(own.position)  # pyright: ignore[reportAttributeAccessIssue]
        return table

    @property
    def generator_table(self) -> Float[Tensor, "V E"]:
        """The token table of the generator."""
        if self.table is not None:
            return self.table.weight
        assert self.generator is not None  # noqa: S101 - "none" has a generator of its own
        return self.generator.embeddings.token.weight

    def generator_hidden(
        self,
        input_ids: Int[Tensor, " T"],
        packing: Packing,
        token_type_ids: Int[Tensor, " T"],
        position_ids: Int[Tensor, " T"],
    ) -> Float[Tensor, "T G"]:
        """Return the generator's hidden states, G its width."""
        inputs = (input_ids, packing, token_type_ids, position_ids)
        if self.generator is not None:
            return self.generator.forward_packed(*inputs).last_hidden_state
        with self._as_generator():
            return self.model.forward_packed(*inputs).last_hidden_state

    @contextmanager
    def _as_generator(self) -> Generator[None]:
        """Run the shared encoder to the generator's depth, with the generator's token table."""
        encoder, table = self.model.encoder, self.model.embeddings.token
        before = encoder.active_depth
        encoder.active_depth = min(self.generator_depth, before or self.generator_depth)
        if isinstance(table, BorrowedTable):
            table.is_owner_asked = True
        try:
            yield
        finally:
            encoder.active_depth = before
            if isinstance(table, BorrowedTable):
                table.is_owner_asked = False

    def set_checkpointing(self, value: Checkpointing) -> None:
        """Choose what is recomputed in the backward pass; see `Encoder.set_checkpointing`.

        Raises:
            SettingsError: no such choice.
        """
        self.model.set_checkpointing(value)
        if self.generator is not None:
            self.generator.set_checkpointing(value)

    def set_active_depth(self, depths: int | None) -> None:
        """Run the first depths of the discriminator only; the generator is no deeper.

        Raises:
            SettingsError: no such number.
        """
        self.model.set_active_depth(depths)

    @torch.no_grad()
    def encoder_model(self) -> AlbertModel | AlbertWithHead:
        """Return the discriminator as an ordinary model, with copies of its weights.

        With the head `sentence_order` if it was trained, else without a head. The generator, the
        head that finds replaced tokens, and the way tables were shared are gone.
        """
        if "sentence_order" in self.heads:
            kept: AlbertModel | AlbertWithHead = AlbertWithHead(self.config, "sentence_order")
            kept.heads["sentence_order"].load_state_dict(self.heads["sentence_order"].state_dict())
            encoder = kept.model
        else:
            kept = encoder = AlbertModel(self.config, add_pooler=False)
        weights = {
            name: tensor
            for name, tensor in self.model.state_dict().items()
            if not name.startswith("embeddings.token.")
        }
        weights["embeddings.token.weight"] = self.model.embeddings.token.weight.detach()
        encoder.load_state_dict(weights)
        device, dtype = self.generator_table.device, self.generator_table.dtype
        return kept.to(device=device, dtype=dtype).train(self.training)
