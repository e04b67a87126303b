"""The scoreboard: problems of the planning competitions, against what other planners published."""
