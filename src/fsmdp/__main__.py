"""`python -m fsmdp` is the command line."""

from fsmdp.cli import main

if __name__ == "__main__":
    main()
