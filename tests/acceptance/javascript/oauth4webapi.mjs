// oauth4webapi: each of our answers goes through its strict validators.
import * as oauth from "oauth4webapi";
import { hub, listen, say } from "./talking.mjs";

const client = { client_id: process.env.CLIENT_ID };
const insecure = { [oauth.allowInsecureRequests]: true };
const none = oauth.None();

for (const algorithm of ["oidc", "oauth2"]) {
  const response = await oauth.discoveryRequest(hub, { algorithm, ...insecure });
  const server = await oauth.processDiscoveryResponse(new URL(hub.origin), response);
  const { address, called, close } = await listen();
  const redirect = `${address}/callback`;
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const nonce = oauth.generateRandomNonce();
  const visit = new URL(server.authorization_endpoint);
  visit.search = new URLSearchParams({
    client_id: client.client_id,
    redirect_uri: redirect,
    response_type: "code",
    scope: "openid profile",
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    state,
    nonce,
  });
  say({ visit });
  const parameters = oauth.validateAuthResponse(server, client, await called, state);
  close();
  const granted = await oauth.processAuthorizationCodeResponse(
    server,
    client,
    await oauth.authorizationCodeGrantRequest(
      server, client, none, parameters, redirect, verifier, insecure,
    ),
    { expectedNonce: nonce, requireIdToken: true, maxAge: oauth.skipAuthTimeCheck },
  );
  const claims = oauth.getValidatedIdTokenClaims(granted);
  const told = await oauth.processUserInfoResponse(
    server,
    client,
    claims.sub,
    await oauth.userInfoRequest(server, client, granted.access_token, insecure),
  );
  const refreshed = await oauth.processRefreshTokenResponse(
    server,
    client,
    await oauth.refreshTokenGrantRequest(server, client, none, granted.refresh_token, insecure),
  );
  await oauth.processRevocationResponse(
    await oauth.revocationRequest(server, client, none, refreshed.refresh_token, insecure),
  );
  say({ [algorithm]: { user: told.preferred_username, type: granted.token_type } });
}
