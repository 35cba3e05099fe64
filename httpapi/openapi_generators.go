package httpapi

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// This file gives the document the shape that generators of clients need. The source stays easy to
// write and to extend.

// shape prepares a complete document for publication.
func (d document) shape() {
	remove(d.root, "x-actions")
	d.splitActions()
	d.renameComponents()
	eachSchema(d.root, isolateReference)
	eachSchema(d.root, hoistRules)
	eachSchema(d.root, splitTypes)
	eachSchema(d.root, openObject)
}

// splitActions replaces the schema of do, whose branches refine common members, by a union of one
// schema for each action, and one for steps. Generators cannot refine members, but they know tagged
// unions. Steps have no tag, so that the tagged union is a schema of its own.
func (d document) splitActions() {
	schemas := get(d.root, "components", "schemas")
	do := get(schemas, "Do")
	choices := elements(get(do, "oneOf"))
	if len(choices) == 0 {
		return
	}
	union := toNode(map[string]any{"type": "object", "oneOf": []any{}})
	mapping := toNode(map[string]string{})
	steps := toNode(map[string]any{"type": "object", "description": "A step of an operation.", "oneOf": []any{}})
	stepMapping := toNode(map[string]string{})
	for _, choice := range choices {
		action := text(choice, "title")
		name := "Do" + camel(action)
		variant := plain(do)
		remove(variant, "oneOf")
		set(variant, "title", toNode(action))
		if doc := get(choice, "description"); doc != nil {
			set(variant, "description", plain(doc))
		}
		props := get(variant, "properties")
		if action == stepsAction {
			remove(props, "action")
			remove(props, "parameters")
			required := get(variant, "required")
			required.Content = append(required.Content, toNode("steps"))
			set(schemas, name, variant)
			continue
		}
		remove(props, "steps")
		remove(props, "keep")
		set(props, "action", toNode(map[string]any{"type": "string", "enum": []string{action}, "description": "Name of the action."}))
		parameters := plain(get(choice, "properties", "parameters"))
		target := get(schemas, strings.TrimPrefix(text(parameters, "$ref"), ref("schemas", "")))
		if len(get(target, "properties").Content) == 0 {
			remove(props, "parameters")
			remove(schemas, camel(action)+"Parameters")
		} else {
			set(props, "parameters", parameters)
		}
		for _, r := range elements(get(choice, "required")) {
			required := get(variant, "required")
			required.Content = append(required.Content, plain(r))
		}
		// A default makes a member of a request mandatory in the types of some generators.
		for _, p := range members(get(target, "properties")) {
			if v := get(p, "default"); v != nil {
				set(p, "x-default", plain(v))
				set(p, "description", toNode(strings.TrimSuffix(text(p, "description"), ".")+". Default: "+v.Value+"."))
				remove(p, "default")
			}
		}
		if len(elements(get(target, "required"))) == 0 {
			remove(target, "required")
		}
		set(schemas, name, variant)
		step := "Step" + camel(action)
		set(schemas, step, asStep(variant))
		of := get(steps, "oneOf")
		of.Content = append(of.Content, toNode(map[string]string{"$ref": ref("schemas", step)}))
		set(stepMapping, action, toNode(ref("schemas", step)))
		all := get(union, "oneOf")
		all.Content = append(all.Content, toNode(map[string]string{"$ref": ref("schemas", name)}))
		set(mapping, action, toNode(ref("schemas", name)))
	}
	set(union, "discriminator", toNode(map[string]any{"propertyName": "action"}))
	set(get(union, "discriminator"), "mapping", mapping)
	set(union, "description", toNode("One action."))
	set(schemas, "DoAction", union)
	set(steps, "discriminator", toNode(map[string]any{"propertyName": "action"}))
	set(get(steps, "discriminator"), "mapping", stepMapping)
	set(schemas, "Step", steps)
	set(get(schemas, "Do"+camel(stepsAction), "properties", "steps"), "items", toNode(map[string]string{"$ref": ref("schemas", "Step")}))
	both := toNode(map[string]any{"type": "object", "oneOf": []map[string]string{
		{"$ref": ref("schemas", "DoAction")}, {"$ref": ref("schemas", "Do"+camel(stepsAction))},
	}})
	if doc := get(do, "description"); doc != nil {
		set(both, "description", plain(doc))
	}
	*do = *both
}

// asStep returns the schema of an action without the members that belong to the whole operation.
func asStep(variant *yaml.Node) *yaml.Node {
	step := plain(variant)
	props := get(step, "properties")
	for i := 0; i < len(props.Content); {
		if name := props.Content[i].Value; name == "action" || name == "parameters" {
			i += 2
			continue
		}
		props.Content = slices.Delete(props.Content, i, i+2)
	}
	required := get(step, "required")
	required.Content = slices.DeleteFunc(required.Content, func(n *yaml.Node) bool { return n.Value != "action" && n.Value != "parameters" })
	return step
}

// camel returns a name in snake case as a type name: ResetPassword for reset_password.
func camel(name string) string {
	var b strings.Builder
	for part := range strings.SplitSeq(name, "_") {
		if part != "" {
			b.WriteString(strings.ToUpper(part[:1]) + part[1:])
		}
	}
	return b.String()
}

