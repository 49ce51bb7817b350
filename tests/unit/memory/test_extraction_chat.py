"""What people write in chats, and what only looks like it: small letters, slips, fragments, lists, corrections."""

from __future__ import annotations

import pytest

from muniment.handles.memory import Memory
from muniment.memory.extraction.patterns import corrections, propose, take_back
from products import for_each

TS = "2026-05-20T12:00:00.000000Z"

STATEMENTS = """
my name is jo = user.name:Jo
hey im marta btw = user.name:Marta
hi all, i'm Priya and i just joined the chat = user.name:Priya
this is Dmitri speaking = user.name:Dmitri
everyone calls me Bex = user.nickname:Bex
you can call me Sam = user.nickname:Sam
im from lisbon = user.origin:Lisbon
i live in leeds now = user.location:Leeds
we live in toronto with two cats = user.location:Toronto
just moved to denver last month = user.location:Denver
ive moved back to madrid = user.location:Madrid
based in berlin these days = user.location:Berlin
i grew up in ohio = user.origin:Ohio
i was born in lagos = user.birthplace:Lagos
im 34 years old = user.age:34
im 27 and still renting = user.age:27
i just turned 40 = user.age:40
my bday is may 3rd = user.birthday:05-03
my birthday is on the 14th of july = user.birthday:07-14
im a nurse = user.job:nurse
Im an electrician in hull = user.job:electrician
i work as a data analyst = user.job:data analyst
i work as a paralegal at Hobbs = user.job:paralegal user.employer:Hobbs
my job is a teacher = user.job:teacher
retired firefighter here = user.job:retired firefighter
i teach maths at a primary school = user.job:maths
i work for Siemens = user.employer:Siemens
i started at Monzo last week = user.employer:Monzo
my new boss at Acme is strict = user.employer:Acme
got a new job at Stripe = user.employer:Stripe
i study law = user.study:law
im studying marine biology at Plymouth University = user.study:marine biology user.study:Plymouth University
im majoring in economics = user.study:economics
i graduated from UCLA = user.study:UCLA
im vegan = user.diet:vegan
ive been vegetarian for 3 years = user.diet:vegetarian
i went keto in january = user.diet:keto
i dont eat pork = user.avoids:pork
i cant have gluten = user.avoids:gluten
i dont drink coffee or alcohol = user.avoids:coffee user.avoids:alcohol
im allergic to peanuts and shellfish = user.allergy:peanuts user.allergy:shellfish
allergies: nuts, dust = user.allergy:nuts user.allergy:dust
im alergic to cats = user.allergy:cats
i have a severe nut allergy = user.allergy:nut
i have asthma = user.health:asthma
ive got type 2 diabetes = user.health:type 2 diabetes
im diabetic so no sugar = user.health:diabetic
type 1 diabetic here = user.health:type 1 diabetic
my migraines are back = user.health:migraines
i was diagnosed with adhd = user.health:adhd
i take metformin = user.medication:metformin
im on sertraline = user.medication:sertraline
i like tea, jazz and hiking = user.likes:tea user.likes:jazz user.likes:hiking
i luv sushi = user.likes:sushi
i really enjoy baking = user.likes:baking
im into bouldering = user.likes:bouldering
im a huge fan of Radiohead = user.likes:Radiohead
i love to cook = user.likes:cook
im obsessed with crosswords = user.likes:crosswords
i play the cello = user.likes:cello
i play tennis and chess = user.likes:tennis and chess
my hobbies are knitting and chess = user.likes:knitting user.likes:chess
my hobbies: painting, sailing = user.likes:painting user.likes:sailing
i collect vinyl records = user.likes:vinyl records
ive been getting into pottery = user.likes:pottery
i have a passion for photography = user.likes:photography
i hate mushrooms = user.dislikes:mushrooms
cant stand horror films = user.dislikes:horror films
im not a fan of crowds = user.dislikes:crowds
i dont like cilantro = user.dislikes:cilantro
my fav color is green = user.favorite.color:green
my favourite food is sushi = user.favorite.food:sushi
favourite band is Radiohead = user.favorite.band:Radiohead
skiing is my favorite sport = user.favorite.sport:skiing
i run every morning = user.habit:run every morning
i usually cook on sundays = user.habit:cook on sundays
i go to the gym three times a week = user.habit:go to the gym three times a week
i swim every day before work = user.habit:swim every day before work
im married = user.relationship:married
im single = user.relationship:single
been married for 22 years = user.relationship:married
i have two kids = user.children:two kids
im a mom of three = user.children:three
we have 3 boys = user.children:3 boys
i have a cat = user.pet:a cat
my dog Rex is great = user.dog:Rex
my cat Luna sleeps all day = user.cat:Luna
we adopted a puppy named Biscuit = user.pet:a puppy user.pet:Biscuit
any tips for my road bike? = user.owns:road bike
my violin needs new strings = user.owns:violin
i drive a 2014 Honda Jazz = user.owns:2014 Honda Jazz
i bought a new espresso machine = user.owns:espresso machine
i speak spanish and french = user.language:Spanish user.language:French
my native language is tagalog = user.language:Tagalog
french is my first language = user.language:french
im dutch = user.nationality:Dutch
im catholic = user.religion:catholic
my budget is $500 = user.budget:$500
our budget is 600 quid a month = user.budget:600 quid a month
i work nights = user.schedule:nights
my goal is to run a marathon = user.goal:run a marathon
ive always wanted to see japan = user.goal:see japan
im training for a half marathon = user.goal:a half marathon
im trying to lose weight = user.goal:lose weight
im hoping to get into local politics = user.goal:get into local politics
my wife Ana is away = user.wife:Ana
my brother Tom lives in Rome = user.brother:Tom person.tom.location:Rome
my brother lives in rome = person.brother.location:Rome
my sister is a dentist = person.sister.job:dentist
my mom is 62 = person.mother.age:62
my dad has parkinson's = person.father.health:parkinson's
my girlfriend is vegan = person.girlfriend.diet:vegan
my son loves trains = person.son.likes:trains
my daughter is allergic to eggs = person.daughter.allergy:eggs
my boss lives in Boston = person.boss.location:Boston
my best friend works at Google = person.best_friend.employer:Google
Kim, my partner, works at Shell = user.partner:Kim person.kim.employer:Shell
my parents live in Spain = person.parents.location:Spain
my mum's name is Gloria = user.mother:Gloria
my sister in oslo visits often = person.sister.location:Oslo
mom's in florida = person.mother.location:Florida
my husband cant have gluten = person.husband.avoids:gluten user.relationship:married
my neighbour Frank is a retired fireman = user.neighbor:Frank person.frank.job:retired fireman
we're flying to Lisbon 12-19 May = trip.lisbon.dates:12-19 May
im planning a trip to Japan in May = trip.japan.dates:May
im a nurse in leeds, 2 kids, vegan = user.job:nurse user.children:2 kids user.diet:vegan
me: 29, graphic designer, Glasgow = user.age:29 user.job:graphic designer user.location:Glasgow
im vegan, any ideas for dinner? = user.diet:vegan
i live in Bristol, what's on this weekend? = user.location:Bristol
My name is Ana. Translate this: I live in Rome. = user.name:Ana
If it rains I stay in. I live in Oslo. = user.location:Oslo
She said she hates tea. I love tea. = user.likes:tea
My laptop is a thinkpad x1 = thing.laptop.kind:thinkpad x1
"""

