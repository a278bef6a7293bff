"""Keys found in published `config.json` files that are not sizes of the model.

Three kinds: ignored (they change nothing we compute), fixed (only one value is this model),
and BERT's own (a sign that the weights may be BERT's).
"""

from __future__ import annotations

from typing import Any, Final

MAX_CONFIG_BYTES: Final = 4 * 1024 * 1024
"""A real configuration has a few KB; a label table of 10,000 classes fits too."""

MAX_LABELS: Final = 1_000_000
"""Largest `num_labels` for which names are made up."""

REQUIRED_KEYS: Final = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
)

IGNORED_KEYS: Final = frozenset(
    {
        # official TensorFlow release
        "down_scale_factor", "gap_size", "layers_to_keep", "net_structure_type", "num_memory_blocks",
        "ln_type",
        # PL-BERT writes it; no ALBERT reads it
        "dropout", "classifier_dropout",
        # written by releases of transformers
        "_attn_implementation_autoset", "_commit_hash", "_name_or_path", "architectures",
        "attn_implementation", "bad_words_ids", "begin_suppress_tokens", "chunk_size_feed_forward",
        "cross_attention_hidden_size", "decoder_start_token_id", "diversity_penalty", "do_sample", "dtype",
        "early_stopping", "encoder_no_repeat_ngram_size", "eos_token_ids", "exponential_decay_length_penalty",
        "finetuning_task", "forced_bos_token_id", "forced_eos_token_id", "language", "length_penalty",
        "max_length", "min_length", "model_type", "name", "no_repeat_ngram_size", "num_beam_groups",
        "num_beams", "num_return_sequences", "output_attentions", "output_hidden_states", "output_past",
        "output_scores", "prefix", "remove_invalid_values", "repetition_penalty", "return_dict",
        "return_dict_in_generate", "sep_token_id", "suppress_tokens", "task_specific_params", "temperature",
        "tf_legacy_loss", "tokenizer_class", "top_k", "top_p", "torch_dtype", "torchscript",
        "transformers_version", "typical_p", "use_bfloat16", "use_cache",
    }
)  # fmt: skip

FIXED_KEYS: Final[dict[str, tuple[Any, ...]]] = {
    "add_cross_attention": (False, None),
    "is_decoder": (False, None),
    "is_encoder_decoder": (False, None),
    "position_embedding_type": ("absolute", None),
    "pruned_heads": ({}, None),
    "tie_encoder_decoder": (False, None),
    "tie_word_embeddings": (True, None),
}

BERT_ONLY_KEYS: Final = frozenset(
    {
        "directionality", "pooler_fc_size", "pooler_num_attention_heads", "pooler_num_fc_layers",
        "pooler_size_per_head", "pooler_type",
    }
)  # fmt: skip
