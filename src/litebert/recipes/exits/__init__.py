"""`litebert exits`: score and speed of a model at every depth and with every rule, and the choice among them."""
