"""Documents, kept values and threads."""

# -- mem.corpus
from pathlib import Path

import muniment

mem = muniment.open("agent.db")
corpus = mem.corpus("handbook")  # the tenant's; user_id=… makes it one user's

# -- corpus.corpus_id
print(corpus.corpus_id)
# → handbook

# -- corpus.add
document = corpus.add("# Returns\n\nGoods can be sent back within 30 days.", document_id="returns", title="Returns")
print(document.document_id, document.revision)
# → returns 1

# -- corpus.add_file
Path("hours.md").write_text("# Hours\n\nThe shop is open from nine to six.\n")
print(corpus.add_file("hours.md", document_id="hours").document_id)
# → hours

# -- mem.store.add_documents
made = mem.store.add_documents([{"corpus_id": "handbook", "document_id": "payment", "text": "Cards are taken."}])
print([each.document_id for each in made])
# → ['payment']

# -- corpus.documents
print(sorted(each.document_id for each in corpus.documents()))
# → ['hours', 'payment', 'returns']

# -- corpus.get
print(corpus.get("returns").title)
# → Returns

# -- corpus.search
(hit,) = corpus.search("How long can goods be sent back?", k=1)
print(hit.text.splitlines()[-1])
# → Goods can be sent back within 30 days.

# -- corpus.chunk
print("30 days" in corpus.chunk(hit.id).text)
# → True

# -- corpus.retract
print(corpus.retract("payment", "cards are no longer taken").status)
# → retracted

# -- corpus.forget
print(sorted(corpus.forget("hours").counts))
# → ['entries', 'items']

# -- mem.store.values
values = mem.store.values("notes")  # kept values by namespace and key, as LangGraph's store has them

# -- values.put
food = {"namespace": ["ana"], "key": "food", "value": {"text": "likes ramen"}, "texts": ["likes ramen"]}
print(values.put([food], fields=["text"]))
# → 1

# -- values.get
print(values.get([{"namespace": ["ana"], "key": "food"}])[0].value)
# → {'text': 'likes ramen'}

# -- values.search
print([each.value.key for each in values.search(["ana"], query="ramen", fields=["text"]).found])
# → ['food']

# -- values.fill
sport = {"namespace": ["ana"], "key": "sport", "value": {"text": "plays tennis"}}
values.put([sport])  # without its texts nothing of it can be compared
(unread,) = values.search(["ana"], query="tennis", fields=["text"]).unread
print(values.fill([{"event_id": unread.event_id, "texts": ["plays tennis"]}], fields=["text"]))
print([each.value.key for each in values.search(["ana"], query="tennis", fields=["text"], limit=1).found])
# → 1
# → ['sport']

# -- values.history
values.put([{"namespace": ["ana"], "key": "food", "value": {"text": "likes udon"}, "ttl_minutes": 60}])
print([each.value["text"] for each in values.history(["ana"], "food")])
# → ['likes ramen', 'likes udon']

# -- values.prolong
print(values.prolong([{"namespace": ["ana"], "key": "food"}]))
# → 1

# -- values.sweep
print(values.sweep())  # how many had expired
# → 0

# -- values.namespaces
print(values.namespaces())
# → [('ana',)]

# -- values.forget
print(len(values.forget([{"namespace": ["ana"], "key": "food"}])))
# → 1

# -- mem.store.threads
threads = mem.store.threads("graph")  # checkpoints of threads, as LangGraph's checkpointers have them

# -- threads.put
from base64 import b64encode


def part(text):
    return {"type": "json", "data": b64encode(text.encode()).decode()}


head = {"thread_id": "t1", "checkpoint_id": "c1", "head": part("{}"), "metadata": part("{}")}
threads.put(head | {"values": {"messages": part('["hello"]')}})

# -- threads.put_writes
threads.put_writes("t1", "c1", [{"task_id": "a", "number": 0, "channel": "messages", "value": part('"more"')}])

# -- threads.get
print(len(threads.get("t1").writes))
# → 1

# -- threads.checkpoints
print([each.checkpoint_id for each in threads.checkpoints(thread_id="t1").items])
# → ['c1']

# -- threads.copy
threads.copy("t1", "t2")

# -- threads.thread_ids
print(sorted(threads.thread_ids()))
# → ['t1', 't2']

# -- threads.forget
print(len(threads.forget("t2")) > 0)
# → True
