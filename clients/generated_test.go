//go:build linux

package clients

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// strict are the options of the TypeScript compiler in these tests.
var strict = []string{
	"--strict", "--noUncheckedIndexedAccess", "--skipLibCheck", "--target", "es2022",
	"--module", "nodenext", "--moduleResolution", "nodenext", "--types", "node", "--outDir", "out",
}

// requests returns bodies of do: each action with its required parameters, and with all parameters, and
// all of them as steps.
func requests(doc map[string]any) (bodies []map[string]any) {
	schemas := doc["components"].(map[string]any)["schemas"].(map[string]any)
	resolve := func(v any) map[string]any {
		m := v.(map[string]any)
		if ref, ok := m["$ref"].(string); ok {
			m = schemas[strings.TrimPrefix(ref, "#/components/schemas/")].(map[string]any)
		}
		return m
	}
	var steps []any
	for _, branch := range resolve(map[string]any{"$ref": "#/components/schemas/DoAction"})["oneOf"].([]any) {
		props := resolve(branch)["properties"].(map[string]any)
		action := resolve(props["action"])["enum"].([]any)[0]
		least := map[string]any{"action": action, "file_keys": []any{"k3v7mzq2d5yhw6tcn4xrfa7p2e"}}
		most := maps.Clone(least)
		most["notes"] = map[string]any{"a": "b"}
		bodies = append(bodies, least, most)
		if props["parameters"] == nil {
			steps = append(steps, map[string]any{"action": action})
			continue
		}
		params := resolve(props["parameters"])
		some, all := map[string]any{}, map[string]any{}
		required, _ := params["required"].([]any)
		for name, p := range params["properties"].(map[string]any) {
			all[name] = sample(resolve(p))
			if slices.Contains(required, any(name)) {
				some[name] = all[name]
			}
		}
		most["parameters"] = all
		steps = append(steps, map[string]any{"action": action, "parameters": all})
		if len(some) > 0 {
			least["parameters"] = some
		}
	}
	return append(bodies, map[string]any{"file_keys": []any{"k3v7mzq2d5yhw6tcn4xrfa7p2e"}, "steps": steps, "keep": true})
}

// sample returns a value of a parameter's type.
func sample(p map[string]any) any {
	if values, ok := p["enum"].([]any); ok {
		return values[0]
	}
	if branches, ok := p["oneOf"].([]any); ok {
		return sample(branches[0].(map[string]any))
	}
	switch p["type"] {
	case "integer", "number":
		return 1
	case "boolean":
		return true
	case "array":
		return []any{"a"}
	case "object":
		return map[string]any{"a": "b"}
	}
	return "a"
}

// Clients that published generators make of the document compile strictly, with every parameter of
// every action, and run the whole flow. Linters find nothing in the document.
func TestGenerators(t *testing.T) {
	t.Parallel()
	all := []struct {
		name string
		test func(t *testing.T, form string)
		form string
	}{
		{"openapi-typescript", testTypeScript, "/openapi.json"},
		{"oapi-codegen", testOAPICodegen, "/openapi-3.0.json"},
		{"openapi-typescript of 3.0", testTypeScript, "/openapi-3.0.json"},
		{"hey-api", testHeyAPI, "/openapi.json"},
		{"openapi-generator", testOpenAPIGenerator, "/openapi-3.0.json"},
		{"redocly", testRedocly, "/openapi.json"},
		{"redocly of 3.0", testRedocly, "/openapi-3.0.json"},
		{"spectral", testSpectral, "/openapi.json"},
		{"spectral of 3.0", testSpectral, "/openapi-3.0.json"},
	}
	for _, tt := range all[:systest.Scale(len(all), 2)] {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.test(t, tt.form)
		})
	}
}

// Every request and response in JSON has an example, also those of extensions and webhooks.
func TestExamples(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"/openapi.json", "/openapi-3.0.json"} {
		_, doc := document(t, form)
		found := 0
		var walk func(at string, v any)
		walk = func(at string, v any) {
			switch v := v.(type) {
			case map[string]any:
				content, _ := v["content"].(map[string]any)
				for kind, c := range content {
					media, ok := c.(map[string]any)
					if !ok || !strings.HasSuffix(kind, "json") {
						continue
					}
					if found++; media["example"] == nil && media["examples"] == nil {
						t.Errorf("%s: %s/%s has no example", form, at, kind)
					}
				}
				for name, e := range v {
					walk(at+"/"+name, e)
				}
			case []any:
				for i, e := range v {
					walk(fmt.Sprint(at, "/", i), e)
				}
			}
		}
		for _, part := range []string{"paths", "webhooks", "x-webhooks"} {
			walk(part, doc[part])
		}
		walk("responses", doc["components"].(map[string]any)["responses"])
		if found < 70 {
			t.Errorf("%s: only %d bodies in JSON", form, found)
		}
	}
}

// Sizes are 64 bits long, so that generated clients do not cut them off at 2 GiB.
func TestSizes(t *testing.T) {
	t.Parallel()
	for _, form := range []string{"/openapi.json", "/openapi-3.0.json"} {
		_, doc := document(t, form)
		found := 0
		for name, schema := range doc["components"].(map[string]any)["schemas"].(map[string]any) {
			if strings.HasSuffix(name, "Parameters") {
				continue // values of actions, far below
			}
			props, _ := schema.(map[string]any)["properties"].(map[string]any)
			for member, p := range props {
				p, _ := p.(map[string]any)
				if p["type"] != "integer" || member != "size" && !strings.Contains(member, "bytes") {
					continue
				}
				if found++; p["format"] != "int64" {
					t.Errorf("%s: %s.%s has no format int64", form, name, member)
				}
			}
		}
		if found < 5 {
			t.Errorf("%s: only %d sizes", form, found)
		}
	}
}

