"""What a demanding stranger types: small letters, no apostrophes, fragments, several facts in passing; and traps.

Statements were written before the rules that read them; a share of them has to be read, of the traps none.
"""

# ruff: noqa: E501 - a table of sentences has one to a line

from __future__ import annotations

import pytest

from muniment.memory.extraction.patterns import propose

TS = "2026-05-20T12:00:00.000000Z"
SHARE_MIN = 0.85

STATEMENTS = """
ok im jess btw = user.name:jess
names tariq, nice 2 meet u = user.name:tariq
its priya here again lol = user.name:priya
the name's Okafor = user.name:Okafor
my full name is Anneliese Baum but pls call me Annie = user.name:Anneliese Baum user.nickname:Annie
ppl call me dutch = user.nickname:dutch
just call me Mo = user.nickname:Mo
friends know me as Fitz = user.nickname:Fitz
im turning 30 in june = user.age:30
31f here, any skincare tips = user.age:31
i'm 45, been smoking since forever = user.age:45
52 yrs old and never been skiing = user.age:52
as a 38 year old man what should my bp be = user.age:38
bday's on 3 march = user.birthday:03-03
i was born on july 9th 1988 = user.birthday:07-09
my birthday falls on christmas eve, dec 24 = user.birthday:12-24
we live just outside Utrecht = user.location:Utrecht
living in kyoto atm = user.location:kyoto
im based out of Nairobi = user.location:Nairobi
moved from Porto to Lyon in april = user.location:Lyon
our flat in Leipzig is tiny = user.location:Leipzig
i stay in Mumbai with my folks = user.location:Mumbai
im in dublin, whats open late here = user.location:dublin
here in oslo it gets dark at 3 = user.location:oslo
settled in Perth after uni = user.location:Perth
home is Tromsø these days = user.location:Tromsø
im originally from Accra = user.origin:Accra
born and raised in Glasgow = user.birthplace|user.origin:Glasgow
i come from a tiny village near Cork = user.origin:Cork
grew up in detroit, left at 18 = user.origin:detroit
my hometown is Izmir = user.origin:Izmir
i was born in Quito = user.birthplace:Quito
im brazilian so i need my coffee strong = user.nationality:brazilian
half finnish half greek = user.nationality:finnish
as a german i find this funny = user.nationality:german
i speak portugese and a bit of dutch = user.language:portugese|portuguese
my mother tongue is Bengali = user.language:Bengali
fluent in mandarin = user.language:mandarin
english isnt my first language, its polish = user.language:polish
im a plumber by trade = user.job:plumber
i do accounting for a small charity = user.job:accounting
working as a barista til i finish uni = user.job:barista
by day im an actuary = user.job:actuary
i teach year 4 = user.job:year 4
i run a bakery in town = user.job|user.owns:bakery
self employed electrician, 12 years = user.job:electrician
im a stay at home dad = user.job:stay at home dad
i manage a hotel = user.job:hotel
i drive trucks for a living = user.job:trucks
senior dev at a fintech = user.job:senior dev
my job's in logistics = user.job:logistics
i got promoted to head chef = user.job:head chef
im retired, was a postman = user.job:retired
i work for the NHS = user.employer:NHS
im with Deloitte now = user.employer:Deloitte
just joined Spotify as a designer = user.employer:Spotify user.job:designer
been at Bosch for 6 years = user.employer:Bosch
my company, Lumen Labs, is remote only = user.employer:Lumen Labs
my shift at Aldi starts at 5 = user.employer:Aldi
the team here at Novartis is great = user.employer:Novartis
my boss at Ikea hates me = user.employer:Ikea
im doing a phd in linguistics = user.study:linguistics
second year law student = user.study:law
im at uni in Bath studying architecture = user.study:architecture
i go to Boston College = user.study:Boston College
got my masters in statistics from Warwick = user.study:statistics
taking night classes in welding = user.study:welding
im engaged!! = user.relationship:engaged
me and my wife split the chores = user.relationship:married
recently divorced, learning to cook = user.relationship:divorced
im a widow = user.relationship:widow
got married last spring = user.relationship:married
my fiancé wants a big do = user.relationship:engaged
mum of 4 here = user.children:4
ive got 3 kids under 5 = user.children:3
we've two little girls = user.children:two
father of twins = user.children:twins
im pescatarian = user.diet:pescatarian
been veggie since i was 12 = user.diet:veggie|vegetarian
we keep kosher at home = user.diet:kosher
im doing keto = user.diet:keto
gluten free household btw = user.diet:gluten free
i gave up alcohol = user.avoids:alcohol
i dont do dairy = user.avoids:dairy
no pork for me please = user.avoids:pork
i steer clear of shellfish = user.avoids:shellfish
i cant eat spicy stuff = user.avoids:spicy
nut allergy here = user.allergy:nut
im deathly allergic to bees = user.allergy:bees
my allergies are pollen and latex = user.allergy:pollen user.allergy:latex
shrimp makes my throat close up, im allergic = user.allergy:shrimp
im celiac = user.health:celiac
ive got crohns = user.health:crohns
i have really bad eczema = user.health:eczema
living with bipolar = user.health:bipolar
my arthritis is killing me today = user.health:arthritis
i use a wheelchair = user.health|user.owns:wheelchair
i'm colour blind so no red/green charts = user.health:colour blind
im deaf in one ear = user.health:deaf
i wear hearing aids = user.health|user.owns:hearing aids
im on 20mg of fluoxetine = user.medication:fluoxetine
i take an inhaler for my asthma = user.health:asthma
my meds: lisinopril, metformin = user.medication:lisinopril user.medication:metformin
doc put me on statins = user.medication:statins
im mad about birdwatching = user.likes:birdwatching
big fan of techno = user.likes:techno
huge f1 fan = user.likes:f1
i adore baroque music = user.likes:baroque music
i do a lot of gardening = user.likes:gardening
im learning the banjo = user.likes|user.study:banjo
fishing is my thing = user.likes:fishing
nothing beats a good curry, i love them = user.likes:curry
on weekends i go bouldering = user.likes|user.habit:bouldering
in my spare time i restore old radios = user.likes|user.habit:restore old radios
i spend my evenings knitting = user.likes|user.habit:knitting
i prefer window seats = user.likes:window seats
tea over coffee any day = user.likes:tea
i support Arsenal = user.likes:Arsenal
ive always loved astronomy = user.likes:astronomy
my thing is vintage synths = user.likes:vintage synths
i cant stand cilantro = user.dislikes:cilantro
not a fan of heights = user.dislikes:heights
i loathe networking events = user.dislikes:networking events
olives are disgusting imo, hate them = user.dislikes:olives
im terrified of flying = user.dislikes:flying
my fave film is Heat = user.favorite.film:Heat
favorite color: teal = user.favorite.color:teal
my favourite author has to be Le Guin = user.favorite.author:Le Guin
best band ever for me is Tool, my favorite = user.favorite.band|user.likes:Tool
ive a labrador called Moss = user.pet|user.dog:Moss
our cats Pip and Olive wont eat = user.pet|user.cat:Pip user.pet|user.cat:Olive
we have 2 guinea pigs = user.pet:guinea pigs
my parrot keeps swearing = user.pet:parrot
got a rescue greyhound last year = user.pet:greyhound
my pup's name is Waffles = user.pet|user.dog:Waffles
i drive a beat up corolla = user.owns:corolla
typing on my pixel 8 = user.owns:pixel 8
i own a narrowboat = user.owns:narrowboat
bought myself a cello = user.owns:cello
i ride a Triumph Bonneville = user.owns:Triumph Bonneville
ive got an old thinkpad = user.owns:thinkpad
my canon r6 wont focus = user.owns:canon r6
im jewish so no saturdays = user.religion:jewish
we're muslim = user.religion:muslim
im an atheist = user.religion:atheist
my wife's called Ingrid = user.wife|user.partner:Ingrid
my husband, Pavel, cooks = user.husband|user.partner:Pavel
my gf Mei hates me using my phone = user.girlfriend|user.partner:Mei
my little bro Kai broke it = user.brother:Kai
my son leo starts school in sept = user.son:leo
Rosa is my mum = user.mother:Rosa
my best mate Olu is coming = user.friend|user.best_friend:Olu
my flatmate Gus never cleans = user.roommate|user.flatmate:Gus
my manager, Dana, said its fine = user.manager|user.boss:Dana
im going out with a girl called Freya = user.girlfriend|user.partner:Freya
saving up for a deposit on a house = user.goal:deposit on a house
i want to learn sign language this year = user.goal:learn sign language
im training for an ironman = user.goal:ironman
my dream is to open a cafe = user.goal:open a cafe
trying to quit smoking = user.goal:quit smoking
i plan on retiring at 60 = user.goal:retiring at 60
i wake up at 5 every day = user.habit|user.schedule:wake up at 5
i walk the dog before breakfast every morning = user.habit:walk the dog
i meditate daily = user.habit|user.likes:meditate
every sunday we do a big roast = user.habit:roast
i journal most nights = user.habit:journal most nights
i cycle to work = user.habit:cycle to work
max 300 euros is all ive got = user.budget:300 euros
my budget is around 40k = user.budget:40k
dont want to spend more than $80 a month = user.budget:$80 a month
i work 4 on 4 off = user.schedule:4 on 4 off
im off on wednesdays = user.schedule:wednesdays
i have therapy every thursday at 4 = user.schedule|user.habit:therapy every thursday at 4
i finish work at 3 = user.schedule:3
my sis lives in Ghent = person.sister.location:Ghent
dad's a retired miner = person.father.job:retired miner
my mum works at Boots = person.mother.employer:Boots
my son is 7 and lactose intolerant = person.son.age:7 person.son.health:lactose intolerant
my daughter plays the oboe = person.daughter.likes:oboe
my brother's allergic to peanuts = person.brother.allergy:peanuts
my grandad turned 90 = person.grandfather.age:90
my partner is a vet = person.partner.job:vet
my roommate is from Chile = person.roommate.origin:Chile
my nephew Ali loves lego = user.nephew:Ali person.ali.likes:lego
my wife doesnt eat meat = person.wife.avoids:meat
my cousin studies medicine in Graz = person.cousin.study:medicine
hi! im Lena, 27, live in Graz and work as a vet nurse = user.name:Lena user.age:27 user.location:Graz user.job:vet nurse
im a teacher, two kids, veggie, live in hull = user.job:teacher user.children:two user.diet:veggie|vegetarian user.location:hull
we live in Turin with our dog Zeno and i hate the traffic = user.location:Turin user.dog|user.pet:Zeno user.dislikes:traffic
im dave (42), plumber from Leeds = user.name:dave user.age:42 user.job:plumber user.origin|user.location:Leeds
"""

