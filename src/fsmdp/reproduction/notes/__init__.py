"""Notes on the paper, each with the run or the computation that bears it out."""
