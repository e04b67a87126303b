"""Executors: where runs are done. Each hands tasks to an engine that schedules and retries."""
