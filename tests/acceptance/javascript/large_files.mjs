// Uploads a file through Xet, or through LFS, and reads files of a repository back.
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

import { downloadFile, listFiles, uploadFile } from "@huggingface/hub";

import { say } from "./talking.mjs";

const { HUB: hubUrl, TOKEN: accessToken, REPO: repo, FILE: file } = process.env;
const at = { hubUrl, accessToken, repo };

const content = new Blob([readFileSync(file)]);
await uploadFile({ ...at, file: { path: "xet.bin", content } });
await uploadFile({ ...at, file: { path: "lfs.dat", content }, useXet: false });

const files = {};
for await (const entry of listFiles({ ...at })) {
  const blob = await downloadFile({ ...at, path: entry.path });
  const bytes = Buffer.from(await blob.arrayBuffer());
  files[entry.path] = {
    sha256: createHash("sha256").update(bytes).digest("hex"),
    kind: blob.constructor.name,
    isLfs: entry.lfs !== undefined,
  };
}
say({ files });
