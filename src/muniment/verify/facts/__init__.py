"""Fine-grained fact checking (RC-17): an output against documents, sentence by sentence, with no model.

`check_facts` gives an `FGFCReport`; `verify.results` reads a verdict, reason codes and a score from it.
"""

from muniment.verify.facts.checking import check_facts, check_source
from muniment.verify.facts.source import Source, SourceText

__all__ = [
    "Source",
    "SourceText",
    "check_facts",
    "check_source",
]
