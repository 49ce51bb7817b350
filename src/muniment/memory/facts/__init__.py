"""The rules of facts (MP-06…MP-08): what a new saying does to those that stand. Pure: the runtime brings them."""
