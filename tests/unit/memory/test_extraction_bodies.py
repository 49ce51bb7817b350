"""Who eats how, and whose body bears what (MP-17): households, intolerances, and people whom nobody introduced."""

from __future__ import annotations

import pytest

import muniment
from muniment.memory.extraction.patterns import propose, take_back
from products import for_each

READ = """
We are vegetarians. = user.diet:vegetarian
We're vegans. = user.diet:vegan
We are all vegetarians at home. = user.diet:vegetarian
We're both strict vegetarians. = user.diet:vegetarian
We became vegetarians last year. = user.diet:vegetarian
We've been vegans for years. = user.diet:vegan
My wife and I are pescatarians. = user.diet:pescatarian user.relationship:married
My kids are vegetarians. = person.kids.diet:vegetarian
My parents are vegans. = person.parents.diet:vegan
Mia is lactose intolerant. = person.mia.health:lactose intolerant
Tom is gluten intolerant. = person.tom.health:gluten intolerant
By the way, Anna is fructose intolerant. = person.anna.health:fructose intolerant
Emma is lactose-intolerant. = person.emma.health:lactose-intolerant
Ben's allergic to nuts. = person.ben.allergy:nuts
Mia is allergic to peanuts and eggs. = person.mia.allergy:peanuts person.mia.allergy:eggs
Omar has a nut allergy. = person.omar.allergy:nut
My son is lactose intolerant. = person.son.health:lactose intolerant
I'm intolerant to fructose. = user.health:intolerant to fructose
I'm histamine intolerant. = user.health:histamine intolerant
I'm lactose intolerant. = user.health:lactose intolerant
lactose intolerant here = user.health:lactose intolerant
I'm vegetarian and lactose intolerant. = user.diet:vegetarian user.health:lactose intolerant
I'm vegan but also diabetic. = user.diet:vegan user.health:diabetic
I'm vegetarian and pregnant, so no raw cheese. = user.diet:vegetarian user.health:pregnant
I'm vegan and pregnant with twins. = user.diet:vegan user.health:pregnant
I'm pescatarian but gluten intolerant. = user.diet:pescatarian user.health:gluten intolerant
I'm vegetarian and a bit lactose intolerant. = user.diet:vegetarian user.health:lactose intolerant
I'm vegan and intolerant to gluten. = user.diet:vegan user.health:intolerant to gluten
I'm vegan and dairy-intolerant. = user.diet:vegan user.health:dairy-intolerant
My sister is vegan and diabetic. = person.sister.diet:vegan person.sister.health:diabetic
My sister is lactose intolerant and vegan. = person.sister.health:lactose intolerant
I'm egg intolerant. = user.health:egg intolerant
I'm heat intolerant. = user.health:heat intolerant
I'm intolerant to dairy products. = user.health:intolerant to dairy
I'm intolerant to gluten and lactose. = user.health:intolerant to gluten user.health:intolerant to lactose
I'm lactose and gluten intolerant. = user.health:lactose intolerant user.health:gluten intolerant
I'm only mildly lactose intolerant. = user.health:lactose intolerant
I'm 30 and lactose intolerant. = user.age:30 user.health:lactose intolerant
gluten intolerant here, so no bread please = user.health:gluten intolerant
We're vegetarians at home. = user.diet:vegetarian
We're vegetarians, but I'm not sure what to cook. = user.diet:vegetarian
My kids are vegetarians but I'm not. = person.kids.diet:vegetarian
Grace has a nut allergy. = person.grace.allergy:nut
Georgia is allergic to eggs. = person.georgia.allergy:eggs
Art has a nut allergy, and I don't. = person.art.allergy:nut
Tom has a nut allergy and I have an egg allergy. = person.tom.allergy:nut user.allergy:egg
June's pollen gives me hives. = user.allergy:pollen
June is when pollen gives me hives. = user.allergy:pollen
Grace is allergic to eggs. = person.grace.allergy:eggs
Rose has a peanut allergy. = person.rose.allergy:peanut
Mia is allergic to tree nuts. = person.mia.allergy:tree nuts
Mia's allergic to cat hair, sadly. = person.mia.allergy:cat hair
Paula is allergic to penicillin and latex. = person.paula.allergy:penicillin person.paula.allergy:latex
Ben is intolerant to histamine. = person.ben.health:intolerant to histamine
My brother is allergic to rhubarb. = person.brother.allergy:rhubarb
I have a nut allergy. = user.allergy:nut
I'm vegan and pregnant women scare me. = user.diet:vegan
I'm vegan, and deaf people are my clients. = user.diet:vegan
I'm vegan and deaf and blind people are my clients. = user.diet:vegan
I'm vegetarian but blind people's menus interest me. = user.diet:vegetarian
I'm vegetarian and diabetic friendly food is fine. = user.diet:vegetarian
I'm vegetarian and disabled parking annoys me. = user.diet:vegetarian
I'm vegan, but diabetic patients ask me for recipes. = user.diet:vegan
I'm keto and autistic kids are in my class. = user.diet:keto
I'm vegan and blind dates bore me. = user.diet:vegan
I'm vegan and blind as a bat. = user.diet:vegan
I'm vegan but gluten intolerant guests are coming. = user.diet:vegan
I'm vegan and politically intolerant. = user.diet:vegan
I'm vegan and religiously intolerant. = user.diet:vegan
I'm vegan and very intolerant. = user.diet:vegan
"""
NOTHING = """
We are not vegetarians.
Are we vegetarians?
What if we are vegetarians
They are vegetarians.
We were vegetarians.
We know some vegetarians.
We are friends of vegetarians.
We would be vegetarians if meat was gone.
We might become vegans.
Is Mia lactose intolerant?
If Mia is lactose intolerant, what then?
Maybe Mia is allergic to nuts.
Mia might be lactose intolerant.
Mia is not lactose intolerant.
The doctor said Mia is lactose intolerant.
Everyone is lactose intolerant these days.
Nobody is allergic to water.
People in Asia are lactose intolerant.
Some guy is lactose intolerant.
Are Mia and Tom allergic to nuts?
He is very intolerant.
I'm intolerant of rude people.
Excel is allergic to commas.
My code is allergic to tests.
Bread is gluten free.
I'm intolerant to stupidity.
I'm intolerant to bullies.
I'm intolerant to nonsense.
I'm intolerant to lateness.
I'm intolerant to cold calls.
I'm intolerant to milk chocolate jokes.
I'm fault-intolerant.
I'm failure-intolerant.
I'm weather-intolerant.
Lactose intolerant recipes, please.
Gluten intolerant cookies, anyone?
Gluten intolerant menus are rare.
Lactose intolerant or not, everyone loves cheese.
Ben's lactose intolerant recipes are great.
We're mostly vegetarians in this town, but I'm not.
We're all vegetarians here except me.
We're all vegetarians in the family apart from me.
We're nearly all vegans in my office, but I'm not one.
We've been vegetarians for ten years, all but me.
We're vegan, except me.
We became vegans, but I still eat fish.
We are vegetarians at work, so I order pizza.
Jordan is allergic to peace.
Jordan has a peace allergy.
Jordan is allergic to nut jokes.
Claude is allergic to emoji.
Chelsea's allergic to winning.
Austin is allergic to rain.
Sydney's allergic to losing.
Florence is allergic to silence.
Ben is intolerant to change.
Grace's nut allergy worries us.
Victoria is allergic to fish and chips jokes.
Emma is lactose intolerant friendly.
I'm intolerant to wine snobs.
We're vegans but not me.
"""