// renameComponents gives all components different names, whatever their kinds are. Some generators
// put all kinds into one namespace, without punctuation and case. The names of schemas win.
func (d document) renameComponents() {
	punctuation := strings.NewReplacer("-", "", "_", "", ".", "")
	canonical := func(name string) string { return strings.ToLower(punctuation.Replace(name)) }
	taken := make(map[string]bool)
	eachNode(d.root, func(n *yaml.Node) {
		if id := text(n, "operationId"); id != "" {
			for _, suffix := range []string{"Response", "Params", "JSONBody", "JSONRequestBody"} { // types that generators add
				taken[canonical(id+suffix)] = true
			}
		}
	})
	renamed := make(map[string]string) // references
	for _, kind := range []struct{ key, suffix string }{{"schemas", "Schema"}, {"parameters", "Parameter"}, {"headers", "Header"}, {"responses", "Result"}} {
		all := get(d.root, "components", kind.key)
		for i := 0; all != nil && i < len(all.Content); i += 2 {
			name := all.Content[i].Value
			to := name
			for taken[canonical(to)] || to != name && get(all, to) != nil {
				to += kind.suffix
			}
			taken[canonical(to)] = true
			if to != name {
				renamed[ref(kind.key, name)] = ref(kind.key, to)
				all.Content[i].Value = to
			}
		}
	}
	eachNode(d.root, func(n *yaml.Node) {
		if to := renamed[text(n, "$ref")]; to != "" {
			set(n, "$ref", toNode(to))
		}
	})
}

// isolateReference moves members beside a reference into a branch of allOf, except descriptions and extensions.
// Generators and linters ignore them beside the reference.
func isolateReference(n *yaml.Node) {
	if get(n, "$ref") == nil {
		return
	}
	beside := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	outer := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	for key, value := range members(n) {
		switch {
		case key == "$ref":
		case key == "description", key == "unevaluatedProperties", strings.HasPrefix(key, "x-"):
			set(outer, key, value)
		default:
			set(beside, key, value)
		}
	}
	if len(beside.Content) == 0 && get(outer, "unevaluatedProperties") == nil {
		return
	}
	branches := []*yaml.Node{toNode(map[string]string{"$ref": text(n, "$ref")})}
	if len(beside.Content) > 0 {
		branches = append(branches, beside)
	}
	set(outer, "allOf", &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: branches})
	*n = *outer
}

// conditions are the keywords of rules between members, which say nothing about types.
var conditions = []string{"if", "then", "else", "contains", "dependentRequired"}

// hoistRules moves the rules between members of an object to the extension x-rules, a list of schemas
// that hold in addition. Generators and linters mistake their parts for types.
func hoistRules(n *yaml.Node) {
	rules := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	own := toNode(map[string]any{})
	for _, key := range conditions {
		if v := get(n, key); v != nil {
			set(own, key, plain(v))
			remove(n, key)
		}
	}
	if len(own.Content) > 0 {
		rules.Content = append(rules.Content, own)
	}
	if branches := get(n, "allOf"); branches != nil {
		var kept []*yaml.Node
		for _, b := range branches.Content {
			inner := get(b, "x-rules")
			if remove(b, "x-rules"); inner != nil && len(b.Content) == 0 {
				rules.Content = append(rules.Content, inner.Content...)
				continue
			} else if inner != nil {
				set(b, "x-rules", inner)
			}
			kept = append(kept, b)
		}
		if branches.Content = kept; len(kept) == 0 {
			remove(n, "allOf")
		}
	}
	if len(rules.Content) > 0 {
		set(n, "x-rules", rules)
	}
}

// splitTypes replaces a list of types by a union of schemas with one type each.
func splitTypes(n *yaml.Node) {
	kinds := get(n, "type")
	if kinds == nil || kinds.Kind != yaml.SequenceNode {
		return
	}
	var branches []*yaml.Node
	for _, kind := range kinds.Content {
		b := toNode(map[string]string{"type": kind.Value})
		if kind.Value == "array" {
			for _, key := range []string{"items", "minItems", "maxItems"} {
				if v := get(n, key); v != nil {
					set(b, key, plain(v))
					remove(n, key)
				}
			}
		}
		branches = append(branches, b)
	}
	remove(n, "type")
	set(n, "oneOf", &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Content: branches})
}

// openObject says of an object without listed members that it can have any. Some generators give such
// an object no members.
func openObject(n *yaml.Node) {
	if text(n, "type") != "object" {
		return
	}
	for _, key := range []string{"properties", "additionalProperties", "allOf", "oneOf", "required"} {
		if get(n, key) != nil {
			return
		}
	}
	set(n, "additionalProperties", toNode(true))
}

// eachNode calls f for every mapping of a tree.
func eachNode(n *yaml.Node, f func(*yaml.Node)) {
	if n.Kind == yaml.MappingNode {
		f(n)
	}
	for _, child := range n.Content {
		eachNode(child, f)
	}
}

// eachSchema calls f for every schema of a document, the inner ones first.
func eachSchema(root *yaml.Node, f func(*yaml.Node)) {
	for _, s := range members(get(root, "components", "schemas")) {
		eachSubschema(s, f)
	}
	var find func(n *yaml.Node)
	find = func(n *yaml.Node) {
		for key, value := range members(n) {
			switch key {
			case "schema", "x-event-data":
				eachSubschema(value, f)
			case "example", "examples", "schemas":
			default:
				find(value)
			}
		}
		for _, e := range elements(n) {
			find(e)
		}
	}
	find(root)
}

// eachSubschema calls f for a schema and all schemas in it, the inner ones first.
func eachSubschema(n *yaml.Node, f func(*yaml.Node)) {
	if n == nil || n.Kind != yaml.MappingNode {
		return
	}
	for key, value := range members(n) {
		switch key {
		case "properties":
			for _, p := range members(value) {
				eachSubschema(p, f)
			}
		case "items", "additionalProperties", "not":
			eachSubschema(value, f)
		case "allOf", "anyOf", "oneOf":
			for _, e := range elements(value) {
				eachSubschema(e, f)
			}
		}
	}
	f(n)
}
