"""`python -m rightcall` is the command `rightcall`."""

from rightcall.cli import main

if __name__ == "__main__":
    main()
