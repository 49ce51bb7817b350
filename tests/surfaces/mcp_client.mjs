// The official TypeScript SDK against a server: over stdio, or at an address. Prints one line of JSON.
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import path from "node:path";

const [folder, kind, ...rest] = process.argv.slice(2);
const require = createRequire(path.join(folder, "x.js"));
const load = (name) => import(pathToFileURL(require.resolve(`@modelcontextprotocol/sdk/${name}`)).href);
const { Client } = await load("client/index.js");
const { StdioClientTransport } = await load("client/stdio.js");
const { StreamableHTTPClientTransport } = await load("client/streamableHttp.js");

const transport =
  kind === "stdio"
    ? new StdioClientTransport({ command: rest[0], args: rest.slice(1), env: process.env })
    : new StreamableHTTPClientTransport(new URL(rest[0]));
const client = new Client({ name: "t", version: "1" });
await client.connect(transport);
const tools = (await client.listTools()).tools;
const kept = await client.callTool({ name: "remember", arguments: { key: "user.city", value: "Berlin" } });
const found = await client.callTool({ name: "search_memory", arguments: { query: "user.city Berlin" } });
const context = await client.callTool({ name: "get_context", arguments: { query: "Where does the user live?" } });
const refused = await client.callTool({ name: "search_memory", arguments: {} });
const packet = await client.readResource({ uri: `muniment://builds/${context.structuredContent.build_id}` });
const completed = await client.complete({
  ref: { type: "ref/resource", uri: "muniment://facts/{fact_id}" },
  argument: { name: "fact_id", value: "" },
});
const prompts = (await client.listPrompts()).prompts;
await client.close();
console.log(
  JSON.stringify({
    tools: tools.map((tool) => tool.name),
    sources: kept.structuredContent.fact.sources.length,
    hits: found.structuredContent.hits.length,
    told: context.structuredContent.text,
    refused: [refused.isError, JSON.parse(refused.content[0].text).path],
    packet: packet.contents[0].mimeType,
    completed: completed.completion.values.length,
    prompts: prompts.map((prompt) => prompt.name),
  }),
);
