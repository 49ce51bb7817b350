"""Fine-grained fact checking (RC-17): an output against documents, sentence by sentence, with no model.

`check_facts` gives an `FGFCReport`; `fact_verdict`, `fact_reason_codes` and `fact_score` turn it into what a
`VerifierResult` holds. `fact_score`, of a unit `unit_score`, is the one number for how sure we are: packs and results
have it alike. Graders of units are in `verify.graders`.
"""

from muniment.verify.facts.checking import check_facts, check_source
from muniment.verify.facts.source import Source, SourceText
from muniment.verify.results import fact_reason_codes, fact_score, fact_verdict, unit_score

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
