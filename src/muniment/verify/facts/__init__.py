"""Fine-grained fact checking (RC-17): an output against documents, sentence by sentence, with no model.

`check_facts` gives an `FGFCReport`; `fact_verdict`, `fact_reason_codes` and `fact_score` turn it into what a
`VerifierResult` holds. `fact_score`, of a unit `unit_score`, is the one number for how sure we are: packs and results
have it alike. What a grader says of the units is `verify.grading`'s.
"""

from muniment.verify.facts.checking import check_facts, check_source
from muniment.verify.facts.codes import fact_reason_codes, fact_score, fact_verdict, unit_score
from muniment.verify.facts.source import Source, SourceText

__all__ = [
    "Source",
    "SourceText",
    "check_facts",
    "check_source",
    "fact_reason_codes",
    "fact_score",
    "fact_verdict",
    "unit_score",
]
