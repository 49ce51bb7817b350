"""Made-up chats in which a person says in passing what holds of them, and later asks for advice.

Each chat is long and mostly small talk. What a good adviser must know was said once, in words that the question does
not have. The chats of `CHOOSING` were looked at while the product was written; those of `JUDGING` were written before
it too, and were run only when it was done. Nothing here is anybody's data.
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["CHOOSING", "JUDGING", "Asked", "Chat"]


class Asked(NamedTuple):
    """A question, and the names of the turns that an answer must know."""

    text: str
    needed: tuple[str, ...]


class Chat(NamedTuple):
    """One chat: turns by name, each with its place from 0 (first) to 1 (last), and the questions at its end."""

    name: str
    turns: int
    said: tuple[tuple[str, float, str], ...]
    asked: tuple[Asked, ...]
    replaced: tuple[tuple[str, str], ...] = ()
    """What no longer holds, and the turn that says so."""
    others: tuple[tuple[str, float, str], ...] = ()
    """What looks alike and is not the person's own word: who says it, where, and what."""
    language: str = "english"


CHOOSING: tuple[Chat, ...] = (
    Chat(
        "graz",
        260,
        (
            ("diet", 0.1, "I'm vegetarian, by the way."),
            ("old home", 0.2, "I live in Linz, close to the river."),
            ("allergy", 0.35, "I'm allergic to peanuts."),
            ("home", 0.6, "I moved to Graz last month."),
        ),
        (
            Asked("Where should I go for dinner?", ("diet", "allergy", "home")),
            Asked("Any ideas for a nice lunch tomorrow?", ("diet", "allergy", "home")),
        ),
        replaced=(("old home", "home"),),
        others=(
            ("assistant", 0.4, "I'm allergic to nothing, being a program."),
            ("user", 0.5, "Am I allergic to shellfish, do you think?"),
            ("user", 0.55, "My neighbour moved to Salzburg."),
        ),
    ),
    Chat(
        "family cook",
        180,
        (
            ("gluten", 0.08, "My wife can't eat gluten, she has coeliac disease."),
            ("kids", 0.22, "We have two kids, four and seven."),
            ("budget", 0.5, "Our budget for groceries is about 120 euros a week."),
            ("dislike", 0.7, "I can't stand mushrooms."),
        ),
        (
            Asked("What should we cook this week?", ("gluten", "kids", "budget", "dislike")),
            Asked("Can you plan a dinner menu for Saturday?", ("gluten", "dislike")),
        ),
        others=(("user", 0.3, "The waiter said his son hates mushrooms."),),
    ),
    Chat(
        "backend",
        220,
        (
            ("language", 0.15, "We write everything in Go here."),
            ("cloud", 0.3, "All our services run on AWS."),
            ("team", 0.45, "We are a team of three developers."),
            ("constraint", 0.65, "Our data must stay in the EU."),
        ),
        (
            Asked("Which database should I use for the new service?", ("language", "cloud", "team", "constraint")),
            Asked("Can you recommend a message queue?", ("language", "cloud")),
        ),
        others=(
            ("assistant", 0.5, "We write everything in Rust in that example."),
            ("user", 0.55, "Should we write it in Java?"),
        ),
    ),
    Chat(
        "knees",
        140,
        (
            ("knee", 0.12, "I have a bad knee, so no running for me."),
            ("asthma", 0.4, "I have asthma."),
            ("home", 0.55, "I live in Bergen, it rains all the time."),
            ("time", 0.75, "I only have time before work, at six in the morning."),
        ),
        (
            Asked("Could you make me a workout plan?", ("knee", "asthma", "time")),
            Asked("Which sport should I try?", ("knee", "asthma")),
        ),
    ),
    Chat(
        "holiday",
        300,
        (
            ("fly", 0.05, "I'm afraid of flying."),
            ("dog", 0.2, "I have a dog called Bruno."),
            ("budget", 0.4, "I can spend at most 800 euros on it."),
            ("heat", 0.6, "I don't do well in the heat."),
            ("home", 0.8, "I live in Leipzig."),
        ),
        (
            Asked("Where should we travel in August?", ("fly", "dog", "heat", "home")),
            Asked("Help me plan a trip for a week.", ("fly", "dog", "budget", "home")),
        ),
        others=(("user", 0.3, "My boss is afraid of flying too, he takes the train to Rome."),),
    ),
    Chat(
        "no longer vegan",
        160,
        (
            ("old diet", 0.1, "I'm vegan."),
            ("diet", 0.6, "I'm not vegan any more, I eat fish now."),
            ("lactose", 0.3, "I'm lactose intolerant."),
            ("alcohol", 0.5, "I don't drink alcohol."),
        ),
        (
            Asked("What should I order at the restaurant tonight?", ("diet", "lactose", "alcohol")),
            Asked("Recommend me something for a picnic.", ("diet", "lactose")),
        ),
        replaced=(("old diet", "diet"),),
    ),
    Chat(
        "laptop",
        120,
        (
            ("linux", 0.15, "I use Linux for everything."),
            ("hands", 0.35, "I have carpal tunnel syndrome."),
            ("budget", 0.55, "My budget is 1200 dollars."),
            ("job", 0.7, "I work as a photographer."),
        ),
        (
            Asked("Which laptop should I buy?", ("linux", "budget", "job")),
            Asked("Do you have any tips for a keyboard?", ("hands", "budget")),
        ),
    ),
    Chat(
        "gift",
        200,
        (
            ("daughter", 0.2, "My daughter Lea is nine."),
            ("likes", 0.35, "Lea loves dinosaurs."),
            ("partner", 0.5, "My husband Tom is allergic to cats."),
            ("budget", 0.7, "I don't want to spend more than 40 euros."),
        ),
        (
            Asked("What would be a good birthday present for Lea?", ("daughter", "likes", "budget")),
            Asked("Should we get a pet?", ("daughter", "partner")),
        ),
    ),
    Chat(
        "pregnant",
        150,
        (
            ("pregnant", 0.6, "I'm pregnant."),
            ("cuisine", 0.2, "I love Thai food."),
            ("spicy", 0.4, "I don't like spicy food."),
            ("home", 0.3, "I'm based in Dublin."),
        ),
        (
            Asked("Where can we eat tonight?", ("pregnant", "cuisine", "spicy", "home")),
            Asked("What can I drink at the party?", ("pregnant",)),
        ),
        others=(("user", 0.5, "If I were vegan I would have it easier."),),
    ),
    Chat(
        "moves twice",
        240,
        (
            ("first home", 0.05, "I live in Porto."),
            ("second home", 0.4, "We moved to Madrid for my job."),
            ("home", 0.8, "We moved again, we live in Valencia now."),
            ("kosher", 0.3, "We keep kosher at home."),
            ("wheelchair", 0.5, "My mother uses a wheelchair."),
        ),
        (
            Asked("Any suggestions for a restaurant with my mother?", ("home", "kosher", "wheelchair")),
            Asked("What should we do this weekend?", ("home", "wheelchair")),
        ),
        replaced=(("first home", "home"), ("second home", "home")),
    ),
    Chat(
        "essen",
        140,
        (
            ("diet", 0.2, "Ich bin Vegetarierin."),
            ("allergy", 0.4, "Ich bin allergisch gegen Nüsse."),
            ("home", 0.6, "Ich wohne in Graz."),
        ),
        (
            Asked("Wo soll ich heute Abend essen gehen?", ("diet", "allergy", "home")),
            Asked("Was kann ich am Wochenende kochen?", ("diet", "allergy")),
        ),
        language="german",
    ),
    Chat(
        "frontend",
        160,
        (
            ("stack", 0.2, "Our frontend is written in TypeScript with React."),
            ("windows", 0.35, "I work on Windows because the company says so."),
            ("offline", 0.6, "The app has to work offline."),
            ("hate", 0.75, "I hate Java."),
        ),
        (
            Asked("What should I use for testing?", ("stack", "windows")),
            Asked("Which language should I learn next?", ("stack", "hate")),
        ),
        others=(("tool", 0.5, "Our frontend is written in Vue with Pinia."),),
    ),
)

