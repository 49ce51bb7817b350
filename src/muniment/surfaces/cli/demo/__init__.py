"""The demo: a sample played through the library, told as it happens, in a store that goes away again."""
