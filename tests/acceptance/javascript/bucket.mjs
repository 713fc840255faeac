// The JavaScript client puts files into a bucket, reads, copies and deletes them.
import {
  copyFile,
  createRepo,
  deleteFile,
  downloadFile,
  fileDownloadInfo,
  listFiles,
  pathsInfo,
  uploadFiles,
} from "@huggingface/hub";
import { hub, say } from "./talking.mjs";

const client = {
  hubUrl: hub.origin,
  accessToken: process.env.HF_TOKEN,
  repo: { type: "bucket", name: process.env.BUCKET },
};

async function sha256(blob) {
  const digest = await crypto.subtle.digest("SHA-256", await blob.arrayBuffer());
  return Buffer.from(digest).toString("hex");
}

// 3 MB that no compression makes smaller, and a text.
const large = new Uint8Array(3_000_000);
let state = 1;
for (let at = 0; at < large.length; at++) {
  state = (Math.imul(state, 1103515245) + 12345) >>> 0;
  large[at] = state >>> 16;
}
const contents = {
  "large.bin": new Blob([large]),
  "sub/a b.txt": new Blob(["hello"]),
};

await createRepo({ ...client, private: true });
await uploadFiles({
  ...client,
  files: Object.entries(contents).map(([path, content]) => ({ path, content })),
});

const info = await fileDownloadInfo({ ...client, path: "large.bin" });
const same = {};
for (const [path, content] of Object.entries(contents)) {
  const file = await downloadFile({ ...client, path });
  same[path] = (await sha256(file)) === (await sha256(content));
}
const part = await downloadFile({ ...client, path: "large.bin" });
const slice = Buffer.from(await part.slice(1_000_000, 1_000_016).arrayBuffer());

await copyFile({
  hubUrl: client.hubUrl,
  accessToken: client.accessToken,
  source: { repo: client.repo, path: "large.bin" },
  destination: { repo: client.repo, path: "copy.bin" },
});
const [copied] = await pathsInfo({ ...client, paths: ["copy.bin"] });
await deleteFile({ ...client, path: "large.bin" });

const listed = [];
for await (const entry of listFiles({ ...client, recursive: true })) {
  listed.push([entry.path, entry.size]);
}
say({
  size: info.size,
  byXet: info.xet?.hash === copied.xetHash,
  same,
  slice: slice.equals(Buffer.from(large.slice(1_000_000, 1_000_016))),
  listed,
});