TRAPS = """
i love parking tickets, said the clerk
i'm allergic to nuts, my boss told the clerk
i live in rome, he said
im a surgeon, she told everyone
i hate kids, was all he said
i'm vegan, says everyone on instagram
im batman
i'm groot lol
i am iron man
im the king of the world
im your father, luke
im jesus christ superstar
i'm spider-man today for halloween
as a nurse, what would you do
as a vegan, would you eat honey?
as a parent, do you agree?
as a doctor you should know
call me crazy but i like it
call me old fashioned
call me maybe
call me stupid, but how does this work
you can call me anytime
call me an idiot
call me an uber
call me at 5
back when i worked at Nokia we had fun
i used to have a dog called Rex
years ago i lived in Prague
i was a nurse for ten years, not any more
i had a cat once
i was vegan in college
i used to love jazz
i played the violin as a child
my old job at Tesco was awful
before kids i ran marathons
i lived in Oslo until 2019
it's not Berlin where i live
im not from around here
i dont have a dog
we dont own a car
i never said i was a doctor
im not married lol
no im not diabetic
nobody calls me Bob
neither of us eats meat, i lied
if i had a dog id call him Rex
if im diabetic can i eat this?
say i live in Madrid, how long is the flight
lets say im 40 and earn 50k
assume my wife is pregnant
suppose my name was Bob
would you still like me if i were a worm
what if i was allergic to water
unless im vegan this is fine
i wish i had a boat
id love to live in Japan
i could be a lawyer
i would be a great dad
i might get a cat
thinking about whether i should become a nurse
maybe ill move to Lisbon someday
am i a good person
do i sound german
is a dog too fat
does my teacher like me
how do i know if im lactose intolerant
who am i
is it bad that i love tv
what's my name
can i be allergic to myself
how do you say i am hungry in thai
translate: my brother lives in Rome
what does "i am a berliner" mean
spell "my name is earl"
rewrite this: i live in a small town and love dogs
write a poem about how i love the sea
write a bio for a guy named Tom who lives in Ohio
pretend im a customer. im allergic to eggs and my name is Sue
let's role play, im a detective living in LA
imagine i live on mars
in the game im a level 20 wizard called Zog
in my dream i lived in Venice
my character works for the CIA
for the play im a widow with 3 sons
my friend says "i am a vegan"
the song goes i am the walrus
quote: i have a dream
the sign said i love new york
he texted me "im moving to Spain"
she was like im so allergic to this
according to the test im an introvert
my horoscope says im going to be rich
my ex thinks im a narcissist
people think im italian
everyone assumes i like football
my teacher called me a genius
you live in Berlin right?
you said i live in Paris
the guy next door is a nurse
her husband works at Shell
their dog is called Rex
tom's wife is a dentist
a man named Ali asked me the time
the nurse lives in Rome
i love it
i like that one
i love you so much
i hate mondays lol jk
i like the second option
i want a refund
i need a nap
i want pizza tonight
im going to the shop
im on the bus
im at the airport
im in a rush
im in the kitchen
im on page 40
im 5 minutes away
im 100% sure
im 20 minutes late
im a bit lost
im a fan now haha
im all ears
im down
im good
im dead
im over the moon
im from the future
i live for this
i live under a rock
i work hard
i work out what to do next
i have a question
i have an idea
i have a feeling
i have three tabs open
i got a ticket
i got the job done
my turn
my bad
my point is that it works
my code is broken
my teacher is late
my name tag fell off
my favorite part was the ending
my head is spinning
hungry, tired and broke
new york, new york
"""


