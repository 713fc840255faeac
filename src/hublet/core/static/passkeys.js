// Passkeys: asks the browser for one, then sends its answer as an ordinary form.

"use strict";

const toBytes = (text) =>
  Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));

const toText = (buffer) =>
  btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

const withBytes = (descriptors) =>
  (descriptors || []).map((each) => ({ ...each, id: toBytes(each.id) }));

function forTheBrowser(options) {
  const asked = { ...options, challenge: toBytes(options.challenge) };
  if (asked.user) asked.user = { ...asked.user, id: toBytes(asked.user.id) };
  asked.excludeCredentials = withBytes(asked.excludeCredentials);
  asked.allowCredentials = withBytes(asked.allowCredentials);
  return asked;
}

function forTheHub(credential) {
  const response = {};
  for (const name of ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"]) {
    if (credential.response[name]) response[name] = toText(credential.response[name]);
  }
  return JSON.stringify({
    id: credential.id, rawId: toText(credential.rawId), type: credential.type, response,
  });
}

const SENTENCES = {
  InvalidStateError: "This device has a passkey of your account already.",
  NotAllowedError: "Nothing was chosen, or it took too long. Try again.",
};

async function ask(form) {
  const answer = await fetch(form.dataset.options, {
    method: "POST", body: new URLSearchParams(new FormData(form)),
  });
  // Who has to sign in first is led to another page; loading this one again does the same.
  if (answer.redirected) return location.reload();
  const body = await answer.json();
  if (!answer.ok) throw new Error(body.error);
  const credential = await navigator.credentials[form.dataset.passkey]({
    publicKey: forTheBrowser(body),
  });
  form.elements.answer.value = forTheHub(credential);
  form.submit();
}

function offer(form) {
  form.hidden = false;
  const notice = form.querySelector("[role=alert]");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    notice.hidden = true;
    ask(form).catch((error) => {
      notice.textContent = SENTENCES[error.name] || error.message;
      notice.hidden = false;
    });
  });
}

if (window.PublicKeyCredential) {
  document.querySelectorAll("form[data-passkey]").forEach(offer);
  for (const words of document.querySelectorAll("[data-without-passkeys]")) words.hidden = true;
}
