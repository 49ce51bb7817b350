/**
 * What is made of the OpenAPI document: `src/openapi.d.ts`, its types, and `src/operations.ts`, what a request to each
 * address takes so that it can be sent again. Both are built, never edited, and not in the repository.
 * The types go to `dist` from here: the compiler copies no declarations.
 *
 * Of the answers only those that are answers are kept: each problem has one shape, which `errors.ts` reads.
 */

import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import openapiTS, { astToString } from "openapi-typescript";

const here = (path) => fileURLToPath(new URL(`../${path}`, import.meta.url));
const [document_ = here("../../docs/reference/openapi.json"), out = here("src"), licence = here("../../LICENSE")] =
  process.argv.slice(2);
const TITLE = "/** Made of the OpenAPI document by scripts/generate.mjs: do not edit. */\n\n";
const METHODS = ["get", "post", "put", "patch", "delete"];
const ANSWERS = new Set(["200", "201", "204"]);

const told = JSON.parse(await readFile(document_, "utf-8"));
const keyed = [];
const reads = [];
for (const [path, item] of Object.entries(told.paths)) {
  for (const method of METHODS) {
    const operation = item[method];
    if (operation === undefined) continue;
    const address = `${method} ${path}`;
    if (JSON.stringify(operation.parameters ?? []).includes("Idempotency-Key")) keyed.push(address);
    else if (method !== "get" && operation["x-access"] === "read") reads.push(address);
    operation.responses = Object.fromEntries(
      Object.entries(operation.responses)
        .filter(([status]) => ANSWERS.has(status))
        .map(([status, { headers: _, ...answer }]) => [status, answer]),
    );
    if (operation.description === operation.summary) delete operation.description;
  }
}
delete told.components.responses;
delete told.components.headers;

const types = astToString(await openapiTS(told, { emptyObjectsUnknown: true, silent: true }))
  .replace(/^ +(?:options|head|trace|put|cookie|header)\?: never;\n/gm, "")
  .replace(/^(?: {4})+/gm, (indent) => " ".repeat(indent.length / 4));
const listed = (name, words, items) =>
  `/** ${words} */\nexport const ${name}: ReadonlySet<string> = new Set([\n${items.map((each) => `  ${JSON.stringify(each)},\n`).join("")}]);\n`;
await mkdir(`${out}/../dist`, { recursive: true });
for (const each of [out, `${out}/../dist`]) await writeFile(`${each}/openapi.d.ts`, TITLE + types);
await writeFile(
  `${out}/operations.ts`,
  TITLE +
    listed("KEYED", "What takes an Idempotency-Key: sent again under it, it is carried out once.", keyed) +
    "\n" +
    listed("READS", "What is sent with a body and writes nothing.", reads),
);
if (licence !== "-") await copyFile(licence, here("LICENSE"));
