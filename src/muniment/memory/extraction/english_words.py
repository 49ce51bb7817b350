"""English words and the fragments of patterns: names, places, things, kin, jobs, and what makes a sentence doubtful."""

from __future__ import annotations

import re

from muniment.memory.extraction.tables import word_set

__all__ = [
    "ADVERB",
    "CAP",
    "CLAUSE",
    "DOINGS",
    "DOUBTFUL",
    "FOODS",
    "INTRO",
    "JOBS",
    "KIN",
    "KIN_KEYS",
    "NAME",
    "NEGATION",
    "NO_ALLERGENS",
    "NO_FAVOURITES",
    "NO_NAMES",
    "NO_THINGS",
    "ORG",
    "PLACE",
    "TAIL",
    "THING",
]

# A sentence with one of these may be a supposition, a wish, a report, a story, a thing of the past.
DOUBTFUL = re.compile(
    r"""(?xi) \b (?:
    if|unless|wish(?:es|ed)?|would|could|might|(?-i:may)|should|maybe|perhaps|probably|possibly|supposedly|allegedly|suppose
    |imagine|pretend(?:ing)?|hypothetical(?:ly)?|almost|nearly|dream(?:s|t|ed|ing)?|hop(?:e|es|ing)|plan(?:s|ning)?
    |want(?:s|ed|ing)?|going\sto|gonna|thinking|think|guess|consider(?:ing)?|used\sto|kidding|jok(?:e|ing)|sarcasm
    |said|says?|saying|told|tells?|asked|asks|claim(?:s|ed)?|thought|believes?|wrote|writes|heard|according
    |character|story|novel|movie|film|song|lyrics?|poem|role-?play(?:ing)?|translate|sentence|example|e\.g|i\.e
    |quote[ds]?|then|before|until|till|temporarily|formerly|previously|as\sa\s(?:child|kid|teen)|when|whenever|whether
    |once|someday|one\sday|soon|next|tomorrow|will|shall|won|act\sas|let's|let’s|more\sthan|less\sthan|rather|except
    |sometimes|ex|late|lookalike|instead
    ) \b | ['’](?:ll|d)\b
    """
)
NEGATION = re.compile(
    r"(?i)\b(?:not|never|no longer|hardly|barely|scarcely|neither|nor|without|cannot|nobody)\b|n['’]t\b"
)

INTRO = (
    r"(?:(?:hi|hello|hey|hi there|yes|yeah|yep|no|well|so|oh|ok|okay|actually|by the way|btw|also|and|but|anyway|fyi|"
    r"just so you know|for the record|for context|now|currently|these days|personally|honestly|to be honest|sure|great|"
    r"thanks|thank you|good morning|good evening|as of this week|quick update|update|note|remember|please note|"
    r"turns out|it turns out|good news|bad news|sadly|unfortunately|luckily|finally)"
    r"(?: there| everyone| all)?[,!:—–-]*\s+)*"
)
CLAUSE = re.compile(
    r"\s*[,;:—–]\s+(?:(?:and|but|so)\s+)?(?=(?:I|I['’]m|I['’]ve|[Mm]y|[Ww]e)\b)|\s+(?:and|but|so)\s+(?=(?:I|my)\b)"
)

CAP = r"[A-ZÀ-ÖØ-Þ](?:[\w-]*\w)?(?:['’](?!s\b)\w(?:[\w-]*\w)?)?"
"""A hyphen is read here and nowhere else: two ways to read one would be tried in every combination."""
NAME = rf"(?P<value>{CAP}(?: (?:de |van |von |da |bin |al-)?{CAP}){{0,3}})"
PLACE = rf"(?P<value>(?:the )?(?:St\. )?{CAP}(?: {CAP}){{0,3}}(?:, {CAP}(?: {CAP})?)?)"
ORG = rf"(?P<value>{CAP}(?: (?:& |and |of )?{CAP}){{0,4}})"
TAIL = (
    r"(?=$|[,!]| (?:in|since|last|this|with|now|from|about|near|for|two|three|four|five|a|an|earlier|yesterday|"
    r"recently|on|back|again|at|after|because|and|these|right|today|currently|as|by|to be|where|which|"
    r"whose|too|here) ?)"
)
THING = r"(?P<value>[\w'’-]+(?: [\w'’-]+){0,4})"
ADVERB = r"(?:(?:really|absolutely|also|do|just|truly|totally|still|simply|especially|particularly) )?"

