"""`python -m waywiser` is the command `waywiser`."""

from waywiser.cli import main

if __name__ == "__main__":
    main()
