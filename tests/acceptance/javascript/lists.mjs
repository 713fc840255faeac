// The JavaScript client lists repositories by every filter and order, and keeps collections.
import {
  createCollection,
  createRepo,
  DATASET_EXPANDABLE_KEYS,
  deleteCollection,
  listCollections,
  listDatasets,
  listModels,
  listSpaces,
  MODEL_EXPANDABLE_KEYS,
  SPACE_EXPANDABLE_KEYS,
  uploadFile,
} from "@huggingface/hub";
import { hub, say } from "./talking.mjs";

const client = { hubUrl: hub.origin, accessToken: process.env.HF_TOKEN };

// For what the client has no function.
async function post(path, body = {}) {
  const headers = {
    Authorization: `Bearer ${client.accessToken}`,
    "Content-Type": "application/json",
  };
  const request = { method: "POST", headers, body: JSON.stringify(body) };
  const response = await fetch(`${hub.origin}/api/${path}`, request);
  if (!response.ok) throw new Error(await response.text());
}

async function repo(type, name, card, options = {}) {
  await createRepo({ ...client, repo: { type, name }, ...options });
  const content = new Blob([`---\n${JSON.stringify(card)}\n---\n# ${name}\n`]);
  await uploadFile({ ...client, repo: { type, name }, file: { path: "README.md", content } });
}

async function names(entries, key = "name") {
  const found = [];
  for await (const entry of entries) found.push(entry[key]);
  return found;
}

async function first(entries) {
  return (await entries.next()).value;
}

const card = { pipeline_tag: "fill-mask", tags: ["steam"], library_name: "keras" };
await repo("model", "ada/engine", card);
await repo("model", "ada/mill", { tags: ["steam", "water"] });
await repo("model", "ada/secret", { tags: ["steam"] }, { private: true });
await repo("dataset", "ada/words", { language: ["fr"], tags: ["dictionary"] });
await repo("dataset", "ada/numbers", {});
await repo("space", "ada/demo", { sdk: "static", models: ["ada/engine"], tags: ["toy"] }, { sdk: "static" });
await post("models/ada/mill/like");

const models = (params) => names(listModels({ ...client, ...params }));
say({
  models: {
    all: (await models()).sort(),
    anonymous: (await names(listModels({ hubUrl: hub.origin }))).sort(),
    query: await models({ search: { query: "engin", owner: "ada" } }),
    task: await models({ search: { task: "fill-mask" } }),
    tags: await models({ search: { tags: ["steam", "water"] } }),
    apps: await models({ search: { apps: ["vllm"] } }),
    providers: await models({ search: { inferenceProviders: ["groq"] } }),
    likes: await models({ sort: "likes", limit: 1 }),
  },
});

const datasets = (params) => names(listDatasets({ ...client, ...params }));
say({
  datasets: {
    query: await datasets({ search: { query: "word", owner: "ada" } }),
    tags: await datasets({ search: { tags: ["dictionary", "language:fr"] } }),
    created: await datasets({ sort: "createdAt", limit: 1 }),
  },
});

const spaces = (params) => names(listSpaces({ ...client, ...params }));
say({
  spaces: {
    query: await spaces({ search: { query: "demo", owner: "ada", tags: ["toy"] } }),
    none: await spaces({ search: { tags: ["gradio"] } }),
    modified: await spaces({ sort: "lastModified" }),
  },
});

// Every order that a list has here, and every field that the client can ask for.
const orders = {};
for (const sort of ["createdAt", "downloads", "likes", "lastModified", "trendingScore"]) {
  orders[sort] = [
    (await models({ sort })).length,
    (await datasets({ sort })).length,
    (await spaces({ sort })).length,
  ];
}
const model = await first(
  listModels({
    ...client,
    search: { query: "engine" },
    additionalFields: [...MODEL_EXPANDABLE_KEYS, "filePaths"],
  }),
);
const dataset = await first(
  listDatasets({ ...client, search: { query: "words" }, additionalFields: DATASET_EXPANDABLE_KEYS }),
);
const space = await first(listSpaces({ ...client, additionalFields: SPACE_EXPANDABLE_KEYS }));
say({
  orders,
  fields: {
    model: [model.author, model.task, model.library_name, model.spaces, model.filePaths.sort()],
    dataset: [dataset.author, dataset.cardData.language, dataset.sha.length],
    space: [space.author, space.sdk, space.models],
  },
});

const collection = { title: "Wheels", description: "All that turns", namespace: "ada" };
const { slug } = await createCollection({ ...client, collection });
const hidden = { title: "Hidden", namespace: "ada", private: true };
const other = await createCollection({ ...client, collection: hidden });
const item = { type: "model", id: "ada/engine" };
await post(`collections/${slug}/items`, { item, note: "The first" });
const collections = (params) => names(listCollections({ ...client, ...params }), "title");
const { items, theme, owner } = await first(listCollections({ ...client, search: { q: "turns" } }));
const listed = {
  all: (await collections()).sort(),
  anonymous: await names(listCollections({ hubUrl: hub.origin }), "title"),
  item: await collections({ search: { item: ["models/ada/engine"], owner: ["ada"] } }),
  newest: await collections({ sort: "lastModified", limit: 1 }),
  upvotes: (await collections({ sort: "upvotes" })).length,
  trending: (await collections({ sort: "trending" })).length,
  shown: [items.map((each) => [each.id, each.note.text]), theme, owner.name],
};
const gone = { ...client, slug: other.slug };
await deleteCollection(gone);
const again = await deleteCollection(gone).catch((error) => error.statusCode);
say({ collections: { ...listed, again, after: await collections() } });
