"""The encoder: configuration, sharing plans, embeddings, blocks, heads.

Dimension letters used in every shape: B batch, S sequence, T packed tokens, N packed sequences,
V vocabulary, E embedding, H hidden, A attention heads, K key-value heads, D = H / A, I intermediate,
L depth, P masked positions, C classes or choices.

Nothing is imported here: `config`, `presets`, `sharing` and `counting` work without torch.
"""
