/** A walk in what an edge runtime has and no more: run in a context of its own, with the bundle before it. */

const { Muniment, InvalidInput } = client;

async function walk(baseUrl, apiKey, name) {
  const user = new Muniment({ baseUrl, apiKey }).user(name);
  const after = await user.position();
  const run = user.run();
  const said = await run.observe("user", "I moved to Berlin in May. 🚀");
  for await (const changes of user.changes({ after })) if ((changes.entries ?? []).length > 0) break;
  const build = await run.compose("responder", { query: "Where do I live?" });
  const refused = await run.compose("poet").catch((error) => error);
  const found = [];
  for await (const entry of user.events({ kind: "message" })) found.push(entry.id);
  const isRight = build.marks["1"] === said.id && refused instanceof InvalidInput && refused.path === "$.purpose";
  return isRight && found.length === 1 ? "walked" : JSON.stringify([build, refused, found]);
}
