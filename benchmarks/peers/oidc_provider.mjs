// The peer of `oauth`: npm's oidc-provider with one client, its rows in memory or on the disk.
//
// Its own adapter for memory keeps a thousand rows and walks through all tokens of a grant at
// each write, which would be measured instead of it; so it is given one that does neither. The
// one for the disk is SQLite with a commit for each call, which is all that an adapter can do.

import { generateKeyPairSync } from 'node:crypto';
import { createServer } from 'node:http';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';

const plan = JSON.parse(process.argv[2]);
const library = join(plan.folder, 'node_modules', 'oidc-provider', 'lib', 'index.js');
const { Provider } = await import(pathToFileURL(library));

const seconds = () => Math.floor(Date.now() / 1000);

function inMemory() {
  const rows = new Map();
  const grants = new Map();
  return (model) => ({
    async upsert(id, payload) {
      rows.set(`${model}:${id}`, payload);
      if (payload.grantId === undefined) return;
      if (!grants.has(payload.grantId)) grants.set(payload.grantId, new Set());
      grants.get(payload.grantId).add(`${model}:${id}`);
    },
    async find(id) {
      return rows.get(`${model}:${id}`);
    },
    async consume(id) {
      rows.get(`${model}:${id}`).consumed = seconds();
    },
    async destroy(id) {
      rows.delete(`${model}:${id}`);
    },
    async revokeByGrantId(grantId) {
      for (const key of grants.get(grantId) ?? []) rows.delete(key);
    },
  });
}

function onDisk(path) {
  const database = new DatabaseSync(path);
  database.exec(`
    PRAGMA journal_mode = WAL;
    PRAGMA synchronous = FULL;
    CREATE TABLE rows (key TEXT PRIMARY KEY, payload TEXT NOT NULL, grant_id TEXT, consumed BIGINT);
    CREATE INDEX rows_of_grant ON rows (grant_id);
  `);
  const upsert = database.prepare(
    `INSERT INTO rows (key, payload, grant_id) VALUES (?, ?, ?)
     ON CONFLICT (key) DO UPDATE SET payload = excluded.payload, grant_id = excluded.grant_id`,
  );
  const find = database.prepare('SELECT payload, consumed FROM rows WHERE key = ?');
  const consume = database.prepare('UPDATE rows SET consumed = ? WHERE key = ?');
  const destroy = database.prepare('DELETE FROM rows WHERE key = ?');
  const revoke = database.prepare('DELETE FROM rows WHERE grant_id = ?');
  return {
    inOneCommit: async (work) => {
      database.exec('BEGIN');
      const done = await work();
      database.exec('COMMIT');
      return done;
    },
    adapter: (model) => ({
      async upsert(id, payload) {
        upsert.run(`${model}:${id}`, JSON.stringify(payload), payload.grantId ?? null);
      },
      async find(id) {
        const row = find.get(`${model}:${id}`);
        if (row === undefined) return undefined;
        const payload = JSON.parse(row.payload);
        return row.consumed === null ? payload : { ...payload, consumed: row.consumed };
      },
      async consume(id) {
        consume.run(seconds(), `${model}:${id}`);
      },
      async destroy(id) {
        destroy.run(`${model}:${id}`);
      },
      async revokeByGrantId(grantId) {
        revoke.run(grantId);
      },
    }),
  };
}

const disk = plan.path === null ? null : onDisk(plan.path);
const key = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey.export({ format: 'jwk' });
const account = { sub: plan.user, name: 'Ada', preferred_username: 'ada', email: 'ada@hub.test' };

const provider = new Provider(`http://127.0.0.1:${plan.port}`, {
  adapter: disk === null ? inMemory() : disk.adapter,
  clients: [
    {
      client_id: plan.client_id,
      client_secret: plan.client_secret,
      redirect_uris: [plan.redirect_uri],
      grant_types: ['authorization_code', 'refresh_token', 'client_credentials'],
    },
  ],
  cookies: { keys: ['benchmarks'] },
  jwks: { keys: [{ ...key, alg: 'RS256', use: 'sig', kid: 'benchmarks' }] },
  scopes: ['openid', 'offline_access', 'read-repos'],
  claims: { openid: ['sub'], profile: ['name', 'preferred_username'], email: ['email'] },
  findAccount: async () => ({ accountId: plan.user, claims: async () => account }),
  issueRefreshToken: async () => true,
  rotateRefreshToken: true,
  features: {
    clientCredentials: { enabled: true },
    devInteractions: { enabled: false },
    introspection: { enabled: true, allowedPolicy: async () => true },
  },
  ttl: { AccessToken: 28800, AuthorizationCode: 600, ClientCredentials: 28800, Grant: 7776000,
    IdToken: 3600, RefreshToken: 2592000 },
});

// What a person's consent would have made, for those who redeem it.
async function prepare({ count, scope, kind }) {
  const client = await provider.Client.find(plan.client_id);
  const values = [];
  for (let made = 0; made < count; made += 1) {
    const grant = new provider.Grant({ accountId: plan.user, clientId: plan.client_id });
    grant.addOIDCScope(scope);
    const about = {
      accountId: plan.user,
      authTime: seconds(),
      client,
      grantId: await grant.save(),
      gty: 'authorization_code',
      scope,
    };
    const more =
      kind === 'AuthorizationCode'
        ? { codeChallenge: plan.challenge, codeChallengeMethod: 'S256', redirectUri: plan.redirect_uri }
        : {};
    values.push(await new provider[kind]({ ...about, ...more }).save());
  }
  return values;
}

const answer = provider.callback();
createServer((request, response) => {
  if (!request.url.startsWith('/prepare?')) {
    answer(request, response);
    return;
  }
  const asked = Object.fromEntries(new URL(request.url, 'http://hub.test').searchParams);
  const work = () => prepare({ ...asked, count: Number(asked.count) });
  (disk === null ? work() : disk.inOneCommit(work)).then(
    (values) => response.end(JSON.stringify(values)),
    (error) => response.writeHead(500).end(String(error)),
  );
}).listen(plan.port, '127.0.0.1');
