"""Fine-grained fact checking: an output against documents, sentence by sentence, with no model.

`check_facts` gives an `FGFCReport`; `verify.results` reads a verdict, reason codes and a score from it.
"""

from muniment.verify.facts._source import Source, SourceText
from muniment.verify.facts.check import check_facts, check_source

__all__ = [
    "Source",
    "SourceText",
    "check_facts",
    "check_source",
]
