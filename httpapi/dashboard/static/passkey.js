// Passkeys (WebAuthn): a form with data-passkey gets a passkey from the browser before it is sent.

import { announce } from "./app.js";

const decode = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
const encode = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes))).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");

const descriptors = (list) => list?.map((c) => ({ ...c, id: decode(c.id) }));

/** Returns options of the server in the form that navigator.credentials takes. */
function parse(options) {
  const o = { ...options, challenge: decode(options.challenge) };
  if (o.user) o.user = { ...o.user, id: decode(o.user.id) };
  if (o.excludeCredentials) o.excludeCredentials = descriptors(o.excludeCredentials);
  if (o.allowCredentials) o.allowCredentials = descriptors(o.allowCredentials);
  return o;
}

/** Returns a credential as JSON (RegistrationResponseJSON or AuthenticationResponseJSON). */
function format(credential) {
  const r = credential.response;
  const response = { clientDataJSON: encode(r.clientDataJSON) };
  if (r.attestationObject) {
    response.attestationObject = encode(r.attestationObject);
    response.transports = r.getTransports?.() ?? [];
  } else {
    response.authenticatorData = encode(r.authenticatorData);
    response.signature = encode(r.signature);
    if (r.userHandle) response.userHandle = encode(r.userHandle);
  }
  return JSON.stringify({
    id: credential.id, rawId: encode(credential.rawId), type: credential.type, response,
    authenticatorAttachment: credential.authenticatorAttachment ?? undefined, clientExtensionResults: {},
  });
}

const failures = {
  NotAllowedError: "The browser did not return a passkey. Please try again.",
  InvalidStateError: "This device already has a passkey for the account.",
  SecurityError: "The browser does not allow passkeys at this address.",
};

async function ask(form) {
  const response = await fetch(form.dataset.passkey, { method: "POST", body: new URLSearchParams(new FormData(form)), headers: { Accept: "application/json" } });
  if (!response.headers.get("Content-Type")?.startsWith("application/json")) throw new Error("The server cannot handle this request now. Please try again.");
  const answer = await response.json();
  if (answer.error) throw new Error(answer.error);
  const publicKey = parse(answer.options);
  const credential = publicKey.user ? await navigator.credentials.create({ publicKey }) : await navigator.credentials.get({ publicKey });
  form.elements.ticket.value = answer.ticket;
  form.elements.credential.value = format(credential);
}

for (const form of document.querySelectorAll("form[data-passkey]")) {
  if (!window.PublicKeyCredential) continue;
  form.hidden = false;
  const problem = form.querySelector(".passkey-error");
  const button = form.querySelector("button");
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (button.disabled) return;
    button.disabled = true;
    problem.hidden = true;
    try {
      await ask(form);
      form.submit();
    } catch (error) {
      problem.textContent = failures[error.name] ?? error.message;
      problem.hidden = false;
      announce(problem.textContent);
    } finally {
      button.disabled = false;
    }
  });
}