def _wanted(line: str) -> tuple[str, list[tuple[tuple[str, ...], tuple[str, ...]]]]:
    text, _, facts = line.rpartition(" = ")
    parts: list[str] = []
    for word in facts.split(" "):
        if word.startswith(("user.", "person.")) and ":" in word:
            parts.append(word)
        else:
            parts[-1] += f" {word}"
    found = []
    for part in parts:
        keys, _, values = part.partition(":")
        found.append((tuple(keys.split("|")), tuple(values.casefold().split("|"))))
    return text, found


def _is_read(keys: tuple[str, ...], values: tuple[str, ...], read: list[tuple[str, str]]) -> bool:
    return any(key in keys and any(value in said or said in value for value in values) for key, said in read)


ROWS = [_wanted(line) for line in STATEMENTS.strip().splitlines()]


def _read(text: str) -> list[tuple[str, str]]:
    return [(each.key, str(each.value).casefold()) for each in propose(text, "user", TS)]


def missed() -> list[str]:
    """What is not read, each with its text."""
    return [
        f"{text} -> {keys} {values}"
        for text, facts in ROWS
        for keys, values in facts
        if not _is_read(keys, values, _read(text))
    ]


@pytest.mark.req("MP-17")
def test_most_of_what_is_typed_in_passing_is_read() -> None:
    count = sum(len(facts) for _, facts in ROWS)
    left = missed()
    assert len(ROWS) >= 150
    assert 1 - len(left) / count >= SHARE_MIN, left


@pytest.mark.req("MP-17")
def test_no_trap_is_taken() -> None:
    traps = TRAPS.strip().splitlines()
    assert len(traps) >= 100
    assert [(text, read) for text in traps if (read := _read(text))] == []


def test_what_is_taken_for_granted_is_told_whoever_said_it() -> None:
    assert _read("i'm allergic to nuts, my wife told the clerk") == [("user.relationship", "married")]
    assert _read("does my wife love me") == [("user.relationship", "married")]
    assert _read("is my dog too fat") == [("user.pet", "dog")]
