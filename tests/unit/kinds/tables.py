"""Tables of cases, a line for each."""


def lines(text):
    """Return the lines of a table."""
    return text.strip("\n").splitlines()


def cells(text):
    """Return the cells of each line, which stand apart by an arrow."""
    return [line.split(" => ") for line in lines(text)]
