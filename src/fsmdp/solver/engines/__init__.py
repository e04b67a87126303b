"""Engines of the solver, one idea a file; see `fsmdp.solver.engine`."""
