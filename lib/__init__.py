"""The thin shared library of the book: a thing lives here only when two chapters need it."""
