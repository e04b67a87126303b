"""Learning: counts, confidence sets, optimistic and sampling learners, regret bounds."""
