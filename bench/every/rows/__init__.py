"""The rows, by what they are about. A new module here is named in `ROWS` of `bench/every/__init__.py`."""
