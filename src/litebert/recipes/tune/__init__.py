"""`litebert tune`: trials of a training with different settings, guided by what earlier ones reached."""