def said(text: str) -> set[str]:
    return {f"{each.key}:{each.value}" for each in propose(text, "user", "2026-01-01T00:00:00Z")}


@pytest.mark.req("MP-17")
@for_each("line", READ.strip().splitlines())
def test_it_is_read_of_whom_it_is_said(line: str) -> None:
    text, _, wanted = line.partition(" = ")
    found = said(text)
    assert all(each in wanted for each in found)
    assert len(found) == wanted.count(":")


@pytest.mark.req("MP-17")
@for_each("text", NOTHING.strip().splitlines())
def test_what_is_asked_denied_supposed_or_nobodys_is_not(text: str) -> None:
    assert not said(text)


def test_an_intolerance_leaves_the_diet_as_it_is() -> None:
    keys = {each.partition(":")[0] for text in ("I'm vegetarian.", "I'm lactose intolerant.") for each in said(text)}
    assert keys == {"user.diet", "user.health"}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("I stopped keto in spring.", "keto"),
        ("I quit being vegan.", "vegan"),
        ("I gave up the paleo diet.", "paleo"),
        ("We dropped keto.", "keto"),
        ("I've stopped doing low-carb.", "low-carb"),
        ("I'm not vegan any more.", "vegan"),
        ("I stopped eating vegan.", "vegan"),
        ("I quit the keto diet.", "keto"),
        ("I finished my keto diet in May.", "keto"),
        ("I dropped the vegan diet.", "vegan"),
        ("I gave up being vegetarian last year.", "vegetarian"),
        ("I've given up going vegan.", "vegan"),
        ("I stopped doing keto, it made me tired.", "keto"),
        ("I finished being vegan.", "vegan"),
        ("I'm done with keto.", "keto"),
        ("We quit low-carb because it was dull.", "low-carb"),
    ],
)
def test_a_diet_that_was_given_up_is_taken_back(text: str, value: str) -> None:
    assert [(back.key, back.value) for back in take_back(text, "user")] == [("user.diet", value)]


