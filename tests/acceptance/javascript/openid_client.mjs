// openid-client, certified as a relying party: every flow, as its documentation shows it.
import * as client from "openid-client";
import { createRemoteJWKSet, jwtVerify } from "jose";
import { hub, listen, say } from "./talking.mjs";

const { CLIENT_ID, CLIENT_SECRET, EXCHANGE_ID, EXCHANGE_SECRET, MEMBER } = process.env;
const options = { execute: [client.allowInsecureRequests] };

async function discover(id, secret) {
  const proof = secret ? client.ClientSecretBasic(secret) : client.None();
  return client.discovery(hub, id, secret, proof, options);
}

async function codeFlow(config) {
  const { address, called, close } = await listen();
  const verifier = client.randomPKCECodeVerifier();
  const state = client.randomState();
  const nonce = client.randomNonce();
  const visit = client.buildAuthorizationUrl(config, {
    redirect_uri: `${address}/callback`,
    scope: "openid profile email read-repos",
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    state,
    nonce,
  });
  say({ visit });
  const tokens = await client.authorizationCodeGrant(config, await called, {
    pkceCodeVerifier: verifier,
    expectedState: state,
    expectedNonce: nonce,
    idTokenExpected: true,
  });
  close();
  return tokens;
}

async function check(name, id, secret) {
  const config = await discover(id, secret);
  const tokens = await codeFlow(config);
  const { sub } = tokens.claims();
  const { jwks_uri: keys } = config.serverMetadata();
  await jwtVerify(tokens.id_token, createRemoteJWKSet(new URL(keys)), {
    issuer: hub.origin,
    audience: id,
  });
  const info = await client.fetchUserInfo(config, tokens.access_token, sub);
  const next = await client.refreshTokenGrant(config, tokens.refresh_token);
  const active = secret && (await client.tokenIntrospection(config, next.access_token)).active;
  await client.tokenRevocation(config, next.refresh_token);
  const refused = await client
    .refreshTokenGrant(config, next.refresh_token)
    .catch((error) => error.error);
  say({
    [name]: {
      scope: tokens.scope,
      user: info.preferred_username,
      rotated: next.refresh_token !== tokens.refresh_token,
      active,
      refused,
      logout: client.buildEndSessionUrl(config, { id_token_hint: tokens.id_token }).pathname,
    },
  });
}

async function device(id) {
  const config = await discover(id);
  const asked = await client.initiateDeviceAuthorization(config, { scope: "openid profile" });
  say({ visit: asked.verification_uri_complete });
  const tokens = await client.pollDeviceAuthorizationGrant(config, asked);
  say({ device: { scope: tokens.scope, interval: asked.interval, code: asked.user_code.length } });
}

async function exchange() {
  const config = await discover(EXCHANGE_ID, EXCHANGE_SECRET);
  const tokens = await client.genericGrantRequest(
    config,
    "urn:ietf:params:oauth:grant-type:token-exchange",
    { subject_token: MEMBER, subject_token_type: "urn:hub:token-type:user-email" },
  );
  say({
    exchange: {
      type: tokens.issued_token_type,
      expires: tokens.expires_in,
      refresh: tokens.refresh_token ?? null,
    },
  });
}

await check("public", CLIENT_ID);
await check("confidential", EXCHANGE_ID, EXCHANGE_SECRET);
await device(CLIENT_ID);
await exchange();
