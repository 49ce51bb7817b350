"""How a packet reads: what each purpose may see, one line for one item, the page they make. It knows no budget.

Below the rooms `compose` and `render`, which both use it: what is counted is what is shown.
"""