JUDGING: tuple[Chat, ...] = (
    Chat(
        "oslo",
        280,
        (
            ("diet", 0.15, "Just so you know, I am a pescatarian."),
            ("old home", 0.1, "My flat is in Bristol, above a bakery."),
            ("home", 0.7, "I've relocated to Oslo for good."),
            ("allergy", 0.3, "I've got a shellfish allergy, a bad one."),
            ("money", 0.5, "Money is tight at the moment."),
        ),
        (
            Asked("Got any ideas for where to eat out on Friday?", ("diet", "home", "allergy", "money")),
            Asked("What should I have for lunch?", ("diet", "allergy")),
        ),
        replaced=(("old home", "home"),),
        others=(
            ("user", 0.4, "My colleague Jan is vegan."),
            ("assistant", 0.6, "I live in Paris in this story."),
        ),
    ),
    Chat(
        "household",
        200,
        (
            ("vegetarians", 0.1, "We are vegetarians at home."),
            ("mia", 0.3, "Mia is lactose intolerant."),
            ("mia who", 0.2, "Mia is our daughter."),
            ("oven", 0.6, "We don't have an oven in the new kitchen."),
        ),
        (
            Asked("What can I bake for the school party?", ("mia", "oven")),
            Asked("Suggest a meal for tonight.", ("vegetarians", "mia")),
        ),
    ),
    Chat(
        "data team",
        180,
        (
            ("python", 0.2, "Our team works in Python."),
            ("postgres", 0.35, "We already run PostgreSQL."),
            ("onprem", 0.5, "We aren't allowed to use the cloud."),
            ("license", 0.7, "We can only use open source software."),
        ),
        (
            Asked("What should we use as a vector store?", ("python", "postgres", "onprem", "license")),
            Asked("Which scheduler would suit us?", ("python", "onprem")),
        ),
        others=(("user", 0.4, "Do we run MySQL anywhere?"),),
    ),
    Chat(
        "back pain",
        130,
        (
            ("back", 0.2, "I have a herniated disc."),
            ("pool", 0.4, "I can't swim."),
            ("diabetes", 0.6, "I'm diabetic, type 1."),
            ("evenings", 0.8, "I work night shifts."),
        ),
        (
            Asked("How should I get fitter?", ("back", "pool", "diabetes")),
            Asked("Can you suggest a snack for the afternoon?", ("diabetes",)),
        ),
    ),
    Chat(
        "city break",
        240,
        (
            ("baby", 0.15, "We have a baby who is eight months old."),
            ("car", 0.35, "We don't own a car."),
            ("museums", 0.5, "My partner hates museums."),
            ("home", 0.6, "We're living in Utrecht."),
            ("french", 0.8, "I speak a little French."),
        ),
        (
            Asked("Where could we go for a long weekend?", ("baby", "car", "museums", "home")),
            Asked("Create an itinerary for three days, please.", ("baby", "car", "museums")),
        ),
    ),
    Chat(
        "keto",
        150,
        (
            ("old diet", 0.1, "I'm doing keto."),
            ("diet", 0.7, "I stopped keto in spring, I just avoid sugar now."),
            ("pork", 0.4, "I don't eat pork."),
            ("cilantro", 0.55, "Cilantro tastes like soap to me, I hate it."),
        ),
        (
            Asked("What should I cook tonight?", ("diet", "pork", "cilantro")),
            Asked("I need some ideas for breakfast.", ("diet", "pork")),
        ),
        replaced=(("old diet", "diet"),),
    ),
    Chat(
        "phone",
        110,
        (
            ("eyes", 0.2, "I'm colour-blind."),
            ("small", 0.4, "I have small hands."),
            ("cap", 0.6, "Anything over 500 pounds is too much for me."),
            ("apple", 0.75, "I use a Mac and an iPad."),
        ),
        (
            Asked("What phone should I get?", ("cap", "apple", "small")),
            Asked("Would you recommend a smartwatch?", ("cap", "apple")),
        ),
    ),
    Chat(
        "grandson",
        170,
        (
            ("grandson", 0.2, "My grandson Ben turned five."),
            ("trains", 0.35, "He is crazy about trains."),
            ("screens", 0.5, "His parents don't want him to have screens."),
            ("limit", 0.7, "I have about 30 dollars for it."),
        ),
        (
            Asked("What should I give Ben for Christmas?", ("grandson", "limit")),
            Asked("Any tips for an afternoon with Ben?", ("grandson",)),
        ),
    ),
    Chat(
        "halal",
        140,
        (
            ("halal", 0.25, "We only eat halal."),
            ("nuts", 0.4, "Our son Omar has a nut allergy."),
            ("home", 0.15, "I was living in Leeds until last year."),
            ("new home", 0.6, "My new place is in Manchester."),
        ),
        (
            Asked("Where should we celebrate Omar's birthday?", ("halal", "nuts", "new home")),
            Asked("What should I pack for a day out with Omar?", ("nuts",)),
        ),
    ),
    Chat(
        "kochen",
        120,
        (
            ("vegan", 0.2, "Wir sind Veganer."),
            ("laktose", 0.4, "Mein Sohn verträgt keine Laktose."),
            ("geld", 0.6, "Unser Budget ist knapp."),
            ("wohnt", 0.7, "Ich bin nach Köln gezogen."),
        ),
        (
            Asked("Was soll ich heute kochen?", ("vegan", "laktose")),
            Asked("Hast du Ideen für ein Restaurant?", ("vegan", "wohnt")),
        ),
        language="german",
    ),
    Chat(
        "mobile app",
        200,
        (
            ("kotlin", 0.2, "I'm an Android developer, mostly Kotlin."),
            ("solo", 0.35, "I'm building this alone."),
            ("firebase", 0.5, "We're on Firebase already."),
            ("gdpr", 0.7, "We have to comply with GDPR."),
        ),
        (
            Asked("Which analytics tool should I pick?", ("kotlin", "firebase", "gdpr")),
            Asked("What's a good way to do push messages?", ("kotlin", "firebase")),
        ),
    ),
    Chat(
        "weekend",
        260,
        (
            ("pollen", 0.1, "I get terrible hay fever."),
            ("cat", 0.3, "Our cat needs her medicine twice a day."),
            ("crowds", 0.5, "I dislike crowds."),
            ("home", 0.2, "I'm from Lyon originally, but I live in Nantes."),
            ("teens", 0.7, "My sons are fourteen and sixteen."),
        ),
        (
            Asked("What should we do on Sunday?", ("pollen", "crowds", "home", "teens")),
            Asked("Is it worth going to the festival?", ("crowds",)),
        ),
    ),
)
