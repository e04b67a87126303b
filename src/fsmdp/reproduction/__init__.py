"""The paper, claim by claim: runs, rules that judge them, and a page."""