// save writes a form of the document to a directory as openapi.json.
func save(t *testing.T, dir, form string) (doc map[string]any) {
	t.Helper()
	text, doc := document(t, form)
	systest.NoError(t, os.WriteFile(filepath.Join(dir, "openapi.json"), text, 0o600))
	return doc
}

// flow runs a program with the address of the server and the API key. It checks that the program
// reaches its end.
func flow(t *testing.T, dir string, env []string, program string, args ...string) {
	t.Helper()
	if out := run(t, dir, env, program, args...); !strings.Contains(out, "flow completed") {
		t.Error(out)
	}
}

func testTypeScript(t *testing.T, form string) {
	dir := workspace(t, "flow.ts")
	bodies := requests(save(t, dir, form))
	if len(bodies) < 30 {
		t.Errorf("only %d requests: the document does not have all actions", len(bodies))
	}
	run(t, dir, nil, tool(t, "openapi-typescript"), "openapi.json", "-o", "api.d.ts")
	var b strings.Builder
	b.WriteString("import type { components } from './api.js'\nexport const all: components['schemas']['Do'][] = [\n")
	for _, body := range bodies {
		s, err := json.Marshal(body)
		systest.NoError(t, err)
		fmt.Fprintf(&b, "%s,\n", s)
	}
	b.WriteString("]\n")
	systest.NoError(t, os.WriteFile(filepath.Join(dir, "actions.ts"), []byte(b.String()), 0o600))
	run(t, dir, nil, tool(t, "tsc"), append(slices.Clone(strict), "--exactOptionalPropertyTypes", "flow.ts", "actions.ts")...)
	flow(t, dir, nil, "node", "out/flow.js", baseURL, apiKey)
}

func testOAPICodegen(t *testing.T, form string) {
	const module = "../internal/tools/oapi-codegen"
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum", "testdata/main.go"} {
		systest.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(name)), systest.ReadFile(t, filepath.Join(module, name)), 0o600))
	}
	args := []string{"run", ".", baseURL, apiKey}
	for _, body := range requests(save(t, dir, form)) {
		b, err := json.Marshal(body)
		systest.NoError(t, err)
		args = append(args, string(b))
	}
	systest.NoError(t, os.Mkdir(filepath.Join(dir, "api"), 0o700))
	env := []string{"GOFLAGS=", "GOWORK=off"}
	run(t, dir, env, "go", "tool", "oapi-codegen", "-generate", "types,client", "-package", "api", "-o", "api/api.go", "openapi.json")
	flow(t, dir, env, "go", args...)
}

func testHeyAPI(t *testing.T, form string) {
	dir := workspace(t, "flow-hey-api.ts")
	save(t, dir, form)
	config := []byte("export default { input: 'openapi.json', output: { path: 'hey-api', module: { extension: '.js' } } }\n")
	systest.NoError(t, os.WriteFile(filepath.Join(dir, "openapi-ts.config.mjs"), config, 0o600))
	run(t, dir, nil, tool(t, "openapi-ts"))
	run(t, dir, nil, tool(t, "tsc"), append(slices.Clone(strict), "--lib", "es2022,dom,dom.iterable", "flow-hey-api.ts")...)
	flow(t, dir, nil, "node", "out/flow-hey-api.js", baseURL, apiKey)
}

// testOpenAPIGenerator generates a client in Python with the newest version of openapi-generator that npm
// has as a whole; later packages download it from elsewhere.
func testOpenAPIGenerator(t *testing.T, form string) {
	dir := workspace(t, "flow_openapi_generator.py")
	b, err := json.Marshal(requests(save(t, dir, form)))
	systest.NoError(t, err)
	systest.NoError(t, os.WriteFile(filepath.Join(dir, "requests.json"), b, 0o600))
	run(t, dir, nil, tool(t, "openapi-generator"), "generate", "-g", "python", "-i", "openapi.json", "-o", ".", "--package-name", "generated")
	const python = "/usr/bin/python3" // has the packages that the client imports
	run(t, dir, nil, python, "-m", "compileall", "-q", "generated")
	flow(t, dir, nil, python, "flow_openapi_generator.py", baseURL, apiKey)
}

func testRedocly(t *testing.T, form string) {
	dir := workspace(t)
	save(t, dir, form)
	out := run(t, dir, nil, tool(t, "redocly"), "lint", "openapi.json", "--format", "json")
	var found struct {
		Totals   *struct{ Errors, Warnings int }
		Problems []any
	}
	systest.NoError(t, json.NewDecoder(strings.NewReader(out[strings.Index(out, "{"):])).Decode(&found))
	if found.Totals == nil || found.Totals.Errors+found.Totals.Warnings > 0 {
		t.Errorf("%+v", found)
	}
}

func testSpectral(t *testing.T, form string) {
	dir := workspace(t)
	save(t, dir, form)
	systest.NoError(t, os.WriteFile(filepath.Join(dir, ".spectral.yaml"), []byte("extends: ['spectral:oas']\n"), 0o600))
	if out := run(t, dir, nil, tool(t, "spectral"), "lint", "openapi.json", "--fail-severity", "hint"); !strings.Contains(out, "No results") {
		t.Error(out)
	}
}
