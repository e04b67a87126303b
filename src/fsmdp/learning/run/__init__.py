"""The run: the loop of learning, its history and its checkpoints."""