TRAPS = """
i work at home
i work for myself
i work at night
i work for a living
we work for fun
i used to work at ibm
you live in rome and work at Shell
pretend you are allergic to nuts and ask the waiter
let's role-play: im a pirate and i live in Tortuga
write a story where i'm a vampire. i live in Paris and i love blood.
in my novel, my name is Ishmael
my character is a nurse who lives in Rome
once upon a time i lived in a castle
translate into french: i am a nurse
how do you say "i am vegan" in german
proofread this: "I live in Kent with my wife."
is "my favourite food is pizza" correct
the line goes "my name is inigo montoya"
she goes "i'm moving to berlin" and i'm like ok
he said i live in berlin
my teacher told me i'm a genius
according to my sister i love drama
some guy on reddit says he's lactose intolerant
people say i'm a good cook
if i lived in rome i'd be happy
i would love it if i was a doctor
i wish i was a vet
i wish i lived in lisbon
suppose i'm allergic to nuts
imagine i work for Google
what if i'm diabetic
maybe im allergic to cats
i might be vegan one day
i think i like jazz
we might move to Spain at some point
i could be a pilot
should i go vegan
do i like tea?
am i from boston?
my name is ana?
where do i live
who is my brother
what is my favorite color
i used to live in boston
i used to be a nurse
when i was a kid i lived in rome
i lived in paris for a year
i moved to Paris in 2010
i'm not vegan
i am not allergic to nuts
i don't have kids
im dying of hunger
im starving
im a bit tired
im a mess today
im in a meeting
im in love
im on a break
i love you
i love it
i love that idea
i like your plan
i hate it when that happens
i love how this works
i like this one better
i had curry last night
i went to rome last summer
the weather in leeds is grim
everyone says london's too expensive
tom lives in berlin
he works at shell
she is a nurse
kim's brother lives in rome
my bus is late
my head hurts
my phone died
i'll be a doctor one day
my ex husband lives in rome
a friend of a friend is a pilot
call me later
call me when you get there
she'd rather i was a lawyer
apparently people from Norfolk never lock their doors
meeting's at 3 so gotta be quick
make it shorter please
thanks, i love the new design
> i live in berlin
`my name is ana`
i read that nurses earn more
the dog ate my homework, said every kid ever
as a treat, can you tell me a joke
i want to move to rome
the movie is about a nurse who lives in paris
"""


