"""`litebert prepare`: documents to sentences to token ids to shards, on all cores, in constant memory."""
