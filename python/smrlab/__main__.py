"""The command `smrlab`, which is `python -m smrlab`, too."""

import gc
import sys


def main() -> None:
    """The program; Ctrl-C while its modules are loaded ends it as it does later."""
    # Modules stay: looking for garbage among them, while they are loaded and at the end, takes a fifth of the start.
    gc.disable()
    try:
        from .cli import main as program

        gc.freeze()
        gc.enable()
        program()
    except KeyboardInterrupt:
        sys.stderr.write("smrlab: interrupted\n")
        sys.exit(130)


if __name__ == "__main__":
    main()
