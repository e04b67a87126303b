"""What every layer stands on: argument checks, files on disk, arrays; it knows nothing of MDPs."""
