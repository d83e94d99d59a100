"""``python -m kernelpath`` is the `kernelpath` command."""

import sys

from kernelpath._command import main

if __name__ == "__main__":
    sys.exit(main())