NO_END = """
Should I stop keto?
If I quit keto, what then?
He stopped keto.
I stopped vegan recipes.
I finished my vegan lasagna.
I finished the vegan lasagna today.
I finished the vegan chili.
I dropped the vegan burger.
I dropped my vegan cake.
I dropped vegan leather.
I dropped a keto bar under the sofa.
I dropped vegan, gluten-free and halal options from the menu.
I finished the keto book.
I finished a low-carb cookbook.
I finished my keto diet book.
I finished eating a vegan burrito.
I quit vegan cooking class.
I quit with vegan stuff.
I gave up the vegan cafe lease.
I gave up vegan cheese.
I stopped the vegan van on the corner.
I stopped at a vegan place.
I'm done with the vegan pizza.
I'm done with vegan cooking.
"""


@for_each("text", NO_END.strip().splitlines())
def test_a_diet_that_was_not_is_not(text: str) -> None:
    assert not [back for back in take_back(text, "user") if back.key == "user.diet"]


def test_giving_up_a_diet_does_not_tell_it() -> None:
    assert not said("I've given up going vegan.")


BORNE = """
I'm no longer lactose intolerant. = lactose
I'm not lactose intolerant. = lactose
I'm not actually lactose intolerant. = lactose
I am not histamine-intolerant any more. = histamine
I'm no longer gluten intolerant, so bread is fine. = gluten
I'm no longer intolerant to fructose. = fructose
I'm not intolerant to soy any more. = soy
I'm no longer lactose or gluten intolerant. = lactose gluten
I'm no longer intolerant to eggs and to milk. = eggs milk
I no longer have a lactose intolerance. = lactose
I don't have my fructose intolerance any more. = fructose
I've outgrown my lactose intolerance. = lactose
"""
STILL = """
Am I no longer lactose intolerant?
If I'm no longer lactose intolerant, can I have milk?
Ben is no longer lactose intolerant.
My sister is not lactose intolerant.
She said: "I'm no longer lactose intolerant."
I'm lactose intolerant.
I wish I was not lactose intolerant.
Maybe I'm not lactose intolerant.
I'm not lactose intolerant enough to need pills.
"""


@for_each("line", BORNE.strip().splitlines())
def test_an_intolerance_is_taken_back_however_it_was_said(line: str) -> None:
    text, _, wanted = line.partition(" = ")
    ended = {(back.key, back.value) for back in take_back(text, "user")}
    for what in wanted.split():
        assert ("user.health", f"{what} intolerant") in ended
        assert ("user.health", f"{what}-intolerant") in ended
        assert ("user.health", f"intolerant to {what}") in ended
        assert ("user.diet", f"{what} intolerant") in ended


@for_each("text", STILL.strip().splitlines())
def test_an_intolerance_that_is_not_taken_back_stays(text: str) -> None:
    assert not take_back(text, "user")


@for_each(
    ("told", "ended"),
    [
        ("I'm lactose intolerant.", "I'm no longer lactose intolerant."),
        ("Lactose intolerant here.", "I'm not lactose intolerant any more."),
        ("I'm lactose-intolerant.", "I'm no longer lactose intolerant."),
        ("I'm intolerant to fructose.", "I'm no longer fructose intolerant."),
        ("I'm gluten intolerant.", "I'm not intolerant to gluten after all."),
    ],
)
def test_an_intolerance_ends_in_the_store(told: str, ended: str) -> None:
    with muniment.open(":memory:") as memory:
        run = memory.run(user_id="u-1", session_id="s-1")
        run.observe("user", told)
        run.extract()
        assert [fact.fact_key for fact in run.facts()] == ["user.health"]
        run.observe("user", ended)
        run.extract()
        assert not run.facts()


def test_an_intolerance_that_an_older_store_has_as_a_diet_ends_as_well() -> None:
    with muniment.open(":memory:") as memory:
        run = memory.run(user_id="u-1", session_id="s-1")
        event = run.observe("user", "Lactose, you know.")
        run.remember("user.diet", "lactose intolerant", sources=[event.id])
        assert [fact.fact_key for fact in run.facts()] == ["user.diet"]
        run.observe("user", "I'm no longer lactose intolerant.")
        run.extract()
        assert not run.facts()
