"""A model drawn from what was counted, where independence is stated, and the best policy for it."""
