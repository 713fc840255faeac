// How a script talks to the test that runs it: one JSON object on a line, each way.
import { createServer } from "node:http";

export const hub = new URL(process.env.HUB);

export function say(told) {
  console.log(JSON.stringify(told));
}

// Listens where an app on this machine would; resolves with the address it was called at.
export async function listen() {
  let resolve;
  const called = new Promise((done) => (resolve = done));
  const server = createServer((request, response) => {
    response.end("You can close this page.");
    resolve(new URL(request.url, address));
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const address = `http://127.0.0.1:${server.address().port}`;
  return { address, called, close: () => server.close() };
}