NO_NAMES = word_set(
    """
    I January February March April May June July August September October November December Monday Tuesday
    Wednesday Thursday Friday Saturday Sunday English French German Spanish Chinese Korean Japanese Italian
    American British Russian Indian Christmas Easter God Halloween Home Mom Mum Dad Boss Sir Mud Legion Happy OK
    TV Is Was The And But Not Nobody None Also Yes No
    """
)
NO_THINGS = word_set(
    """
    it that this these those you your yours him her them they he she we us me my our his their to how what when
    where why who which the than but because if so as everything nothing anything something one ones both being
    having doing it's that's there here about idea ideas a an too anyway though either lately again seeing lots
    anymore better best more most less option options version choice draft much very way first second third last
    latest current sounds looks monday tuesday wednesday thursday friday saturday sunday today yesterday
    tonight now done every all some any other another myself yourself himself herself
    """
)
JOBS = (
    r"(?:(?:senior|junior|freelance|retired|registered|software|hardware|data|web|mobile|graphic|interior|product|project|"
    r"civil|electrical|mechanical|high school|primary school|elementary school|school|math|science|music|english|"
    r"pediatric|emergency|veterinary|family|trial|tax|stay-at-home|part-time|full-time|machine learning|UX) ){0,2}"
    r"(?:nurse|doctor|teacher|engineer|developer|programmer|designer|lawyer|attorney|accountant|chef|cook|baker|pilot|"
    r"architect|scientist|researcher|professor|student|journalist|writer|author|editor|photographer|musician|artist|"
    r"actor|dentist|pharmacist|veterinarian|vet|therapist|psychologist|psychiatrist|surgeon|paramedic|firefighter|"
    r"police officer|soldier|farmer|carpenter|electrician|plumber|mechanic|driver|translator|librarian|analyst|"
    r"consultant|manager|salesperson|realtor|barista|waiter|waitress|hairdresser|tailor|economist|biologist|chemist|"
    r"physicist|mathematician|statistician|social worker|flight attendant|tutor|coach)"
)
KIN = (
    r"(?P<kin>brother|sister|wife|husband|son|daughter|mother|mom|mum|father|dad|girlfriend|boyfriend|partner|fianc[ée]e?|"
    r"best friend|uncle|aunt|cousin|nephew|niece|grandmother|grandfather|grandma|grandpa|boss|manager|roommate|dog|cat)"
)
KIN_KEYS = {
    "mom": "mother", "mum": "mother", "dad": "father", "grandma": "grandmother", "grandpa": "grandfather",
    "fiancé": "fiance", "fiancée": "fiance", "fiancee": "fiance", "best friend": "best_friend",
}  # fmt: skip
NO_ALLERGENS = word_set(
    """
    code work working meetings mornings morning mondays stupidity stupid nonsense drama people person homework
    math maths exercise commitment change bullshit nothing everything anything him her them you it this that
    these those fun money effort school politics small cliches hype noise bad sports responsibility chores
    emails spreadsheets love happiness being getting things several many most
    """
)
NO_FAVOURITES = word_set(
    """
    broken gone missing here there ready dirty open shut sold out over lost torn old new great good bad nice
    amazing awesome on in at back always definitely really so very quite pretty too late still finally never
    also actually currently under up down off free available full empty dead alive done due by from near about
    with without for better worse best easy hard not no yours theirs worn
    """
)
DOINGS = frozenset(
    ["hobby", "hobbies", "activity", "activities", "sport", "sports", "pastime", "pastimes", "exercise", "thing"]
)
FOODS = r"(?:meat|red meat|pork|beef|dairy|gluten|fish|seafood|shellfish|eggs|sugar|nuts|peanuts|chicken|lactose)"
