package httpapi

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// downgrade turns an OpenAPI 3.1 document into an OpenAPI 3.0 document, for generators that do not
// read 3.1. Rules that 3.0 cannot express are left out, so it describes the same
// requests and responses less strictly.
func (d document) downgrade() {
	set(d.root, "openapi", toNode("3.0.3"))
	info := get(d.root, "info")
	remove(info, "summary")
	if license := get(info, "license"); license != nil {
		set(license, "url", toNode("https://spdx.org/licenses/"+text(license, "identifier")))
		remove(license, "identifier")
	}
	if hooks := get(d.root, "webhooks"); hooks != nil {
		set(d.root, "x-webhooks", plain(hooks))
		remove(d.root, "webhooks")
	}
	aliases := make(map[string]bool)
	eachSchema(d.root, func(n *yaml.Node) {
		for name, p := range members(get(n, "properties")) {
			aliases[name] = aliases[name] || get(p, "x-alias-of") != nil
		}
	})
	eachSchema(d.root, d.downgradeSchema)
	eachNode(d.root, func(n *yaml.Node) {
		for name, alias := range aliases {
			if alias {
				remove(n, name) // from schemas and examples: generators give both spellings one name
			}
		}
		for kind, media := range members(get(n, "content")) {
			if strings.Contains(kind, "/") && media.Kind == yaml.MappingNode && get(media, "schema") == nil {
				set(media, "schema", toNode(map[string]string{"type": "string", "format": "binary"}))
			}
		}
	})
}

func (d document) downgradeSchema(n *yaml.Node) {
	remove(n, "unevaluatedProperties")
	remove(n, "x-rules") // they are written in the dialect of 3.1
	if target := get(n, "$ref"); target != nil {
		if len(n.Content) > 2 {
			set(n, "allOf", toNode([]any{map[string]string{"$ref": target.Value}}))
			remove(n, "$ref")
		}
		return
	}
	if v := get(n, "const"); v != nil {
		set(n, "enum", &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: []*yaml.Node{plain(v)}})
		remove(n, "const")
	}
	if all := get(n, "examples"); all != nil && all.Kind == yaml.SequenceNode {
		if len(all.Content) > 0 {
			set(n, "example", plain(all.Content[0]))
		}
		remove(n, "examples")
	}
	downgradeType(n)
	if branches := elements(get(n, "oneOf")); len(branches) == 2 && text(branches[0], "type") == "array" && text(branches[0], "items", "type") == text(branches[1], "type") {
		// One element without its list is a short form, which makes types of generators unwieldy.
		for key, v := range members(branches[0]) {
			set(n, key, v)
		}
		remove(n, "oneOf")
	}
	d.mergeBranches(n)
}

// downgradeType adds the type of an enumeration. Values of several types have none.
func downgradeType(n *yaml.Node) {
	values := elements(get(n, "enum"))
	if len(values) == 0 {
		return
	}
	if slices.ContainsFunc(values, func(v *yaml.Node) bool { return v.Kind != yaml.ScalarNode || v.Tag != values[0].Tag }) {
		remove(n, "enum")
		return
	}
	if kind := map[string]string{"!!str": "string", "!!int": "integer", "!!float": "number", "!!bool": "boolean"}[values[0].Tag]; kind != "" && get(n, "type") == nil {
		set(n, "type", toNode(kind))
	}
}

// mergeBranches removes the branches of allOf that only refine members of a referenced schema.
// Generators cannot refine members.
func (d document) mergeBranches(n *yaml.Node) {
	branches := get(n, "allOf")
	if branches == nil {
		return
	}
	known := make(map[string]bool)
	for _, b := range branches.Content {
		for name := range members(get(d.resolve(b), "properties")) {
			known[name] = known[name] || text(b, "$ref") != ""
		}
	}
	var kept []*yaml.Node
	for _, b := range branches.Content {
		if text(b, "$ref") != "" {
			kept = append(kept, b)
			continue
		}
		rest := toNode(map[string]any{"type": "object"})
		if required := get(b, "required"); required != nil {
			set(rest, "required", required)
		}
		for name, p := range members(get(b, "properties")) {
			if known[name] {
				continue
			}
			if get(rest, "properties") == nil {
				set(rest, "properties", toNode(map[string]any{}))
			}
			set(get(rest, "properties"), name, p)
		}
		if len(rest.Content) > 2 {
			kept = append(kept, rest)
		}
	}
	switch own := get(n, "properties"); {
	case len(kept) == 0:
		remove(n, "allOf")
	case own != nil && len(own.Content) > 0:
		// Generators ignore members beside allOf.
		rest := toNode(map[string]any{"type": "object"})
		for _, key := range []string{"required", "properties", "additionalProperties"} {
			if v := get(n, key); v != nil {
				set(rest, key, plain(v))
				remove(n, key)
			}
		}
		remove(n, "type")
		branches.Content = slices.Concat(kept, []*yaml.Node{rest})
	case len(kept) == 1 && get(n, "description") == nil && get(n, "required") == nil && text(kept[0], "$ref") != "":
		*n = *kept[0]
	default:
		branches.Content = kept
	}
}
