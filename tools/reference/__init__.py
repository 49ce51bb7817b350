"""The pages of docs/reference, each read off the code by the module of its name; `make_reference.py` writes them."""
