"""What a packet tells of the person who asks for advice, where no word of the question leads to it.

`topics` says what matters for which kind of question and by which words a turn may be looked up, `statements` which
turns state something that stands, `bringing` adds those turns to what a request may quote. Only what the user says of
themselves and theirs is brought in, word for word and cited like any other turn. Nothing here guesses, and no question
but one for advice comes here.
"""
