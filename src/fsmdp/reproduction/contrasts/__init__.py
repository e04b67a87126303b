"""What other assumptions would make of the problems here: one measurement a module."""