def rows() -> list[tuple[str, list[str]]]:
    found = []
    for line in STATEMENTS.strip().splitlines():
        text, _, wanted = line.rpartition(" = ")
        found.append((text, _split(wanted)))
    return found


def _split(wanted: str) -> list[str]:
    parts: list[str] = []
    for word in wanted.split(" "):
        if word.startswith(("user.", "person.", "pet.", "trip.", "thing.")) and ":" in word:
            parts.append(word)
        else:
            parts[-1] += f" {word}"
    return parts


ALL = rows()


def read(text: str) -> list[str]:
    return [f"{each.key}:{each.value}" for each in propose(text, "user", TS)]


def test_the_tables_are_as_long_as_promised() -> None:
    assert len(ALL) >= 120
    assert len(TRAPS.strip().splitlines()) >= 60


@pytest.mark.req("MP-17")
@for_each(("text", "wanted"), ALL, ids=[text for text, _ in ALL])
def test_what_is_written_in_chats_is_read(text: str, wanted: list[str]) -> None:
    assert set(wanted) <= set(read(text))
    for each in propose(text, "user", TS):
        assert each.quote in text
        assert 0.8 <= each.confidence <= 1


@pytest.mark.req("MP-17")
@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("i work at shell", "user.employer:shell"),
        ("im working at google now", "user.employer:google"),
        ("i work for siemens in munich", "user.employer:siemens"),
        ("my sister works at tesco", "person.sister.employer:tesco"),
    ],
)
def test_an_employer_in_small_letters_is_read_and_waits(text: str, wanted: str) -> None:
    assert wanted in read(text)
    assert all(each.confidence < 0.8 for each in propose(text, "user", TS) if each.key.endswith("employer"))


@pytest.mark.req("MP-17")
@for_each("text", TRAPS.strip().splitlines())
def test_what_only_looks_like_a_statement_is_left(text: str) -> None:
    assert read(text) == []


# -- whole messages -----------------------------------------------------------------------------------


def test_one_doubtful_clause_does_not_silence_the_message() -> None:
    text = "if it rains we stay in. im a nurse, and my brother lives in Rome. would you go to Spain? i love tea"
    assert read(text) == ["user.job:nurse", "person.brother.location:Rome", "user.likes:tea"]


def test_a_story_silences_what_follows_and_not_what_was_said_before() -> None:
    text = "im a nurse. write a story about a pirate. i live in Tortuga and i love rum."
    assert read(text) == ["user.job:nurse"]


def test_quotes_are_verbatim_however_the_words_are_spelled() -> None:
    (found,) = propose("hmm... im  alergic to PEANUTS lol", "user", TS)
    assert (found.key, found.value) == ("user.allergy", "PEANUTS")
    assert found.quote in "hmm... im  alergic to PEANUTS lol"


def test_pronouns_go_on_with_whom_was_spoken_of() -> None:
    text = "my sister Ana is a dentist. she lives in Oslo and she loves sailing."
    assert read(text) == [
        "user.sister:Ana",
        "person.ana.job:dentist",
        "person.ana.location:Oslo",
        "person.ana.likes:sailing",
    ]


