"""A leaderboard: runs side by side, apart by what may not be mixed, with what was verified."""
