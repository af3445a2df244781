"""`python -m smrlab` is the command `smrlab`."""

from .cli import main

if __name__ == "__main__":
    main()
