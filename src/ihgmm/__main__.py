"""Run the command line as ``python -m ihgmm``."""

from ihgmm.cli import main

if __name__ == "__main__":
    main()
