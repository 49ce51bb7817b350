"""IFEval's instructions in the constraint language: all twenty-five kinds, from `instruction_id_list` and `kwargs`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from muniment.errors import InvalidInput
from muniment.verify.static import constraints
from muniment.verify.static.base import Constraint

__all__ = ["IFEVAL_KINDS", "from_ifeval", "from_instruction"]

_Kwargs = Mapping[str, Any]
_ANSWERS = ("My answer is yes.", "My answer is no.", "My answer is maybe.")


def _bounds(relation: Any, count: int) -> dict[str, Any]:
    if relation == "at least":
        return {"min": count}
    if relation == "less than":
        return {"less_than": count} if count else {"max": 0}
    raise InvalidInput(f"the relation {relation!r} is unknown", hint="at least, or less than")


def _english(case: Literal["upper", "lower"]) -> list[Constraint]:
    return [constraints.case(case=case), constraints.language(code="en", guess=True)]


def _paragraph_start(given: _Kwargs) -> list[Constraint]:
    return [
        constraints.paragraph_start(
            paragraph=given["nth_paragraph"], of=given["num_paragraphs"], word=given["first_word"]
        )
    ]


IFEVAL_KINDS: Mapping[str, Callable[[_Kwargs], list[Constraint]]] = {
    "keywords:existence": lambda given: [constraints.keywords(words=tuple(given["keywords"]))],
    "keywords:frequency": lambda given: [
        constraints.keyword_count(word=given["keyword"].strip(), **_bounds(given["relation"], given["frequency"]))
    ],
    "keywords:forbidden_words": lambda given: [constraints.forbidden_words(words=tuple(given["forbidden_words"]))],
    "keywords:letter_frequency": lambda given: [
        constraints.letter_count(letter=given["letter"], **_bounds(given["let_relation"], given["let_frequency"]))
    ],
    "language:response_language": lambda given: [constraints.language(code=given["language"], guess=True)],
    "length_constraints:number_sentences": lambda given: [
        constraints.sentences(**_bounds(given["relation"], given["num_sentences"]))
    ],
    "length_constraints:number_paragraphs": lambda given: [
        constraints.paragraphs(exactly=given["num_paragraphs"], separator="***")
    ],
    "length_constraints:number_words": lambda given: [
        constraints.words(**_bounds(given["relation"], given["num_words"]))
    ],
    "length_constraints:nth_paragraph_first_word": _paragraph_start,
    "detectable_content:number_placeholders": lambda given: [constraints.placeholders(min=given["num_placeholders"])],
    "detectable_content:postscript": lambda given: [constraints.postscript(marker=given["postscript_marker"])],
    "detectable_format:number_bullet_lists": lambda given: [constraints.bullets(exactly=given["num_bullets"])],
    "detectable_format:constrained_response": lambda _: [constraints.one_of(options=_ANSWERS, whole=False)],
    "detectable_format:number_highlighted_sections": lambda given: [
        constraints.highlights(min=given["num_highlights"])
    ],
    "detectable_format:multiple_sections": lambda given: [
        constraints.sections(marker=given["section_spliter"].strip(), min=given["num_sections"])
    ],
    "detectable_format:json_format": lambda _: [constraints.json_only(fence=True, lenient=True)],
    "detectable_format:title": lambda _: [constraints.title()],
    "combination:two_responses": lambda _: [constraints.alternatives(count=2, separator="******")],
    "combination:repeat_prompt": lambda given: [constraints.repeats_prompt(text=given["prompt_to_repeat"])],
    "startend:end_checker": lambda given: [constraints.ends_with(phrase=given["end_phrase"])],
    "startend:quotation": lambda _: [constraints.quoted()],
    "change_case:capital_word_frequency": lambda given: [
        constraints.capital_words(**_bounds(given["capital_relation"], given["capital_frequency"]))
    ],
    "change_case:english_capital": lambda _: _english("upper"),
    "change_case:english_lowercase": lambda _: _english("lower"),
    "punctuation:no_comma": lambda _: [constraints.no_punctuation(signs=",")],
}


def from_instruction(instruction_id: str, kwargs: _Kwargs) -> tuple[Constraint, ...]:
    """The constraints of one instruction, which holds if all of them do. A blank answer holds to none."""
    make = IFEVAL_KINDS.get(instruction_id)
    if make is None:
        raise InvalidInput(f"no IFEval instruction is called {instruction_id!r}", hint=", ".join(IFEVAL_KINDS))
    given = {name: value for name, value in kwargs.items() if value is not None}
    try:
        return (constraints.not_empty(), *make(given))
    except KeyError as error:
        raise InvalidInput(f"{instruction_id} wants {error.args[0]!r} among its kwargs") from None


def from_ifeval(instruction_id_list: Sequence[str], kwargs: Sequence[_Kwargs]) -> tuple[tuple[Constraint, ...], ...]:
    """One group of constraints for each instruction, in their order."""
    if len(instruction_id_list) != len(kwargs):
        raise InvalidInput(f"{len(instruction_id_list)} instructions and {len(kwargs)} kwargs")
    return tuple(from_instruction(*each) for each in zip(instruction_id_list, kwargs, strict=True))
