"""Work that several processes share: who is at which piece of it, and a store that refuses who was held up too long.

It never decides what is to be done: the pieces are named by who does them.
"""
