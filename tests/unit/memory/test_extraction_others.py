"""What is somebody else's is never told of the speaker: an allergy, a diet, an illness, what they do without."""

from __future__ import annotations

import pytest

from muniment.memory.extraction.patterns import propose
from products import for_each

TS = "2026-05-20T12:00:00.000000Z"

_THEIRS = [
    "My daughter Mia is allergic to peanuts.",
    "My daughter has a peanut allergy.",
    "My little daughter has a severe peanut allergy.",
    "I think my dad is allergic to penicillin.",
    "My dog is allergic to chicken.",
    "The customer is allergic to gluten.",
    "One of my guests is allergic to shellfish.",
    "Tom is allergic to nuts.",
    "Strawberries give my daughter hives.",
    "Peanuts make our toddler break out.",
    "I cook for a customer with a nut allergy.",
    "My son, who is five, has a nut allergy.",
    "She has a peanut allergy.",
    "Peanuts are off limits, my son breaks out in hives.",
    "My dad is off sugar.",
    "Guests with a nut allergy should tell us.",
    "My hamster has diabetes.",
    "My flatmate gave up meat.",
    "Two of our students carry an epipen because of peanuts.",
    "Our new hire can't eat gluten.",
    "Remember that Clara has a latex allergy.",
    "His pollen allergy is back.",
    "My neighbour's kid has a milk allergy.",
    "My mum takes lisinopril for her blood pressure.",
]
_OWN = [
    ("Strawberries give me hives.", "allergy", "strawberries"),
    ("Peanuts make my throat swell.", "allergy", "peanuts"),
    ("I'm allergic to my dog.", "allergy", "dog"),
    ("I'm a teacher with a peanut allergy.", "allergy", "peanut"),
    ("As a nurse with a latex allergy I need other gloves.", "allergy", "latex"),
    ("My daughter and I are allergic to nuts.", "allergy", "nuts"),
    ("My doctor diagnosed me with asthma.", "health", "asthma"),
    ("My wife cooks, but I have a severe peanut allergy.", "allergy", "peanut"),
    ("Penicillin gives me a rash.", "allergy", "penicillin"),
    ("Due to my asthma I avoid smoke.", "health", "asthma"),
    ("I can't eat gluten, my kids can.", "avoids", "gluten"),
    ("My husband drives me to a specialist for my arthritis.", "health", "arthritis"),
    ("When it flares up, my doctor prescribed meloxicam 7.5 mg.", "medication", "meloxicam 7.5 mg"),
]


@pytest.mark.req("MP-17", "TM-01")
@for_each("said", _THEIRS)
def test_what_is_anothers_is_not_the_speakers(said: str) -> None:
    personal = ("allergy", "avoids", "diet", "health", "medication", "likes", "dislikes")
    found = [each.key for each in propose(said, "user", TS)]
    assert not [key for key in found if key.startswith("user.") and key.split(".")[1] in personal]


@pytest.mark.req("MP-17")
@for_each(("said", "attribute", "value"), _OWN)
def test_what_is_the_speakers_is_still_told(said: str, attribute: str, value: str) -> None:
    found = [(each.key, str(each.value).lower()) for each in propose(said, "user", TS)]
    assert (f"user.{attribute}", value) in found
