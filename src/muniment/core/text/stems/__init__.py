"""Stems by the published Snowball algorithms, a module for each language; words come in lower case, made of letters.

Read `endings`, what they share, then any of the languages. Each takes time linear in the length of the word.
"""