def test_nobody_in_particular_is_not_remembered() -> None:
    assert read("he lives in Oslo and she is a nurse. they love tea.") == []


def test_known_people_are_told_of_by_their_names() -> None:
    names = {"kim": "partner", "tom": "brother"}
    found = propose("Kim works at Shell. my brother lives in Rome.", "user", TS, names)
    assert [(each.key, each.value) for each in found] == [
        ("person.kim.employer", "Shell"),
        ("person.tom.location", "Rome"),
    ]
    assert propose("Kim works at Shell.", "user", TS) == []


@pytest.mark.parametrize(
    ("text", "new", "old"),
    [
        ("sorry, tuesday not monday", "tuesday", "monday"),
        ("oops i meant almonds not walnuts", "almonds", "walnuts"),
        ("correction: 34 not 33", "34", "33"),
        ("wait no, it's Leeds, not London", "Leeds", "London"),
    ],
)
def test_what_is_put_right(text: str, new: str, old: str) -> None:
    (found,) = corrections(text, "user")
    assert (found.new, found.old) == (new, old)
    assert found.quote in text
    assert corrections(text, "assistant") == []


@pytest.mark.parametrize(
    "text", ["sorry, not today", "sorry about that", "actually no", "i like tea not coffee machines?"]
)
def test_what_puts_nothing_right(text: str) -> None:
    assert corrections(text, "user") == []


def test_a_correction_in_the_same_message_leaves_one_value() -> None:
    assert read("im allergic to walnuts. sorry, almonds not walnuts") == ["user.allergy:almonds"]


@for_each(
    ("text", "key", "value"),
    [
        ("i dont live in rome anymore", "user.location", "Rome"),
        ("btw i quit my job at Acme", "user.employer", "Acme"),
        ("im not vegan anymore", "user.diet", "vegan"),
        ("ok so i no longer work for Siemens", "user.employer", "Siemens"),
        ("im no longer allergic to cats", "user.allergy", "cats"),
    ],
)
def test_what_is_taken_back_in_small_letters(text: str, key: str, value: str) -> None:
    assert [(back.key, back.value) for back in take_back(text, "user")] == [(key, value)]


# -- from a message to the page -----------------------------------------------------------------------


@pytest.mark.req("MP-17")
def test_facts_of_others_go_from_the_message_to_the_page(mem: Memory) -> None:
    run = mem.run(user_id="u-1", session_id="s1")
    for text in ("Kim, my partner, works at Shell", "my brother lives in Rome", "Kim loves sailing", "i work for Acme"):
        run.observe("user", text)
    made = run.extract()
    assert {each.status for each in made} == {"promoted"}
    facts = {fact.fact_key: fact.value for fact in run.facts()}
    assert facts == {
        "user.partner": "Kim",
        "user.employer": "Acme",
        "person.kim.employer": "Shell",
        "person.kim.likes": "sailing",
        "person.brother.location": "Rome",
    }
    page = run.compose("responder", query="where does my brother live?", max_tokens=400).text
    assert "Brother location: Rome" in page
    page = run.compose("responder", query="who does Kim work for?", max_tokens=400).text
    assert "Kim employer: Shell" in page


@pytest.mark.req("MP-17")
def test_a_correction_in_the_next_message_ends_what_it_puts_right(mem: Memory) -> None:
    run = mem.run(user_id="u-1", session_id="s1")
    for text in ("im allergic to walnuts", "oops i meant almonds not walnuts", "my physio is every monday"):
        run.observe("user", text)
    run.observe("user", "sorry, tuesday not monday")
    run.extract()
    assert sorted((fact.fact_key, fact.value) for fact in run.facts()) == [
        ("user.allergy", "almonds"),
        ("user.schedule", "physio is every tuesday"),
    ]


def test_a_correction_touches_nothing_of_another_session(mem: Memory) -> None:
    earlier = mem.run(user_id="u-1", session_id="s1")
    earlier.observe("user", "im allergic to walnuts")
    earlier.extract()
    later = mem.run(user_id="u-1", session_id="s2")
    later.observe("user", "sorry, almonds not walnuts")
    later.extract()
    assert [fact.value for fact in later.facts()] == ["walnuts"]
