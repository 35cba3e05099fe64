// Writes the types of src/api.ts: what the OpenAPI document of a server has as schemas, without paths,
// responses and envelopes, which the client hides.
//
//     node generate.mjs http://localhost:8080/openapi.json > src/api.ts
import { readFile } from "node:fs/promises";
import openapiTS, { astToString, COMMENT_HEADER } from "openapi-typescript";

const source = process.argv[2];
const text = /^https?:/.test(source) ? await (await fetch(source)).text() : await readFile(source, "utf8");
const { openapi, info, components } = JSON.parse(text);
const schemas = Object.fromEntries(Object.entries(components.schemas).filter(([name]) => !name.endsWith("Envelope")));
process.stdout.write(COMMENT_HEADER + astToString(await openapiTS({ openapi, info, paths: {}, components: { schemas } })));
