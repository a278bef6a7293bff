"""Every GLUE task of a folder: trained, scored by the official metrics, packed for the leaderboard."""
