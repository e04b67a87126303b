"""The solver: candidates for a policy, judged by simulation, beside a certified bound."""
