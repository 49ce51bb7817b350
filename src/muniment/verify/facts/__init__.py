"""Fine-grained fact checking (RC-17): an output against documents, sentence by sentence, with no model.

`check_facts` gives an `FGFCReport`; `fact_verdict`, `fact_reason_codes` and `fact_score` turn it into what a
`VerifierResult` holds; `look_again` asks a grader, if there is one, and only to route.
"""

from muniment.verify.facts.checking import check_facts, check_source
from muniment.verify.facts.codes import fact_reason_codes, fact_score, fact_verdict
from muniment.verify.facts.routing import look_again
from muniment.verify.facts.source import Source, SourceText

__all__ = [
    "Source",
    "SourceText",
    "check_facts",
    "check_source",
    "fact_reason_codes",
    "fact_score",
    "fact_verdict",
    "look_again",
]
