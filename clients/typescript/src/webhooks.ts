/** Verification of webhooks, as Standard Webhooks describes it. It runs in Node 20 or later and in other runtimes with Web Crypto. */
import type { components } from "./api.js";

/** An event that a webhook receives. */
export type WebhookEvent = components["schemas"]["OperationEvent"] | components["schemas"]["FileTaskEvent"];

/** The request does not come from the server, or is too old. */
export class InvalidSignature extends Error {
  override readonly name = "InvalidSignature";
}

/**
 * Verifies the signature of a webhook and returns its event. body is the request body as received.
 * secrets are the whsec_… secrets of the webhook, two while one is replaced. Requests whose time differs
 * by more than tolerance seconds are refused.
 */
export async function verifyWebhook(
  secrets: string | readonly string[],
  headers: Headers | Record<string, string | string[] | undefined>,
  body: string | Uint8Array<ArrayBuffer>,
  tolerance = 300,
): Promise<WebhookEvent> {
  const header = (name: string): string => {
    const value = headers instanceof Headers ? headers.get(name) : headers[name];
    return (Array.isArray(value) ? value[0] : value) ?? "";
  };
  const id = header("webhook-id");
  const time = header("webhook-timestamp");
  if (!id || !/^[0-9]+$/.test(time)) throw new InvalidSignature("the headers of a webhook are missing");
  if (Math.abs(Date.now() / 1000 - Number(time)) > tolerance) throw new InvalidSignature("the request is too old, or the clock is wrong");
  const text = typeof body === "string" ? body : new TextDecoder("utf-8", { ignoreBOM: true }).decode(body);
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : body;
  const prefix = new TextEncoder().encode(`${id}.${time}.`);
  const signed = new Uint8Array(prefix.length + bytes.length);
  signed.set(prefix);
  signed.set(bytes, prefix.length);
  const signatures = header("webhook-signature").split(" ").flatMap((s) => (s.startsWith("v1,") ? [decode(s.slice(3))] : []));
  for (const secret of typeof secrets === "string" ? [secrets] : secrets) {
    const raw = decode(secret.replace(/^whsec_/, ""));
    if (!raw) throw new TypeError("a secret of a webhook is whsec_ and Base64");
    const key = await crypto.subtle.importKey("raw", raw, { name: "HMAC", hash: "SHA-256" }, false, ["verify"]);
    for (const signature of signatures) {
      // verify compares in constant time.
      if (signature && (await crypto.subtle.verify("HMAC", key, signature, signed))) return JSON.parse(text) as WebhookEvent;
    }
  }
  throw new InvalidSignature("no signature fits the body and the secrets");
}

function decode(base64: string): Uint8Array<ArrayBuffer> | undefined {
  try {
    return Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
  } catch {
    return undefined;
  }
}
