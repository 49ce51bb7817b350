// Ask the site's own search worker: node site_search.cjs SITE QUERIES.json prints, per query, the pages it lists, best first.
const fs = require("node:fs"), path = require("node:path"), vm = require("node:vm");
const [site, file] = process.argv.slice(2);
const workers = path.join(site, "assets", "javascripts", "workers");
const script = fs.readFileSync(path.join(workers, fs.readdirSync(workers).find((name) => /^search\..*\.js$/.test(name))), "utf8");
const { config, docs } = JSON.parse(fs.readFileSync(path.join(site, "search", "search_index.json"), "utf8"));
let receive, answer;
const scope = {
  console,
  addEventListener: (_, listener) => (receive = listener),
  postMessage: (message) => answer(message),
};
scope.self = scope;
vm.runInNewContext(script, scope);
const ask = (data) => new Promise((resolve) => { answer = resolve; receive({ data }); });
(async () => {
  await ask({ type: 0, data: { config, docs, options: { suggest: false } } });
  const found = [];
  for (const query of JSON.parse(fs.readFileSync(file, "utf8"))) {
    const { data } = await ask({ type: 2, data: query });
    found.push(data.items.map((group) => group[0].location.split("#")[0]));
  }
  console.log(JSON.stringify(found));
})();
