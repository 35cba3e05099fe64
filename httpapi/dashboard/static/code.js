// The one-call form of a run as a program. Secrets are read from the environment.

export const languages = { curl: "curl", go: "Go", node: "Node", python: "Python" };

/** Quotes a text for Go, JavaScript and Python alike: JSON is valid in all three. */
const quote = (text) => JSON.stringify(text);

/** The form fields of the parameters; a secret is the name of a variable. */
function fields(parameters, secrets) {
  return Object.entries(parameters).map(([name, v]) => [name, secrets.has(name) ? null : typeof v === "object" ? JSON.stringify(v) : String(v)]);
}

const variable = (name) => name.toUpperCase();

function python(action, files, list) {
  const data = list.map(([name, v]) => `        ${quote(name)}: ${v === null ? `os.environ[${quote(variable(name))}]` : quote(v)},\n`).join("");
  const parts = files.map((f) => `        ("file", open(${quote(f)}, "rb")),\n`).join("");
  return `import os, re, requests

response = requests.post(
    os.environ["API"] + ${quote(`/api/v1/run/${action}`)},
    headers={"Authorization": "Bearer " + os.environ["KEY"]},
    files=[\n${parts}    ],
    data={\n${data}    },
)
if not response.ok:
    raise SystemExit(response.json()["detail"])
name = re.search('filename="([^"]*)"', response.headers["Content-Disposition"]).group(1)
with open(os.path.basename(name), "wb") as out:
    out.write(response.content)
`;
}

function node(action, files, list) {
  const data = list.map(([name, v]) => `form.append(${quote(name)}, ${v === null ? `process.env.${variable(name)}` : quote(v)});\n`).join("");
  const parts = files.map((f) => `form.append("file", await openAsBlob(${quote(f)}), ${quote(f)});\n`).join("");
  return `import { openAsBlob } from "node:fs";
import { writeFile } from "node:fs/promises";
import { basename } from "node:path";

const form = new FormData();
${parts}${data}
const response = await fetch(process.env.API + ${quote(`/api/v1/run/${action}`)}, {
  method: "POST",
  headers: { Authorization: \`Bearer \${process.env.KEY}\` },
  body: form,
});
if (!response.ok) throw new Error((await response.json()).detail);
const name = /filename="([^"]*)"/.exec(response.headers.get("Content-Disposition"))[1];
await writeFile(basename(name), Buffer.from(await response.arrayBuffer()));
`;
}

function go(action, files, list) {
  const data = list.map(([name, v]) => `\tform.WriteField(${quote(name)}, ${v === null ? `os.Getenv(${quote(variable(name))})` : quote(v)})\n`).join("");
  return `package main

import (
	"bytes"
	"io"
	"log"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
)

func main() {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	for _, name := range []string{${files.map(quote).join(", ")}} {
		content, err := os.ReadFile(name)
		if err != nil {
			log.Fatal(err)
		}
		part, err := form.CreateFormFile("file", name)
		if err != nil {
			log.Fatal(err)
		}
		part.Write(content)
	}
${data}	form.Close()
	request, err := http.NewRequest("POST", os.Getenv("API")+${quote(`/api/v1/run/${action}`)}, &body)
	if err != nil {
		log.Fatal(err)
	}
	request.Header.Set("Content-Type", form.FormDataContentType())
	request.Header.Set("Authorization", "Bearer "+os.Getenv("KEY"))
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	result, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK {
		log.Fatalf("%s: %s %v", response.Status, result, err)
	}
	_, params, err := mime.ParseMediaType(response.Header.Get("Content-Disposition"))
	if err != nil {
		log.Fatal(err)
	}
	if err := os.WriteFile(filepath.Base(params["filename"]), result, 0o600); err != nil {
		log.Fatal(err)
	}
}
`;
}

/** Returns the program that runs an action on files in one call. */
export function program(language, action, files, parameters, secrets) {
  return { python, node, go }[language](action, files, fields(parameters, secrets));
}
