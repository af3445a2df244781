"""The command `smrlab`, which is `python -m smrlab`, too."""

import sys


def main() -> None:
    """The program; Ctrl-C while its modules are loaded ends it as it does later."""
    try:
        from .cli import main as program

        program()
    except KeyboardInterrupt:
        sys.stderr.write("smrlab: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
